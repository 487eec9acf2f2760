"""Transformers that return distances: matrices, kernels and mixtures."""

import sys
from collections.abc import Mapping
from functools import partial
from operator import eq
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)

from skawhmm._estimator import (
    METRIC_NAMES,
    EstimatorMixin,
    ModelsMixin,
    check_precomputed,
    mixed_precomputed,
)
from skawhmm.distances._pairwise import all_pairs
from skawhmm.distances._resolve import check_aggregated
from skawhmm.numerics._lapack import in_batches
from skawhmm.utils._checks import check_choice, check_real
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._parameters import Unused, check_unused, defaults_of

OUTPUTS = ("distance", "kernel", "psd_kernel", "components")
# Outputs for which `fit` learns a rate or a projection from distances.
KERNELS = ("kernel", "psd_kernel")


def check_gamma(name, value):
    """Raise unless `value` is the rate of a kernel: a number above 0, or "scale"."""
    if isinstance(value, str):
        check_choice(name, value, ("scale",))
    else:
        check_real(name, value, 0, np.inf, include_low=False)


class PairwiseHMMDistance(
    ModelsMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Represent a model by its distances to the reference models.

    `fit` keeps the models of the training data as references. The result feeds
    scikit-learn's estimators with ``metric="precomputed"`` or, as a kernel,
    ``kernel="precomputed"``.

    Parameters
    ----------
    metric : {"maw", "iaw", "jaw", "kl", "coupling", "mmd"} or object, default="maw"
        Distance between two models.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw"
        and "iaw", 0.5 for "jaw". Must be None if the distance has no components, or if
        `metric` is an object, which has its own.

    p : float in (0, 2], default=None
        Order of the distance, by default 1. Must be None if the distance has no
        order, or if `metric` is an object, which has its own.

    metric_params : dict, default=None
        Further parameters of the distance.

    output : {"distance", "kernel", "psd_kernel", "components"}, default="distance"
        What `transform` returns: distances :math:`d`; the kernel
        :math:`e^{-\gamma d}`, in which negative distances count as 0; the same kernel
        made positive semidefinite (see Notes); or the marginal and the transition
        component, which :class:`AlphaMixer` turns into distances for any `alpha`.

    gamma : float or "scale", default="scale"
        Rate of the kernel, if `output` is one. "scale" is 1 divided by the median of
        the finite distances between different training models.

    hmm : transformer, default=None
        Turns sequences into models; it is cloned, and fitted on the training
        sequences. By default ``HMMTransformer()``; None if `X` is an `HMMBatch`.

    n_jobs : int, default=None
        Number of joblib workers for the distances, threads by default.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    models_ : HMMBatch
        The reference models.

    hmm_ : transformer or None
        The fitted `hmm`; None if `fit` was given models.

    gamma_ : float
        Rate of the kernel, if `output` is a kernel.

    projection_ : ndarray of shape (n_models_fit, n_models_fit)
        Matrix that makes the kernel positive semidefinite, if `output` is "psd_kernel".

    n_features_in_ : int
        Number of features of the models or sequences; number of columns if `fit` was
        given a 2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences or models with names; names
        of the columns, if it was given distances in a data frame.

    See Also
    --------
    AlphaMixer : Turns components into distances.
    pairwise_hmm_distances : The same distances, from a function.

    Notes
    -----
    The aggregated distances are semi-metrics, so the kernel matrix :math:`K` of the
    training models may have negative eigenvalues, which :class:`sklearn.svm.SVC`
    tolerates but its theory does not. With :math:`K = U \Lambda U^T` and the
    projection :math:`P = U_+ U_+^T` onto the eigenvectors of positive eigenvalues,
    "psd_kernel" gives :math:`K P = U \Lambda_+ U^T` for the training models, the
    nearest positive semidefinite matrix, and :math:`k P` for a row :math:`k` of kernel
    values between a new model and the training models. The linear map is the same, so a
    training model gets the same row in `fit_transform` and in `transform`.

    The kernel of "mmd" is positive semidefinite without this: :math:`d` is a distance
    between points of a Euclidean space, so :math:`d^2` is conditionally negative
    definite, and so is its root.

    Infinite distances have kernel value 0. NaN raises an error.

    Examples
    --------
    Two models that differ in their states and in how they move between them:

    >>> from skawhmm import HMMBatch, HMMTransformer, PairwiseHMMDistance
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]],
    ...     means=[[[0.0], [2.0]], [[1.0], [3.0]]],
    ...     covars=[[[1.0], [1.0]], [[1.0], [1.0]]],
    ... )
    >>> PairwiseHMMDistance(alpha=0.5).fit_transform(models)
    array([[0. , 1.3],
           [1.3, 0. ]])

    Sequences classified by a support vector machine on the kernel:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=40, separation=3, random_state=0)
    >>> hmm = HMMTransformer(n_components=3, random_state=0)
    >>> kernel = PairwiseHMMDistance(hmm=hmm, output="psd_kernel")
    >>> svm = make_pipeline(kernel, SVC(kernel="precomputed"))
    >>> svm.fit(X[:20], y[:20]).score(X[20:], y[20:])
    1.0
    """

    _parameter_checks: ClassVar = {
        **ModelsMixin._parameter_checks,
        "output": partial(check_choice, choices=OUTPUTS),
        "gamma": check_gamma,
    }
    _unused: ClassVar = (
        Unused(("gamma",), "output", lambda output: output not in KERNELS),
        Unused(("alpha",), "output", partial(eq, "components")),
    )
    _read_later: ClassVar = METRIC_NAMES | {"output"}

    def __init__(
        self,
        metric: Any = "maw",
        *,
        alpha: float | None = None,
        p: float | None = None,
        metric_params: Mapping[str, Any] | None = None,
        output: str = "distance",
        gamma: float | str = "scale",
        hmm: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.alpha = alpha
        self.p = p
        self.metric_params = metric_params
        self.output = output
        self.gamma = gamma
        self.hmm = hmm
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike | None = None) -> "PairwiseHMMDistance":
        """Keep the models of `X` as references.

        Parameters
        ----------
        X : HMMBatch or list of array-like of shape (n_timesteps, n_features)
            Models or sequences; sequences may also be a 3-D array padded by NaN, or a
            2-D array whose rows are univariate.

        y : array-like of shape (n_models,), default=None
            Labels, given to `hmm` and not used otherwise.

        Returns
        -------
        self : PairwiseHMMDistance
            The fitted transformer.
        """
        self._fit(X, y, self._begin_fit())
        return self

    @all_or_nothing
    def fit_transform(self, X: Any, y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Keep the models of `X` as references; return their pairwise distances.

        Parameters
        ----------
        X : HMMBatch or list of array-like of shape (n_timesteps, n_features)
            Models or sequences, as in `fit`.

        y : array-like of shape (n_models,), default=None
            Labels, given to `hmm` and not used otherwise.

        Returns
        -------
        distances : ndarray of shape (n_models, n_models[, 2])
            As `transform` returns them.
        """
        metric = self._begin_fit()
        distances = self._fit(X, y, metric)
        if distances is None:
            return self._between(self.models_, metric)
        return self._kernel(distances)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the distances of the models of `X` to the reference models.

        Parameters
        ----------
        X : HMMBatch or list of array-like of shape (n_timesteps, n_features)
            Models or sequences, as in `fit`.

        Returns
        -------
        distances : ndarray of shape (n_models, n_models_fit[, 2])
            Distances or kernel values; with ``output="components"`` a stack of two
            matrices along the last axis.
        """
        metric = self._check_ready()
        return self._between(self._models(X), metric)

    def _fit(self, X, y, metric):
        """Fit; return the distances between the references if they were computed."""
        self.models_ = self._learned_models(self._checked(X, y, reset=True), y)
        self._n_features_out = len(self.models_)
        for name in {"gamma_", "projection_"} & vars(self).keys():
            delattr(self, name)
        if self.output not in KERNELS:
            return None
        distances = all_pairs(
            self.models_,
            self.models_,
            metric,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self.gamma_ = _scale(distances) if self.gamma == "scale" else float(self.gamma)
        if self.output == "psd_kernel":
            kernel = _similarities(distances, self.gamma_)
            self.projection_ = _positive_projection(kernel)
        return distances

    def _between(self, models, metric):
        work = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        if self.output == "components":
            return all_pairs(models, self.models_, metric, "components", (2,), **work)
        distances = all_pairs(models, self.models_, metric, **work)
        return distances if self.output == "distance" else self._kernel(distances)

    def _kernel(self, distances):
        kernel = _similarities(distances, self.gamma_)
        return kernel @ self.projection_ if self.output == "psd_kernel" else kernel

    def _changeable(self):
        before = self._fitted_params["output"]
        has_learned = before in KERNELS or self.output in KERNELS
        return frozenset() if has_learned else super()._changeable()

    def _check_parameters(self):
        metric = super()._check_parameters()
        if self.output == "components":
            check_aggregated(metric, self.metric, " with output='components'")
        if self.output == "psd_kernel" and not metric.symmetric:
            raise ValueError(
                'output must not be "psd_kernel" with a distance that is not '
                f"symmetric, got metric={self.metric!r}."
            )
        return metric


class AlphaMixer(
    EstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Mix marginal and transition components into distances.

    Compute the components of all pairs once and search over `alpha` afterwards:
    scikit-learn's cross-validation selects the rows and columns of each fold.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Weight of the transition component in the distance.

    Attributes
    ----------
    n_features_in_ : int
        Number of reference models.

    See Also
    --------
    PairwiseHMMDistance : Computes the components, with ``output="components"``.
    KNeighborsHMMClassifierCV : A search over `alpha` for nearest neighbours.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import Pipeline
    >>> from skawhmm import AlphaMixer, HMMTransformer, PairwiseHMMDistance
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(40, differ_in="transitions", random_state=0)
    >>> hmm = HMMTransformer(n_components=3, random_state=0)
    >>> components = PairwiseHMMDistance(hmm=hmm, output="components").fit_transform(X)
    >>> knn = KNeighborsClassifier(metric="precomputed")
    >>> pipe = Pipeline([("mix", AlphaMixer()), ("knn", knn)])
    >>> grid = {"mix__alpha": [0, 0.25, 0.5, 0.75, 1], "knn__n_neighbors": [1, 3]}
    >>> search = GridSearchCV(pipe, grid, cv=4).fit(components, y)
    >>> search.best_params_["mix__alpha"], float(search.best_score_)
    (0.5, 1.0)
    """

    _parameter_checks: ClassVar = {"alpha": partial(check_real, low=0, high=1)}
    _read_later: ClassVar = frozenset({"alpha"})

    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = alpha

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> "AlphaMixer":  # noqa: ARG002
        """Check the parameter and learn the number of reference models.

        Parameters
        ----------
        X : array-like of shape (n_models, n_models, 2)
            Marginal and transition components between the reference models. A plain
            distance matrix of shape (n_models, n_models) is also accepted; `transform`
            returns it unchanged, and `alpha` must keep its default.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : AlphaMixer
            The fitted transformer.
        """
        self._begin_fit()
        stack = check_precomputed(self, X, reset=True, square=True)
        self._mixed(stack)
        self._n_features_out = stack.shape[1]
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the distances mixed from components.

        Parameters
        ----------
        X : array-like of shape (n_models, n_models_fit, 2)
            Components, or plain distances, as in `fit`.

        Returns
        -------
        distances : ndarray of shape (n_models, n_models_fit)
            Distances.
        """
        self._check_ready()
        return self._mixed(check_precomputed(self, X, reset=False))

    def _mixed(self, X):
        if X.ndim == 3:
            return mixed_precomputed(X, self.alpha)
        default = defaults_of(type(self))["alpha"]
        check_unused("alpha", self.alpha, default, "if X holds distances")
        return X

    @property
    def _precomputed(self):
        return True


def _scale(distances):
    """Return 1 / median distance between different models; 1 if that is undefined."""
    others = distances[~np.eye(len(distances), dtype=bool)]
    others = others[np.isfinite(others)]
    median = np.median(others) if len(others) else 0
    # The reciprocal of a tiny median may overflow.
    return min(1 / float(median), sys.float_info.max) if median > 0 else 1.0


def _similarities(distances, gamma):
    """Return kernel values; estimated distances below 0 count as 0."""
    with np.errstate(over="ignore"):
        return np.exp(-gamma * np.maximum(distances, 0.0))


def _positive_projection(kernel):
    """Return the projection onto the eigenvectors of positive eigenvalues."""
    values, vectors = in_batches(np.linalg.eigh, kernel)
    kept = vectors[:, values > 0]
    return kept @ kept.T
