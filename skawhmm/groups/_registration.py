"""Confidence of a registration: which state of one model is which of another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skawhmm.distances._base import Distance, RegisteringDistance
from skawhmm.distances._pairwise import registrations
from skawhmm.distances._resolve import resolve_metric
from skawhmm.groups._alignment import aligned_models
from skawhmm.groups._resampling import check_resampling
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_same_features, check_single_model
from skawhmm.utils._checks import check_real
from skawhmm.utils._tables import data_frame

# A state counts as matched if it is matched in more than this fraction of refits.
MAJORITY = 0.5

# Distances that differ by less than this fraction are equal.
NEARLY_EQUAL = 1e-9


@dataclass(frozen=True, eq=False)
class RegistrationInterval:
    """Confidence of a registration, as returned by :func:`registration_interval`.

    Parameters
    ----------
    registration : ndarray of shape (n_components_a, n_components_b)
        The registration of the two models.

    probabilities : ndarray of shape (n_components_a, n_components_b)
        Fraction of the refits with a state of a in which a state of b is the nearest to
        it. Rows sum to 1; they are NaN for a state that is in no refit.

    reverse : ndarray of shape (n_components_a, n_components_b)
        Fraction of the refits with a state of b in which a state of a is the nearest to
        it. Columns sum to 1.

    low, high : ndarray of shape (n_components_a, n_components_b)
        Quantiles of the registration under refits.

    confidence : float
        Confidence of the interval from `low` to `high`.

    n_resamples : int
        Number of refits.

    state_names : pair of (tuple of str or None), default=(None, None)
        Names of the states of a and of b, for models whose states have names
        (:attr:`HMMBatch.state_names <skawhmm.models.HMMBatch.state_names>`); None for
        states that are numbered.

    Attributes
    ----------
    counterparts : ndarray of shape (n_components_a,)
        The most frequent counterpart of each state of a; -1 for a state in no refit.

    splits : dict
        States of a to which two or more states of b belong, in most refits.

    merges : dict
        States of b to which two or more states of a belong, in most refits.

    See Also
    --------
    registration_interval : The computation.
    RegistrationIntervalDisplay : A picture of it.

    Examples
    --------
    The second state of a is two states in b:

    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import registration_interval
    >>> a = HMMBatch([[[0.9, 0.1], [0.1, 0.9]]], [[[0.0], [6.0]]], [[[1.0], [1.0]]])
    >>> chain = [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> b = HMMBatch([chain], [[[0.0], [4.0], [8.0]]], [[[1.0], [0.5], [0.5]]])
    >>> registration_interval(a, b, n_timesteps=600, random_state=0)
    state 0 of a is state 0 of b in 100 % of 200 refits
    state 1 of a is state 2 of b in 51 % of 200 refits
    state 1 of a splits into states 1 and 2 of b
    """

    registration: NDArray[np.float64] = field(repr=False)
    probabilities: NDArray[np.float64]
    reverse: NDArray[np.float64] = field(repr=False)
    low: NDArray[np.float64] = field(repr=False)
    high: NDArray[np.float64] = field(repr=False)
    confidence: float
    n_resamples: int
    state_names: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = field(
        default=(None, None), repr=False
    )

    @property
    def counterparts(self) -> NDArray[np.int64]:
        """The most frequent counterpart of each state of a."""
        known = ~np.isnan(self.probabilities).any(axis=1)
        found = np.nan_to_num(self.probabilities).argmax(axis=1)
        return np.where(known, found, -1)

    @property
    def splits(self) -> Mapping[int, tuple[int, ...]]:
        """States of a to which two or more states of b belong."""
        return _gathered(self.reverse)

    @property
    def merges(self) -> Mapping[int, tuple[int, ...]]:
        """States of b to which two or more states of a belong."""
        return _gathered(self.probabilities.T)

    def to_frame(self) -> Any:
        """Return the probabilities as a pandas data frame.

        Returns
        -------
        frame : pandas.DataFrame
            One row per pair of states, with the columns "state_a", "state_b",
            "probability", "mass", "low" and "high". States that have names are named.
        """
        places = np.indices(self.probabilities.shape).reshape(2, -1)
        states = [
            np.array(names)[k] for names, k in zip(self._names(), places, strict=True)
        ]
        arrays = self.probabilities, self.registration, self.low, self.high
        names = "probability", "mass", "low", "high"
        columns = dict(zip(names, map(np.ravel, arrays), strict=True))
        columns = {"state_a": states[0], "state_b": states[1], **columns}
        return data_frame(columns, "RegistrationInterval.to_frame")

    def __repr__(self) -> str:
        lines = []
        first, second = self._names()
        for i, j in enumerate(self.counterparts):
            state = f"state {first[i]} of a"
            if j < 0:
                lines.append(f"{state} is in none of {self.n_resamples} refits")
                continue
            percent = 100 * self.probabilities[i, j]
            lines.append(
                f"{state} is state {second[j]} of b in {percent:.0f} % of "
                f"{self.n_resamples} refits"
            )
        return "\n".join([*lines, *self.notes()])

    def notes(self, a: str = "a", b: str = "b") -> list[str]:
        """Return lines of text on states that split or merge.

        Parameters
        ----------
        a, b : str
            Names of the models.

        Returns
        -------
        notes : list of str
            One line per state that splits or merges; empty without such states.
        """
        first, second = self._names()
        return [
            f"state {first[i]} of {a} splits into states "
            f"{_listed(second, states)} of {b}"
            for i, states in self.splits.items()
        ] + [
            f"states {_listed(first, states)} of {a} merge into state "
            f"{second[j]} of {b}"
            for j, states in self.merges.items()
        ]

    def _names(self):
        """Return the names of the states of both models, or their numbers."""
        sizes = zip(self.state_names, self.probabilities.shape, strict=True)
        return [range(size) if own is None else own for own, size in sizes]


def _gathered(belongs):
    """Return the rows to which two or more columns belong in most refits."""
    found = {}
    for row, values in enumerate(belongs):
        columns = np.flatnonzero(np.nan_to_num(values) > MAJORITY)
        if len(columns) > 1:
            found[row] = tuple(columns.tolist())
    return MappingProxyType(found)


def _listed(names, states):
    *others, last = (str(names[k]) for k in states)
    return f"{', '.join(others)} and {last}"


def registration_interval(
    a: HMMBatch,
    b: HMMBatch,
    *,
    n_timesteps: int | None = None,
    method: str = "parametric",
    block_length: int | None = None,
    n_resamples: int = 200,
    confidence: float = 0.9,
    hmm: Any = None,
    metric: str | Distance = "jaw",
    random_state: Any = None,
    verbose: int = 0,
) -> RegistrationInterval:
    """Return how certain it is which state of one model is which state of another.

    Both models are fitted again to resampled sequences, and the states of the refits
    are matched with the states of the two models. A state of a is then identified with
    the nearest state of b. Unlike in a registration by transport, the time spent in a
    state does not matter.

    Parameters
    ----------
    a, b : HMMBatch
        Batches of one fitted model each, such as ``models[0]``.

    n_timesteps : int, default=None
        Length of the sequences that the models were fitted to. By default the length in
        their `info`, where :class:`HMMTransformer` stores it. Only for
        ``method="parametric"``. Models of several trials are resampled as in
        :func:`distance_interval`.

    method : {"parametric", "block"}, default="parametric"
        Source of the resampled sequences: "parametric" draws them from the models;
        "block" assembles them from blocks of the sequences that the models keep
        (``HMMTransformer(keep_sequences=True)``), which does not assume that the models
        are right.

    block_length : int, default=None
        Number of successive frames per block; by default the square root of the length.
        Only for ``method="block"``.

    n_resamples : int, default=200
        Number of resampled sequences per model.

    confidence : float in (0, 1), default=0.9
        Confidence of the intervals.

    hmm : transformer, default=None
        Transformer that fits the models again, as they were fitted. By default an
        :class:`HMMTransformer` with the same number and kind of states.

    metric : {"maw", "iaw", "jaw"} or object, default="jaw"
        Distance whose registration is returned, with its quantiles.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the resampling.

    verbose : int, default=0
        Whether to show a progress bar for the fits of each model. A given `hmm` has its
        own `verbose`.

    Returns
    -------
    interval : RegistrationInterval
        How often each state of a is matched with each state of b, and which states
        split or merge.

    See Also
    --------
    register_states : The registration alone.
    HMMAligner : With `n_resamples`, the confidence of matches with a reference.

    Examples
    --------
    Two short recordings of one process:

    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.groups import registration_interval
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, _ = make_hmm_sequences(2, separation=0, n_timesteps=60, random_state=0)
    >>> models = HMMTransformer(random_state=0).fit_transform(X)
    >>> registration_interval(models[0], models[1], random_state=0)
    state 0 of a is state 2 of b in 68 % of 200 refits
    state 1 of a is state 0 of b in 86 % of 200 refits
    state 2 of a is state 1 of b in 71 % of 200 refits
    """
    check_single_model("a", a)
    check_single_model("b", b)
    check_same_features(a, b, ("a", "b"))
    confidence = check_real(
        "confidence", confidence, 0, 1, include_low=False, include_high=False
    )
    resampling = check_resampling(
        method, n_timesteps, block_length, n_resamples, hmm, random_state, verbose
    )
    chosen = resolve_metric(metric)
    if not isinstance(chosen, RegisteringDistance):
        raise TypeError(
            f"metric must register states, such as 'maw' or 'jaw', got {metric!r}."
        )
    fits = [resampling.refits(model, name) for model, name in ((a, "a"), (b, "b"))]
    plan, moved = refitted_plans([a, b], fits, chosen)
    low, high = np.quantile(moved, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    names = [
        own_states(model, fit) > 0 for model, fit in zip((a, b), fits, strict=True)
    ]
    costs = named_costs(fits, names)
    votes = nearest_fractions(costs)
    reverse = nearest_fractions(costs.swapaxes(1, 2)).T
    return RegistrationInterval(
        plan,
        votes,
        reverse,
        low,
        high,
        confidence,
        n_resamples,
        (a.state_names, b.state_names),
    )


def nearest_fractions(costs):
    """Return how often each column is the nearest to each row.

    Parameters
    ----------
    costs : ndarray of shape (n_refits, n_rows, n_columns)
        Distances between states; infinite for states that a refit does not have.

    Returns
    -------
    fractions : ndarray of shape (n_rows, n_columns)
        Fractions of the refits that have the row; NaN if there are none. Columns that
        are equally near share equally.
    """
    least = costs.min(axis=2, keepdims=True)
    known = np.isfinite(least)
    near = (costs <= np.where(known, least * (1 + NEARLY_EQUAL), 0)) & known
    votes = (near / np.maximum(near.sum(axis=2, keepdims=True), 1)).sum(axis=0)
    counts = votes.sum(axis=1, keepdims=True)
    return np.where(counts > 0, votes / np.where(counts > 0, counts, 1), np.nan)


def named_costs(fits, names):
    """Return squared distances between the states of refits, by the names they got.

    Parameters
    ----------
    fits : list of two HMMBatch
        Refits of two models, the same number of each.

    names : list of two ndarray of shape (n_refits, n_components, n_names)
        Whether a state of a refit is named after a state of its model.

    Returns
    -------
    costs : ndarray of shape (n_refits, n_names_a, n_names_b)
        The smallest distance, if several states share a name; infinite for an unused
        name.
    """
    batch = HMMBatch.concatenate([fit._bare() for fit in fits])
    rows = np.arange(len(fits[0]))
    costs = batch.emission.ground_costs().cross(rows, len(fits[0]) + rows)
    first, second = names
    costs = costs[:, : first.shape[1], : second.shape[1]]
    costs = np.where(first[..., None], costs[:, :, None], np.inf).min(axis=1)
    return np.where(second[:, None], costs[..., None], np.inf).min(axis=2)


def own_states(model, refits):
    """Return the fraction of each state of the refits matched with each model state."""
    own = aligned_models(refits, model, np.inf).plans
    mass = own.sum(axis=2, keepdims=True)
    return own / np.where(mass > 0, mass, 1)


def refitted_plans(models, fits, metric):
    """Return the registration of two models, and of their refits on the same states.

    Parameters
    ----------
    models : list of two HMMBatch
        Batches of one model each.

    fits : list of two HMMBatch
        Refits of both, the same number of each.

    metric : Distance
        A distance that registers states.

    Returns
    -------
    plan : ndarray of shape (n_components_a, n_components_b)
        The registration of the models.

    moved : ndarray of shape (n_refits, n_components_a, n_components_b)
        Registrations of the refits, in terms of the matched states of the models.
    """
    batch = HMMBatch.concatenate([model._bare() for model in [*models, *fits]])
    n_refits = len(fits[0])
    rows = np.arange(2 * n_refits).reshape(2, n_refits) + 2
    index_a, index_b = np.concatenate([[[0], [1]], rows], axis=1)
    plans = registrations(batch, metric, index_a, index_b)
    sizes = [int(model.n_components[0]) for model in models]
    sides = [own_states(model, fit) for model, fit in zip(models, fits, strict=True)]
    shapes = sides[0].shape[1], sides[1].shape[1]
    moved = np.einsum(
        "nij,nia,njb->nab", plans[1:, : shapes[0], : shapes[1]], *sides, optimize=True
    )
    return plans[0, : sizes[0], : sizes[1]], moved
