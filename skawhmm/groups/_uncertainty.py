r"""Uncertainty of a distance between fitted models.

A model fitted to a finite sequence differs from the true one, so the distance between
two such models is too large: on the squared scale, the noise of both is added to it.
Resampling shows by how much. Sequences are drawn from the two models (or from blocks of
their frames), models are fitted to them, and the squared distances :math:`d_r^2`
between these exceed :math:`d^2` as :math:`d^2` exceeds the true value. The estimate is
therefore :math:`2 d^2 - \operatorname{mean} d_r^2`, and the spread of the :math:`d_r^2`
gives the width of the interval.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from skawhmm.distances._base import Distance, RegisteringDistance
from skawhmm.distances._pairwise import oriented
from skawhmm.distances._resolve import resolve_metric
from skawhmm.groups._registration import refitted_plans
from skawhmm.groups._resampling import check_resampling
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_same_features, check_single_model
from skawhmm.utils._checks import check_real


@dataclass(frozen=True, eq=False)
class DistanceInterval:
    """A distance with an interval, as returned by :func:`distance_interval`.

    Parameters
    ----------
    distance : float
        Distance between the fitted models.

    estimate : float
        Estimate of the true distance, without the part due to noise.

    low, high : float
        Ends of the interval for the true distance.

    confidence : float
        Confidence of the interval.

    replicates : ndarray of shape (n_resamples,)
        Distances between models fitted to resampled sequences.

    registration : ndarray of shape (n_components_a, n_components_b) or None
        Which states correspond; None if the distance registers no states.

    registration_low, registration_high : ndarray or None
        Quantiles of the registration under resampling.

    nearer : float or None
        Confidence that b is nearer to a than c is, if c was given. One minus this is
        the p-value of a one-sided test of the hypothesis that b is not nearer.

    See Also
    --------
    distance_interval : The computation.
    DistanceIntervalDisplay : A picture of it.

    Examples
    --------
    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import distance_interval
    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> a = HMMBatch([chain], [[[0.0], [5.0]]], [[[1.0], [1.0]]])
    >>> b = HMMBatch([chain], [[[2.0], [7.0]]], [[[1.0], [1.0]]])
    >>> found = distance_interval(a, b, n_timesteps=500, random_state=0)
    >>> found.low < found.estimate < found.high
    True

    The true distance is 1. The test is sure that it is below 1.3, but not that it is
    below 1:

    >>> round(found.within(1.3), 3), round(found.within(1.0), 2)
    (0.006, 0.15)
    """

    distance: float
    estimate: float
    low: float
    high: float
    confidence: float
    replicates: NDArray[np.float64] = field(repr=False)
    registration: NDArray[np.float64] | None = field(default=None, repr=False)
    registration_low: NDArray[np.float64] | None = field(default=None, repr=False)
    registration_high: NDArray[np.float64] | None = field(default=None, repr=False)
    nearer: float | None = None

    def within(self, delta: float) -> float:
        """Return the p-value of a test of equivalence.

        Parameters
        ----------
        delta : float
            Largest distance at which two processes count as equivalent, in the units of
            the distance.

        Returns
        -------
        pvalue : float
            One-sided p-value of the hypothesis that the true distance is `delta` or
            more. If it is small, the processes are within `delta` of each other. It is
            0.05 if `delta` is the upper end of the interval of confidence 0.9.
        """
        delta = check_real("delta", delta, 0, np.inf, include_low=False)
        center, spread = _without_noise(self.distance**2, self.replicates**2)
        return 1 - _confidence(delta**2 - center, spread)


def distance_interval(
    a: HMMBatch,
    b: HMMBatch,
    c: HMMBatch | None = None,
    *,
    n_timesteps: int | None = None,
    method: str = "parametric",
    block_length: int | None = None,
    n_resamples: int = 200,
    confidence: float = 0.9,
    hmm: Any = None,
    metric: str | Distance = "jaw",
    alpha: float | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> DistanceInterval:
    """Return an interval for the true distance between the processes behind two models.

    Parameters
    ----------
    a, b : HMMBatch
        Batches of one fitted model each, such as ``models[0]``.

    c : HMMBatch, default=None
        A third model, to test whether b is nearer to a than c is.

    n_timesteps : int, default=None
        Length of the sequences that the models were fitted to. By default the length in
        their `info`, where :class:`HMMTransformer` stores it. Only for
        ``method="parametric"``. Models of several trials keep their own number of
        trials, with this many frames in all (see Notes).

    method : {"parametric", "block"}, default="parametric"
        Source of the resampled sequences: "parametric" draws them from the models;
        "block" assembles them from blocks of the sequences that the models keep
        (``HMMTransformer(keep_sequences=True)``), which does not assume that the models
        are right.

    block_length : int, default=None
        Number of successive frames per block; by default the square root of the length.
        Only for ``method="block"``, and not for models of several trials.

    n_resamples : int, default=200
        Number of resampled sequences per model.

    confidence : float in (0, 1), default=0.9
        Confidence of the intervals.

    hmm : transformer, default=None
        Transformer that fits the models again, as they were fitted. By default an
        :class:`HMMTransformer` with the same number and kind of states.

    metric : {"maw", "iaw", "jaw", "kl", "coupling"} or object, default="jaw"
        Distance between two models.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw"
        and "iaw", 0.5 for "jaw". Must be None if the distance has no components, or if
        `metric` is an object, which has its own.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the resampling.

    verbose : int, default=0
        Whether to show a progress bar for the fits of each model. A given `hmm` has its
        own `verbose`.

    Returns
    -------
    interval : DistanceInterval
        The distance, an estimate without the noise of the fits, its interval, the
        registration with an interval for every entry, and whether b is nearer than c.

    See Also
    --------
    hmm_distance : The distance alone.

    Notes
    -----
    The interval takes the spread of the fits into account, but not the spread of the
    subjects or machines behind the sequences: for groups, use :func:`hmm_group_test`.

    If a model was fitted to several :class:`~skawhmm.sequences.Trials`, the same number
    is drawn from it. They have the lengths of its own trials if it keeps them, and
    equal lengths otherwise. With ``method="block"``, whole trials are drawn with
    replacement.

    Examples
    --------
    Two sequences of the same process. The distance is above 0, but the interval
    contains 0:

    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.groups import distance_interval
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, _ = make_hmm_sequences(2, separation=0, n_timesteps=300, random_state=0)
    >>> models = HMMTransformer(random_state=0).fit_transform(X)
    >>> found = distance_interval(models[0], models[1], random_state=0)
    >>> round(found.distance, 2), round(found.low, 2)
    (0.82, 0.0)
    """
    check_single_model("a", a)
    for name, model in (("b", b), ("c", c)):
        if name == "b" or model is not None:
            check_single_model(name, model)
            check_same_features(a, model, ("a", name))
    confidence = check_real(
        "confidence", confidence, 0, 1, include_low=False, include_high=False
    )
    resampling = check_resampling(
        method, n_timesteps, block_length, n_resamples, hmm, random_state, verbose
    )
    chosen = resolve_metric(metric, alpha=alpha)
    models = [model for model in (a, b, c) if model is not None]
    fits = [
        resampling.refits(model, name)
        for model, name in zip(models, "abc", strict=False)
    ]
    batch = HMMBatch.concatenate([model._bare() for model in [*models, *fits]])
    first = len(models) + n_resamples * np.arange(len(models))
    rows = first[:, None] + np.arange(n_resamples)
    distance, replicates = _distance_pairs(batch, chosen, rows, 1)
    center, spread = _without_noise(distance**2, replicates**2)
    margin = spread * stats.norm.ppf((1 + confidence) / 2)
    plans: Any = (None, None, None)
    if isinstance(chosen, RegisteringDistance):
        plan, moved = refitted_plans(models[:2], fits[:2], chosen)
        ends = [(1 - confidence) / 2, (1 + confidence) / 2]
        plans = (plan, *np.quantile(moved, ends, axis=0))
    nearer = None
    if c is not None:
        other, others = _distance_pairs(batch, chosen, rows, 2)
        gap, width = _without_noise(other**2 - distance**2, others**2 - replicates**2)
        nearer = _confidence(gap, width)
    low, estimate, high = np.sqrt(
        np.maximum([center - margin, center, center + margin], 0)
    )
    return DistanceInterval(
        distance,
        float(estimate),
        float(low),
        float(high),
        confidence,
        replicates,
        registration=plans[0],
        registration_low=plans[1],
        registration_high=plans[2],
        nearer=nearer,
    )


def _without_noise(value, replicates):
    """Return a value minus the mean excess of its replicates, and their spread."""
    return 2 * value - replicates.mean(), replicates.std(ddof=1)


def _confidence(gap, width):
    """Return the confidence that a gap with a standard error is positive."""
    return float(stats.norm.cdf(gap / width)) if width > 0 else float(gap > 0)


def _distance_pairs(batch, metric, rows, k):
    """Return the distance of the first model to another, and between their refits."""
    index_a = np.concatenate([[0], rows[0]])
    index_b = np.concatenate([[k], rows[k]])
    pairs = index_a, index_b
    if metric.symmetric:
        pairs = oriented(batch.keys, *pairs)
    values = metric.distances(metric.prepare(batch), *pairs)
    return float(values[0]), values[1:]
