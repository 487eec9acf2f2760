"""Base classes of all estimators: checks of parameters and input, models, tags."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from skawhmm.distances._aggregated import mixed_components
from skawhmm.distances._base import AggregatedDistance
from skawhmm.distances._resolve import (
    METRIC_CHECKS,
    check_components_alpha,
    resolve_metric,
)
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.models._checks import check_models
from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._checks import (
    check_channels,
    check_input,
    is_list_of_sequences,
)
from skawhmm.sequences._forms import is_models
from skawhmm.sequences._symbols import holds_symbols, symbol_sequences
from skawhmm.sequences._trials import mapped
from skawhmm.utils._checks import (
    LARGEST_DISTANCE,
    WORK_CHECKS,
    check_distances,
    check_random,
)
from skawhmm.utils._numbers import check_one_type, real_array, row_blocks
from skawhmm.utils._parameters import ParametersMixin, Unused, check_unused

# Parameters that specify a distance.
METRIC_NAMES = frozenset({"metric", *METRIC_CHECKS})


def check_hmm(name, value):
    """Raise unless `value` can turn sequences into models, or is None."""
    able = hasattr(value, "fit_transform") and hasattr(value, "transform")
    if value is not None and (isinstance(value, type) or not able):
        raise TypeError(
            f"{name} must be None or a transformer with fit_transform and transform, "
            f"such as HMMTransformer(), got {value!r}."
        )


class EstimatorMixin(ParametersMixin):
    """Checks of common parameters, and tags.

    It must come first among the bases of a class, so that its tags take precedence.
    """

    _parameter_checks: ClassVar[Mapping[str, Callable[[str, Any], Any]]] = {
        **METRIC_CHECKS,
        **WORK_CHECKS,
        "hmm": check_hmm,
        "random_state": check_random,
    }

    def set_params(self, **params: Any) -> Any:
        """Set parameters; those of nested steps are written ``step__parameter``.

        Parameters
        ----------
        **params : dict
            Values by name.

        Returns
        -------
        self : estimator
            The estimator.
        """
        for name, value in params.items():
            step, _, inner = name.partition("__")
            owner = params.get(step, getattr(self, step, ()))
            if inner and owner is None and step == "hmm":
                raise ValueError(
                    f"{name} sets a parameter of hmm, which must be a transformer, got "
                    f"hmm=None. Write: hmm=HMMTransformer({inner}={value!r})."
                )
            if inner and isinstance(owner, str):
                raise ValueError(
                    f"{name} sets a parameter of {step}, which must be an object with "
                    f"parameters, such as MAW() for a distance, got {step}={owner!r}."
                )
        return super().set_params(**params)  # type: ignore[misc]

    @property
    def _precomputed(self):
        """Whether `X` holds precomputed distances or components."""
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.allow_nan = not self._precomputed
        tags.input_tags.three_d_array = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []
        return tags


class ModelsMixin(EstimatorMixin):
    """Input of estimators that compare models: models, or sequences with `hmm`.

    A subclass has the parameters `metric`, `hmm` and `n_jobs` and, as far as it needs
    them, `alpha`, `p`, `metric_params` and `verbose`.
    """

    metric: Any
    hmm: Any
    n_jobs: int | None
    verbose: int

    # Parameters of the distance that the subclass does not expose.
    _implied: ClassVar[Mapping[str, Any]] = {}

    def _check_parameters(self):
        """Check every parameter; return the distance, or None if it is precomputed."""
        super()._check_parameters()
        return None if self._precomputed else self._resolved_metric()

    def _resolved_metric(self):
        """Return the distance specified by the parameters."""
        params = self.get_params(deep=False)
        given = {name: params[name] for name in METRIC_NAMES & params.keys()}
        return resolve_metric(**given, implied=self._implied)

    def _checked(self, X, y=None, *, reset):
        """Return `X` as a batch of models or a list of sequences; `y` holds labels."""
        if not is_models(X):
            return check_frames_or_symbols(self, X, y, reset=reset)
        check_models("X", X)
        if reset:
            check_unused("hmm", self.hmm, None, "if X is an HMMBatch")
        check_channels(self, X.n_features, X.feature_names, reset=reset)
        return X

    def _learned_models(self, X, y):
        """Set `hmm_`, fitted if needed; return the models of checked training input."""
        if is_models(X):
            self.hmm_ = None
            return X
        self.hmm_ = HMMTransformer() if self.hmm is None else clone(self.hmm)
        return self.hmm_.fit_transform(X, y)

    def _models(self, X):
        """Return the models of input given after `fit`."""
        X = self._checked(X, reset=False)
        if is_models(X):
            return X
        if self.hmm_ is None:
            raise TypeError(
                "X must be an HMMBatch, as it was in fit, got sequences. To pass "
                "sequences here, pass sequences to fit."
            )
        return self.hmm_.transform(X)


def is_precomputed(metric):
    """Return whether distances or components are given instead of models."""
    return isinstance(metric, str) and metric == "precomputed"


class ReferencesMixin(ModelsMixin):
    """Input of estimators that also take precomputed distances or components.

    With ``metric="precomputed"``, `X` holds distances to the training models.
    """

    _takes_distances = True
    _unused: ClassVar[Sequence[Unused]] = (
        Unused(("p", "metric_params", "hmm"), "metric", is_precomputed),
    )

    @property
    def _precomputed(self):
        return is_precomputed(self.metric)

    def _changeable(self):
        # Without models, another distance has nothing to compare.
        before = self._fitted_params["metric"]
        swapped = is_precomputed(before) != self._precomputed
        return super()._changeable() - ({"metric"} if swapped else set())

    def _checked(self, X, y=None, *, reset):
        """Return `X` as models, as a list of sequences, or as precomputed distances."""
        if self._precomputed:
            X = check_precomputed(self, X, reset=reset, square=reset)
            if reset and X.ndim == 2:
                check_not_similarities(X)
            params = self.get_params(deep=False)
            if "alpha" in params:
                check_mixing(X, params["alpha"])
            return X
        return super()._checked(X, y, reset=reset)

    def _learned_models(self, X, y):
        """Set `hmm_`; return the models of checked input, None if it is distances."""
        if self._precomputed:
            self.hmm_ = None
            return None
        return super()._learned_models(X, y)


def check_frames_or_symbols(estimator, X, y=None, *, reset):
    """Return sequences of numbers or strings as arrays of two dimensions.

    Texts become columns of characters, and lengths given as `y` are recognised.
    """
    if not holds_symbols(X):
        return check_input(estimator, X, y, reset=reset)
    sequences = mapped(lambda x: x[:, None], symbol_sequences(X))
    check_channels(estimator, 1, reset=reset)
    return CheckedSequences(sequences)


def check_symbol_input(estimator, X, y=None, *, reset):
    """Return sequences of symbols as arrays of one axis, or `Trials` of them."""
    return symbol_sequences(check_frames_or_symbols(estimator, X, y, reset=reset))


def check_targets(y, caller):
    """Return `y` if it was given, else raise."""
    if y is None:
        raise ValueError(f"{caller} requires y to be passed, but the target y is None.")
    no_list = isinstance(y, str | bytes | type | Mapping | Set | Iterator)
    if no_list or getattr(y, "shape", None) == () or np.isscalar(y):
        raise TypeError(
            f"y must hold one target per sequence or model, got a {type(y).__name__}."
        )
    if getattr(getattr(y, "dtype", None), "kind", "O") == "c":
        raise ValueError("Complex data not supported: y must not hold complex values.")
    return y


def check_classes(y, caller):
    """Return the classes of a training set as an array with one axis."""
    y = check_targets(y, caller)
    if isinstance(y, list | tuple) and len({*map(_n_values, y)}) > 1:
        n = next(n for n, label in enumerate(y) if _n_values(label) != 1)
        raise ValueError(
            f"y must hold one label per entry of X, got {_n_values(y[n])} values at "
            f"{n}, such as labels of frames."
        )
    check_one_type("y", y, "entry of X")
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    return y


def _n_values(label):
    """Return the length of a list or an array, 1 for anything else."""
    is_several = isinstance(label, list | tuple) or getattr(label, "ndim", 0) > 0
    return len(label) if is_several else 1


def is_mixture(metric):
    """Return whether a distance mixes two components by its alpha."""
    return isinstance(metric, AggregatedDistance)


def check_precomputed(estimator, X, *, reset, square=False):
    """Return precomputed distances or components as an array; infinity is allowed.

    Parameters
    ----------
    estimator : estimator
        Estimator that gets the input; its `n_features_in_` is the number of reference
        models.

    X : array-like of shape (n_models, n_models_fit[, 2])
        The input as the caller gave it.

    reset : bool
        Whether this is the input of `fit`.

    square : bool, default=False
        Whether `X` must have as many rows as columns.

    Returns
    -------
    X : ndarray of the same shape
        The values, none of them NaN.
    """
    if isinstance(X, tuple) and len(X) == 2:
        raise TypeError(
            'metric="precomputed" needs X to be one array, got a tuple of 2. Stack the '
            "components of pairwise_hmm_components: X = np.stack(X, axis=-1)."
        )
    if is_list_of_sequences(X):
        raise TypeError(
            'metric="precomputed" needs X to be a matrix of distances, got a list of '
            "sequences. PairwiseHMMDistance computes distances from them."
        )
    # Data frames keep their column names, so `X` itself is validated below.
    numbers = real_array("X", X)
    X = validate_data(
        estimator,
        X if hasattr(X, "columns") else numbers,
        reset=reset,
        dtype=np.float64,
        allow_nd=True,
        ensure_all_finite=False,
    )
    if X.shape[2:] not in {(), (2,)}:
        raise ValueError(
            "X must be distances of shape (n_models, n_models_fit) or components of "
            f"shape (n_models, n_models_fit, 2), got shape {X.shape}."
        )
    check_distances("X", X, LARGEST_DISTANCE)
    if square and X.shape[0] != X.shape[1]:
        raise ValueError(
            "X must be a square matrix of distances between the training models, got "
            f"shape {X.shape}."
        )
    return X


def check_not_similarities(X):
    """Raise if every model is farthest from itself, as in a kernel."""
    own = np.diagonal(X)
    parts = [(own[rows, None], X[rows]) for rows in row_blocks(X)]
    # For distances, the first rows usually decide.
    least = all((diagonal >= block).all() for diagonal, block in parts)
    if least and any((diagonal > block).any() for diagonal, block in parts):
        raise ValueError(
            "X must hold distances, got values that are largest on the diagonal, as "
            "those of a kernel or a similarity are. Estimators with "
            'kernel="precomputed", such as SVC, take them.'
        )


def check_mixing(X, alpha):
    """Raise unless `alpha` is given with components, and None with distances."""
    if X.ndim == 3:
        check_components_alpha(alpha)
    else:
        check_unused("alpha", alpha, None, "if X holds distances, not components")


def mixed_precomputed(X, alpha):
    """Return distances: components are mixed at `alpha`, distances stay unchanged."""
    check_mixing(X, alpha)
    if X.ndim == 2:
        return X
    with np.errstate(invalid="ignore"):
        distances = mixed_components(X, alpha)
    # An infinite component makes an infinite distance, even if its weight is 0.
    return np.where(np.isnan(distances), np.inf, distances)
