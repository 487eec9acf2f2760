r"""How sure a distance between fitted models is, and how many states are stable.

A model fitted to a finite sequence is off the true one, and a distance between two such
models is too large: on the scale of squares, the noise of both is added to it.
Resampling shows by how much. Sequences are drawn from the two models (or from blocks of
their frames), models are fitted to them, and the squared distances :math:`d_r^2`
between these exceed :math:`d^2` as :math:`d^2` exceeds the true value. The estimate is
therefore :math:`2 d^2 - \operatorname{mean} d_r^2`, and the spread of the
:math:`d_r^2` gives the width of the interval.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone

from skawhmm._estimator import check_hmm, reference_distances
from skawhmm.distances._base import Distance, RegisteringDistance
from skawhmm.distances._pairwise import oriented, registrations
from skawhmm.distances._resolve import resolve_metric
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.groups._alignment import aligned_models
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_same_features, check_single_model
from skawhmm.models._inference import sample_sequences
from skawhmm.sequences._checks import check_sequences
from skawhmm.sequences._symbols import holds_symbols, symbol_sequences
from skawhmm.sequences._trials import (
    Trials,
    mapped,
    recordings_of,
    unit_frames,
    units_of,
)
from skawhmm.utils._checks import (
    check_choice,
    check_counts,
    check_integer,
    check_n_jobs,
    check_real,
    check_seed,
    check_verbose,
)
from skawhmm.utils._parameters import check_unused
from skawhmm.utils._seeds import item_rng
from skawhmm.utils._tables import data_frame, text_table

METHODS = ("parametric", "block")

# Mean agreement from which on restarts count as the same.
AGREEING = 0.95


@dataclass(frozen=True, eq=False)
class DistanceInterval:
    """A distance with an interval; :func:`distance_interval` returns it.

    Parameters
    ----------
    distance : float
        Distance between the fitted models.

    estimate : float
        The same without the part that is due to noise.

    low, high : float
        Ends of the interval of the true distance.

    confidence : float
        Confidence of the interval.

    replicates : ndarray of shape (n_resamples,)
        Distances between models fitted to resampled sequences.

    registration : ndarray of shape (n_components_a, n_components_b) or None
        Which states correspond; None if the distance registers no states.

    registration_low, registration_high : ndarray or None
        Quantiles of it under resampling.

    nearer : float or None
        Probability that b is nearer to a than c, if c was given.

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
    """Return an interval for the distance between what two models were fitted to.

    Parameters
    ----------
    a, b : HMMBatch
        Batches of one fitted model each, such as ``models[0]``.

    c : HMMBatch, default=None
        A third model: is b nearer to a than c is?

    n_timesteps : int, default=None
        Length of the sequences that the models were fitted to. By default that in their
        `info`, where :class:`HMMTransformer` notes it. Only for
        ``method="parametric"``. Models of several trials, see Notes, have their own
        numbers of trials, and as many frames in all.

    method : {"parametric", "block"}, default="parametric"
        Where resampled sequences come from: drawn from the models; or put together from
        blocks of the sequences that the models keep
        (``HMMTransformer(keep_sequences=True)``), which asks nothing of the models.

    block_length : int, default=None
        Number of successive frames per block; by default the square root of the length.
        Only for ``method="block"``, and not for models of several trials.

    n_resamples : int, default=200
        Number of resampled sequences per model.

    confidence : float in (0, 1), default=0.9
        Confidence of the intervals.

    hmm : transformer, default=None
        How models were fitted. By default an :class:`HMMTransformer` with as many
        states of the same kind.

    metric : {"maw", "iaw", "jaw", "kl", "coupling"} or object, default="jaw"
        Distance between two models.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw"
        and "iaw", 0.5 for "jaw". Must be None if the distance has no components, or if
        `metric` is an object, which has its own.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the resampling.

    verbose : int, default=0
        Whether to show a progress bar for the fits of each model. A given `hmm` says so
        itself.

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

    If a model was fitted to several :class:`~skawhmm.sequences.Trials`, as many are
    drawn from it. They have the lengths of its own trials if it keeps them, and equal
    lengths otherwise. With ``method="block"``, whole trials are drawn with replacement.

    Examples
    --------
    Two sequences of one and the same process. The distance is above 0, but 0 is in the
    interval:

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
    check_choice("method", method, METHODS)
    for name, length in (("n_timesteps", n_timesteps), ("block_length", block_length)):
        if length is not None:
            check_integer(name, length, 1)
    unused = ("block_length", block_length), ("n_timesteps", n_timesteps)
    name, length = unused[METHODS.index(method)]
    check_unused(name, length, None, f"with method={method!r}")
    check_integer("n_resamples", n_resamples, 2)
    confidence = check_real(
        "confidence", confidence, 0, 1, include_low=False, include_high=False
    )
    check_hmm("hmm", hmm)
    check_verbose("verbose", verbose)
    seed = check_seed(random_state)
    chosen = resolve_metric(metric, alpha=alpha)
    models = [model for model in (a, b, c) if model is not None]
    fits = [
        _refitted(
            model,
            name,
            _transformer_like(model, seed, verbose) if hmm is None else clone(hmm),
            n_resamples,
            (method, n_timesteps, block_length),
            seed,
        )
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
        plans = _registration_intervals(batch, chosen, models, fits, rows, confidence)
    nearer = None
    if c is not None:
        other, others = _distance_pairs(batch, chosen, rows, 2)
        gap, width = _without_noise(other**2 - distance**2, others**2 - replicates**2)
        nearer = float(stats.norm.cdf(gap / width)) if width > 0 else float(gap > 0)
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
    """Return a value less the mean excess of its replicates, and their spread."""
    return 2 * value - replicates.mean(), replicates.std(ddof=1)


def _distance_pairs(batch, metric, rows, k):
    """Return the distance of the first model to another, and between their refits."""
    index_a = np.concatenate([[0], rows[0]])
    index_b = np.concatenate([[k], rows[k]])
    pairs = index_a, index_b
    if metric.symmetric:
        pairs = oriented(batch.keys, *pairs)
    values = metric.distances(metric.prepare(batch), *pairs)
    return float(values[0]), values[1:]


def _refitted(model, name, hmm, n_resamples, how, seed):
    """Return models fitted to sequences resampled from one model."""
    method, n_timesteps, block_length = how
    seeds = [(seed, int(model.keys[0]), ord(name), r) for r in range(n_resamples)]
    if method == "parametric":
        drawn = _samples(model, _length(model, name, n_timesteps), seeds)
    else:
        drawn = _resampled(model, name, block_length, seeds)
    return hmm.fit_transform(mapped(model.emission.shown, drawn))


def _samples(model, length, seeds):
    """Return sequences drawn from a model, or `Trials` if it was fitted to several."""
    n_trials = int(model.info["n_trials"][0]) if "n_trials" in model.info else 1
    if n_trials == 1:
        repeated = model[np.zeros(len(seeds), dtype=np.int64)]
        return sample_sequences(repeated, length, seeds)[0]
    lengths = length // n_trials + (np.arange(n_trials) < length % n_trials)
    if model.sequences is not None:
        own = np.array([len(x) for x in model.sequences[0]])
        lengths = own if own.sum() == length else lengths
    lengths = np.tile(np.maximum(lengths, 1), len(seeds))
    repeated = model[np.zeros(len(lengths), dtype=np.int64)]
    each = [(*seed, trial) for seed in seeds for trial in range(n_trials)]
    drawn, _ = sample_sequences(repeated, lengths, each)
    return units_of(drawn, np.arange(len(drawn)) // n_trials)


def _length(model, name, n_timesteps):
    if n_timesteps is not None:
        return check_integer("n_timesteps", n_timesteps, 1)
    if "n_timesteps" not in model.info:
        raise ValueError(
            "n_timesteps must be the length of the sequences that the models were "
            f"fitted to, got None, and no such column in the info of {name}."
        )
    return int(model.info["n_timesteps"][0])


def _resampled(model, name, block_length, seeds):
    """Return sequences put together from parts of the model's own one."""
    if model.sequences is None:
        raise ValueError(
            f"method='block' needs models that keep their sequences, got {name} "
            "without. HMMTransformer(keep_sequences=True) makes them."
        )
    x = model.sequences[0]
    if isinstance(x, Trials) and len(x) > 1:
        reason = f"with {name} of several trials, which are drawn as a whole"
        check_unused("block_length", block_length, None, reason)
        return [_drawn_trials(x, seed) for seed in seeds]
    return _blocks(recordings_of([x])[0][0], block_length, seeds)


