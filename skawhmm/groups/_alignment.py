"""Models on the states of one reference, so that a state means the same for all."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, TransformerMixin

from skawhmm._estimator import ModelsMixin
from skawhmm.cluster._averaging import trimmed
from skawhmm.cluster._barycenter import hmm_barycenter
from skawhmm.distances._components import carried_chains
from skawhmm.distances._jaw import JAW
from skawhmm.distances._pairwise import all_pairs
from skawhmm.groups._resampling import drawn_refits
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_same_features, check_single_model
from skawhmm.sequences._forms import is_models
from skawhmm.utils._checks import (
    check_choice,
    check_integer,
    check_optional,
    check_real,
    check_seed,
)
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._parameters import Unused

REFERENCES = ("barycenter", "medoid")

# Fraction of the cost by which occupancy and persistence break ties between matchings.
TIE_FRACTION = 1e-9

# Mass of states that are reached but have no weight, so that they are matched last.
LEAST_MASS = 1e-12


def check_reference(name, value):
    """Raise unless `value` names a kind of reference or is one model."""
    if is_models(value):
        check_single_model(name, value)
    elif not isinstance(value, str):
        raise TypeError(
            f"{name} must be one of {', '.join(map(repr, REFERENCES))} or an HMMBatch "
            f"of one model, got {type(value).__name__}."
        )
    else:
        check_choice(name, value, REFERENCES)


@dataclass(frozen=True, eq=False)
class Alignment:
    """Models on the states of a reference, as :meth:`HMMAligner.align` returns them.

    Parameters
    ----------
    models : HMMBatch
        The models, all with the states of the reference in their order.

    plans : ndarray of shape (n_models, n_components_model, n_components)
        Mass of each state of a model on each state of the reference.

    distances : ndarray of shape (n_models, n_components)
        Distance of each state to its counterpart in the reference; NaN where a model
        lacks the state.

    matched_mass : ndarray of shape (n_models, n_components)
        Mass of states that lie within the largest distance of their counterpart.

    unmatched_mass : ndarray of shape (n_models,)
        Mass of states beyond the largest distance: states that the reference does not
        have.

    missing_mass : ndarray of shape (n_models,)
        Mass of states of the reference that the model does not have.

    confidence : ndarray of shape (n_models, n_components) or None
        Fraction of refits in which the state is matched with the same state of the
        reference; NaN where a model lacks the state. None unless ``HMMAligner`` has
        `n_resamples`.
    """

    models: HMMBatch
    plans: NDArray[np.float64]
    distances: NDArray[np.float64]
    matched_mass: NDArray[np.float64]
    unmatched_mass: NDArray[np.float64]
    missing_mass: NDArray[np.float64]
    confidence: NDArray[np.float64] | None = None


class HMMAligner(ModelsMixin, TransformerMixin, BaseEstimator):
    """Bring models to the states of one reference, in one order.

    Models fitted separately number their states in any order. Each state of a model is
    matched with one state of the reference: one to one as far as the numbers of states
    allow, with the least mean squared distance between states. Surplus states join
    their nearest state. Unlike a registration by transport, a matching lets models
    spend unequal fractions of time in a state.

    Parameters
    ----------
    reference : {"barycenter", "medoid"} or HMMBatch of one model, default="barycenter"
        Model whose states are used: the average of the training models
        (:func:`hmm_barycenter`, for models with the same observed channels); the
        training model with the least mean distance to the others; or a model of your
        own.

    n_components : int, default=None
        Number of states of the reference. By default the average has as many states as
        the largest model, and the medoid may have any number. Must be None if
        `reference` is a model.

    max_distance : float, default=None
        Largest distance at which a matched state counts as the same state. By default
        the mean distance between two states of the reference.

    n_resamples : int, default=0
        Number of times that each model is fitted again, to a sequence of
        ``info["n_timesteps"]`` frames drawn from it, to measure how certain its
        matching is. 0 skips this.

    hmm : transformer, default=None
        Turns sequences into models; it is cloned, and fitted on the training
        sequences. By default ``HMMTransformer()``; None if `X` is an `HMMBatch`.

    n_jobs : int, default=None
        Number of joblib workers for the distances that a medoid needs.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed for the start of the average, and for the sequences drawn from models.

    verbose : int, default=0
        Whether to show a progress bar while the reference is learned.

    Attributes
    ----------
    reference_ : HMMBatch
        The reference, a batch of one model.

    max_distance_ : float
        The largest distance between counterparts.

    plans_ : ndarray of shape (n_models_fit, n_components_model, n_components)
        Mass of each state of the training models on each state of the reference.

    state_distances_ : ndarray of shape (n_models_fit, n_components)
        Distance of each state of the training models to its counterpart in the
        reference; NaN where a model lacks the state.

    unmatched_mass_ : ndarray of shape (n_models_fit,)
        Mass of states of each training model that the reference does not have.

    missing_mass_ : ndarray of shape (n_models_fit,)
        Mass of states of the reference that each training model does not have.

    match_confidence_ : ndarray of shape (n_models_fit, n_components) or None
        Fraction of refits in which each state of the training models is matched with
        the same state of the reference; NaN where a model lacks the state. None if
        `n_resamples` is 0.

    hmm_ : transformer or None
        The fitted `hmm`; None if `fit` was not given sequences.

    n_features_in_ : int
        Number of features of the models or sequences; of columns if `fit` was given a
        2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences or models that have
        names; of the columns, if it was given distances in a data frame.

    See Also
    --------
    state_table : Occupancy, dwell times and means of aligned states, as a table.
    state_effects : Which states and transitions differ between groups.
    register_states : Registration of two models by transport.

    Notes
    -----
    Chains are transferred to the reference by the matching: where several states become
    one, their transitions are added up, so that a transition between them counts as
    staying. A state of the reference that a model does not have gets weight 0 and the
    parameters of the reference, and no path reaches it.

    Examples
    --------
    Two models with the same states in a different order, and one that lacks a state:

    >>> from skawhmm import HMMBatch
    >>> from skawhmm.groups import HMMAligner
    >>> models = HMMBatch(
    ...     transmats=[
    ...         [[0.9, 0.1], [0.2, 0.8]],
    ...         [[0.7, 0.3], [0.1, 0.9]],
    ...         [[1.0]],
    ...     ],
    ...     means=[[[0.0], [5.0]], [[5.2], [0.1]], [[0.2]]],
    ...     covars=[[[1.0], [1.0]], [[1.0], [1.0]], [[1.0]]],
    ...     info={"n_timesteps": [500, 10, 500]},
    ... )
    >>> aligner = HMMAligner(reference=models[0]).fit(models)
    >>> aligned = aligner.transform(models)
    >>> aligned.means[..., 0]
    array([[0. , 5. ],
           [0.1, 5.2],
           [0.2, 5. ]])
    >>> aligned.weights.round(2)
    array([[0.67, 0.33],
           [0.75, 0.25],
           [1.  , 0.  ]])
    >>> aligner.missing_mass_.round(2)
    array([0.  , 0.  , 0.33])

    The second model was fitted to only 10 frames, but its states are far apart, so that
    all refits match them in the same way:

    >>> sure = HMMAligner(reference=models[0], n_resamples=50, random_state=0)
    >>> sure.fit(models).match_confidence_
    array([[ 1.,  1.],
           [ 1.,  1.],
           [ 1., nan]])
    """

    _unused: ClassVar = (Unused(("n_components",), "reference", is_models),)
    _parameter_checks: ClassVar = {
        **ModelsMixin._parameter_checks,
        "reference": check_reference,
        "n_components": partial(check_optional, check=partial(check_integer, low=1)),
        "max_distance": partial(
            check_optional, check=partial(check_real, low=0, high=np.inf)
        ),
        "n_resamples": partial(check_integer, low=0),
    }

    def __init__(
        self,
        reference: Any = "barycenter",
        n_components: int | None = None,
        *,
        max_distance: float | None = None,
        n_resamples: int = 0,
        hmm: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.reference = reference
        self.n_components = n_components
        self.max_distance = max_distance
        self.n_resamples = n_resamples
        self.hmm = hmm
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "HMMAligner":
        """Learn the reference.

        Parameters
        ----------
        X : HMMBatch, list of array-like of shape (n_timesteps, n_features), or array
            Models or sequences; sequences may also be a 3-D array padded by NaN, or a
            2-D array whose rows are univariate.

        y : array-like of shape (n_models,), default=None
            Labels, passed to `hmm` and not used otherwise.

        Returns
        -------
        self : HMMAligner
            The fitted aligner.
        """
        self._fitted(X, y)
        return self

    @all_or_nothing
    def fit_transform(self, X: Any, y: Any = None) -> HMMBatch:
        """Learn the reference, and return the models on its states.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Models or sequences, as in `fit`.

        y : array-like of shape (n_models,), default=None
            Labels, passed to `hmm` and not used otherwise.

        Returns
        -------
        aligned : HMMBatch
            The models on the states of the reference.
        """
        return self._fitted(X, y).models

    def transform(self, X: Any) -> HMMBatch:
        """Return models on the states of the reference.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Models or sequences, as in `fit`.

        Returns
        -------
        aligned : HMMBatch
            The models, with their `info` and their `counts`, all with the states of
            the reference.
        """
        return self.align(X).models

    def align(self, X: Any) -> Alignment:
        """Return models on the states of the reference, and how well they match.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Models or sequences, as in `fit`.

        Returns
        -------
        alignment : Alignment
            The aligned models, plans, distances between matched states, and the mass of
            states without a counterpart.
        """
        self._check_ready()
        return self._aligned(self._models(X))

    def set_output(self, *, transform: str | None = None) -> "HMMAligner":  # noqa: ARG002
        """Do nothing: models cannot be returned as a table.

        A `Pipeline` calls it on all its steps.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            Ignored.

        Returns
        -------
        self : object
            The aligner.
        """
        return self

    def _fitted(self, X, y):
        """Learn the reference; return the alignment of the training models."""
        self._begin_fit()
        models = self._learned_models(self._checked(X, reset=True), y)
        self.reference_ = self._learned_reference(models)
        self._refit_seed = check_seed(self.random_state) if self.n_resamples else 0
        self.max_distance_ = self.max_distance
        if self.max_distance is None:
            self.max_distance_ = mean_state_distance(self.reference_)
        alignment = self._aligned(models)
        self.plans_ = alignment.plans
        self.state_distances_ = alignment.distances
        self.unmatched_mass_ = alignment.unmatched_mass
        self.missing_mass_ = alignment.missing_mass
        self.match_confidence_ = alignment.confidence
        return alignment

    def _learned_reference(self, models):
        if is_models(self.reference):
            return self.reference._bare()
        if self.reference == "barycenter":
            return hmm_barycenter(
                models,
                n_components=self.n_components,
                random_state=self.random_state,
                verbose=self.verbose,
            )[0]
        sizes = models.n_components
        usable = np.full(len(models), True)
        if self.n_components is not None:
            usable = sizes == self.n_components
        if not usable.any():
            raise ValueError(
                "n_components must be the number of states of a model if the reference "
                f"is a medoid, got {self.n_components}, and models with "
                f"{sizes.min()} to {sizes.max()}."
            )
        metric = self._resolved_metric()
        distances = all_pairs(
            models,
            models,
            metric,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        # Sums of equal models differ by rounding; the first of them is taken.
        totals = np.where(usable, distances.sum(axis=1), np.inf)
        medoid = models[int(np.argmin(totals))]._bare()
        padded = medoid.n_components[0] < medoid.transmats.shape[1]
        return trimmed(medoid) if padded else medoid

    def _resolved_metric(self):
        return JAW()

    def _aligned(self, models):
        check_same_features(self.reference_, models, ("reference", "X"))
        found = aligned_models(models, self.reference_, self.max_distance_)
        if self.n_resamples == 0:
            return found
        fits = drawn_refits(models, self.n_resamples, self._refit_seed, self.verbose)
        confidence = match_confidence(models, fits, found.plans, self.reference_)
        return replace(found, confidence=confidence)


def mean_state_distance(model):
    """Return the mean distance between two different states of a model."""
    index = np.zeros(1, dtype=np.int64)
    distances = np.sqrt(model.emission.ground_costs().within(index, index)[0])
    masses = np.outer(model.weights[0], model.weights[0])
    np.fill_diagonal(masses, 0.0)
    total = masses.sum()
    return float((masses * distances).sum() / total) if total > 0 else np.inf


def matched_states(cost, weights, ties):
    """Return the state of the reference that each state of a model is matched with."""
    scale = cost.max() or 1.0
    weighted = weights[:, None] * (cost + TIE_FRACTION * scale * ties)
    n_states, n_targets = weighted.shape
    nearest = weighted.argmin(axis=1)
    if n_states > n_targets:
        # A surplus state may join any state, so it costs the distance to the nearest.
        surplus = np.repeat(weighted.min(axis=1)[:, None], n_states - n_targets, axis=1)
        weighted = np.concatenate([weighted, surplus], axis=1)
    columns = linear_sum_assignment(weighted)[1]
    return np.where(columns < n_targets, columns, nearest)


def aligned_models(models, reference, max_distance):
    """Return models on the states of a reference.

    Parameters
    ----------
    models : HMMBatch
        The models.

    reference : HMMBatch
        A batch of one model.

    max_distance : float
        Largest distance between counterparts.

    Returns
    -------
    alignment : Alignment
        The aligned models and how well they match.
    """
    n_models, n_targets = len(models), int(reference.n_components[0])
    both = HMMBatch.concatenate([reference._bare(), models._bare()])
    size = both.transmats.shape[1]
    rows = 1 + np.arange(n_models)
    costs = both.emission.ground_costs()
    cross = costs.cross(rows, np.zeros_like(rows))[:, :, :n_targets]
    real = np.arange(size) < both.n_components[rows, None]
    maps = _maps(both, cross, real, n_targets)
    weights = both.weights[rows]
    plans = weights[:, :, None] * maps
    carried = np.zeros((n_models, size, size))
    carried[:, :n_targets] = np.maximum(plans, LEAST_MASS * maps).swapaxes(1, 2)
    chains = carried_chains(both.transmats[rows], carried, True)
    totals = carried.sum(axis=2)[:, :n_targets]
    empty = totals == 0
    fractions = carried[:, :n_targets] / np.where(empty, 1, totals)[..., None]
    chains = chains[:, :n_targets, :n_targets]
    chains[empty] = np.eye(n_targets)[np.nonzero(empty)[1]]
    aligned = models._changed(
        emission=_merged_states(both.emission, fractions, empty),
        transmats=chains,
        weights=plans.sum(axis=1),
        startprobs=np.einsum("nj,njk->nk", both.startprobs[rows], maps),
        counts=models.counts and models.counts.padded(size).merged(maps),
    )
    near = np.sqrt(cross) <= max_distance
    matched = (plans * near).sum(axis=1)
    distances = _counterpart_distances(aligned, reference, n_targets)
    return Alignment(
        aligned,
        plans[:, : int(models.n_components.max())],
        np.where(empty, np.nan, distances),
        matched,
        np.maximum((plans * ~near).sum(axis=(1, 2)), 0.0),
        ((matched == 0) * reference.weights[:, :n_targets]).sum(axis=1),
    )


def match_confidence(models, fits, plans, reference):
    """Return how often refits match states with the same state of the reference.

    Parameters
    ----------
    models : HMMBatch
        The models.

    fits : list of HMMBatch
        The refits of each model.

    plans : ndarray of shape (n_models, n_components_model, n_components)
        Mass of each state of the models on each state of the reference.

    reference : HMMBatch
        A batch of one model.

    Returns
    -------
    confidence : ndarray of shape (n_models, n_components)
        Mass matched with a state of the reference in the model that is matched with it
        again, as a mean fraction over the refits. NaN where a model lacks the state.
    """
    confidence = np.full((len(models), plans.shape[2]), np.nan)
    for n, refits in enumerate(fits):
        own = aligned_models(refits, models[n], np.inf).plans
        again = aligned_models(refits, reference, np.inf).plans
        meant = own @ (plans[n, : own.shape[2]] > 0)
        # A state of a refit is matched with a single state, so masses are all or
        # nothing.
        kept = np.minimum(meant, again).sum(axis=1)
        mass = meant.sum(axis=1)
        with np.errstate(invalid="ignore"):
            fractions = kept / mass
        seen = mass > 0
        counts = seen.sum(axis=0)
        total = np.where(seen, fractions, 0.0).sum(axis=0)
        confidence[n] = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    return confidence


def _maps(both, cross, real, n_targets):
    """Return the matchings of all models as matrices of ones and zeros."""
    stays = np.diagonal(both.transmats, axis1=1, axis2=2)
    ties = sum(
        np.abs(values[1:, :, None] - values[0, None, None, :n_targets])
        for values in (both.weights, stays)
    )
    maps = np.zeros(cross.shape)
    for n, states in enumerate(map(np.flatnonzero, real)):
        weights = np.maximum(both.weights[1 + n, states], LEAST_MASS)
        maps[n, states, matched_states(cross[n, states], weights, ties[n, states])] = 1
    return maps


def _merged_states(emission, fractions, empty):
    """Return merged states of models; states of the reference where they are empty."""
    own = emission[1:]
    merged = own.merged(fractions)
    arrays = []
    for name, array in merged.parameters.items():
        axes = tuple(range(2, array.ndim))
        blank = np.expand_dims(empty, axes)
        first = getattr(emission, name)[:1, : array.shape[1]]
        arrays.append(np.where(blank, first, array))
    return own.like(*arrays, observed=own.observed)


def _counterpart_distances(aligned, reference, n_targets):
    both = HMMBatch.concatenate([reference._bare(), aligned._bare()])
    rows = 1 + np.arange(len(aligned))
    cross = both.emission.ground_costs().cross(rows, np.zeros_like(rows))
    states = np.arange(n_targets)
    return np.sqrt(cross[:, states, states])