def _drawn_trials(trials, seed):
    """Return as many trials drawn with replacement, of which one has a transition."""
    rng, lengths = item_rng(*seed), np.array([len(x) for x in trials])
    while True:
        chosen = rng.integers(len(trials), size=len(trials))
        if lengths[chosen].max() > 1:
            return Trials([trials.recordings[i] for i in chosen])


def _blocks(x, block_length, seeds):
    """Return sequences put together from blocks of one."""
    size = int(np.ceil(np.sqrt(len(x))))
    if block_length is not None:
        size = check_integer("block_length", block_length, 1)
    size = min(size, len(x))
    n_blocks = -(-len(x) // size)
    drawn = []
    for seed in seeds:
        starts = item_rng(*seed).integers(len(x) - size + 1, size=n_blocks)
        rows = (starts[:, None] + np.arange(size)).ravel()[: len(x)]
        drawn.append(x[rows])
    return drawn


def _transformer_like(model, seed, verbose):
    """Return a transformer that fits models of the same kind."""
    return HMMTransformer(
        int(model.n_components[0]),
        emission=clone(model.emission),
        random_state=seed % (2**32),
        verbose=verbose,
    )


def _registration_intervals(batch, metric, models, fits, rows, confidence):
    """Return the registration of a and b, and quantiles of it, on their own states."""
    index_a = np.concatenate([[0], rows[0]])
    index_b = np.concatenate([[1], rows[1]])
    plans = registrations(batch, metric, index_a, index_b)
    sizes = [int(model.n_components[0]) for model in models[:2]]
    plan = plans[0, : sizes[0], : sizes[1]]
    sides = []
    for model, refits in zip(models[:2], fits[:2], strict=True):
        own = aligned_models(refits, model, np.inf).plans
        mass = own.sum(axis=2, keepdims=True)
        sides.append(own / np.where(mass > 0, mass, 1))
    shapes = (sides[0].shape[1], sides[1].shape[1])
    moved = np.einsum(
        "nij,nia,njb->nab", plans[1:, : shapes[0], : shapes[1]], *sides, optimize=True
    )
    low, high = np.quantile(moved, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return plan, low, high


@dataclass(frozen=True, eq=False)
class StabilityCurve:
    """How stable models are, by their number of states; see :func:`stability_curve`.

    Parameters
    ----------
    n_components : ndarray of shape (n_numbers,)
        Numbers of states.

    halves : ndarray of shape (n_numbers, n_sequences)
        Agreement of the models of the two halves of each sequence: 1 if they are equal,
        0 if they are as far from each other as from the halves of other sequences.

    restarts : ndarray of shape (n_numbers, n_sequences)
        The same for two fits of the whole sequence from different starts.

    best_n_components : int
        The largest number of states with which restarts agree, by 0.95 on average.

    See Also
    --------
    stability_curve : The computation.
    StabilityDisplay : A picture of it.

    Examples
    --------
    >>> from skawhmm.groups import stability_curve
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, _ = make_hmm_sequences(8, n_timesteps=300, separation=3, random_state=0)
    >>> curve = stability_curve(X, n_components=(1, 3, 6), random_state=0)
    >>> curve.best_n_components
    3
    """

    n_components: NDArray[np.int64]
    halves: NDArray[np.float64] = field(repr=False)
    restarts: NDArray[np.float64] = field(repr=False)
    best_n_components: int

    def _columns(self):
        root = np.sqrt(self.halves.shape[1])
        return {
            "n_components": self.n_components,
            "halves": self.halves.mean(axis=1),
            "halves_error": self.halves.std(axis=1, ddof=1) / root,
            "restarts": self.restarts.mean(axis=1),
            "restarts_error": self.restarts.std(axis=1, ddof=1) / root,
        }

    def to_frame(self) -> Any:
        """Return the curve as a data frame of pandas.

        Returns
        -------
        frame : pandas.DataFrame
            One row per number of states: mean agreement of halves and of restarts, and
            their standard errors over the sequences.
        """
        return data_frame(self._columns(), "StabilityCurve.to_frame")

    def __repr__(self) -> str:
        columns = {name: values.tolist() for name, values in self._columns().items()}
        return f"{text_table(columns)}\nbest_n_components={self.best_n_components}"


def stability_curve(
    X: Any,
    n_components: int | Iterable[int] = range(1, 9),
    *,
    hmm: Any = None,
    metric: str | Distance = "jaw",
    alpha: float | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> StabilityCurve:
    """Return how stable models are for each number of states, to choose one.

    Models are fitted to both halves of each sequence (of the trials, if a unit has
    several), and twice to the whole of it.
    Stable states are found again: the models of two halves are near to each other,
    compared with the distance to halves of other sequences.

    Parameters
    ----------
    X : list of array-like of shape (n_timesteps, n_features), or array
        At least two sequences, in any form that :class:`HMMTransformer` takes.

    n_components : int or iterable of int, default=range(1, 9)
        Numbers of states.

    hmm : transformer, default=None
        Fits the models; it is cloned, and its `n_components` and `random_state` are
        set. By default ``HMMTransformer()``.

    metric : {"maw", "iaw", "jaw", "kl", "coupling"} or object, default="jaw"
        Distance between two models.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw"
        and "iaw", 0.5 for "jaw". Must be None if the distance has no components, or if
        `metric` is an object, which has its own.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the starts.

    n_jobs : int, default=None
        Number of joblib workers for the distances.

    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    curve : StabilityCurve
        Agreement of halves and of restarts by number of states.

    See Also
    --------
    HMMTransformer : ``n_components="bic"`` chooses a number for each sequence.

    Notes
    -----
    A single state is always stable: it is the mean of the frames. The number to choose
    is therefore the largest with which restarts agree, unless its halves agree much
    less than with fewer states.

    Examples
    --------
    Sequences of three states:

    >>> from skawhmm.groups import stability_curve
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, _ = make_hmm_sequences(8, n_timesteps=300, separation=3, random_state=0)
    >>> stability_curve(X, n_components=range(1, 6), random_state=0)
    n_components  halves  halves_error  restarts  restarts_error
               1  0.6731       0.05821         1               0
               2  0.3695        0.1178    0.7477          0.1724
               3  0.4012         0.042    0.9994       0.0002319
               4  0.3181       0.03207    0.8449         0.05357
               5  0.2561       0.03367    0.6769         0.03904
    best_n_components=3
    """
    sizes = check_counts("n_components", _listed(n_components))
    check_hmm("hmm", hmm)
    check_n_jobs("n_jobs", n_jobs)
    check_verbose("verbose", verbose)
    seed = check_seed(random_state)
    chosen = resolve_metric(metric, alpha=alpha)
    sequences = symbol_sequences(X) if holds_symbols(X) else check_sequences(X)
    _check_halves(sequences)
    parts = [*zip(*map(_halves, sequences), strict=True)]
    halves, restarts = [], []
    for size in sizes:
        hmm_of = HMMTransformer() if hmm is None else clone(hmm)
        starts = [
            clone(hmm_of).set_params(n_components=size, random_state=(seed + k) % 2**32)
            for k in range(2)
        ]
        fits = [starts[0].fit(sequences).transform(part) for part in parts]
        between = reference_distances(
            fits[0], fits[1], chosen, n_jobs=n_jobs, verbose=verbose
        )
        n_others = len(sequences) - 1
        apart = (between.sum(axis=1) - np.diagonal(between)) / n_others
        halves.append(_agreement(np.diagonal(between), apart))
        again = [start.fit_transform(sequences) for start in starts]
        pairs = np.arange(len(sequences)), len(sequences) + np.arange(len(sequences))
        both = HMMBatch.concatenate([fit._bare() for fit in again])
        near = chosen.distances(chosen.prepare(both), *pairs)
        restarts.append(_agreement(near, apart))
    found = np.array(restarts)
    return StabilityCurve(np.array(sizes), np.array(halves), found, _best(sizes, found))


def _listed(n_components):
    if isinstance(n_components, str) or not isinstance(n_components, Iterable):
        return n_components
    return list(n_components)


def _halves(x):
    """Return both halves of a sequence, or of several trials."""
    if isinstance(x, Trials) and len(x) > 1:
        cut = len(x) // 2
        return Trials(x.recordings[:cut]), Trials(x.recordings[cut:])
    (frames,) = unit_frames([x])
    return frames[: len(frames) // 2], frames[len(frames) // 2 :]


def _check_halves(sequences):
    if len(sequences) < 2:
        raise ValueError(f"X must hold at least 2 sequences, got {len(sequences)}.")
    short = [i for i, x in enumerate(unit_frames(sequences)) if len(x) < 2]
    if short:
        raise ValueError(
            f"X must hold sequences of at least 2 frames, got 1 in X[{short[0]}]."
        )


def _agreement(near, apart):
    """Return 1 for equal models, 0 for those as far apart as others are."""
    return np.where(apart > 0, 1 - near / np.where(apart > 0, apart, 1), 0.0)


def _best(sizes, restarts):
    """Return the largest number of states with which restarts agree."""
    means = restarts.mean(axis=1)
    # If none does, the one that comes nearest.
    agreeing = np.minimum(AGREEING, means.max())
    return max(
        size for size, mean in zip(sizes, means, strict=True) if mean >= agreeing
    )
