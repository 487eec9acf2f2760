"""The classifier and the regressor: one ridge over several views."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import (
    check_array,
    column_or_1d,
)
from sklearn.utils.class_weight import compute_class_weight

from skawhmm._estimator import check_classes, check_targets
from skawhmm.classification._base import (
    GAMMAS,
    PENALTIES,
    ViewRidge,
    content_order,
)
from skawhmm.classification._ridge import explained_variance, weighted_accuracy
from skawhmm.utils._checks import check_one_each
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._numbers import real_array
from skawhmm.utils._seeds import random_stream

# Bounds of the logarithm of the factor that turns decisions into log odds.
SHARPNESS = (np.log(1e-3), np.log(1e3))


class HMMViewClassifier(ClassifierMixin, ViewRidge):
    r"""Classify sequences by a ridge regression on several views of them.

    A view turns a sequence into a vector: its statistics under reference hidden Markov
    models of some channels, say, or frequencies of pairs of symbols. All views feed one
    ridge regression on the classes, in which views that classify well on their own
    weigh more. :func:`make_classifier` returns this classifier with views that suit
    most data.

    Each view is centred and scaled to unit variance. Its inner score :math:`s` is the
    balanced accuracy of a ridge on this view alone in cross-validation on the training
    sequences, minus the squared error. The weights of views are proportional to
    :math:`e^{s / 0.02}`. The penalty and the kernel of the final ridge have the best
    inner score. Everything is learned in `fit`.

    Parameters
    ----------
    views : list of (str, transformer), default=None
        Names and transformers that make one vector per sequence. They are cloned, and
        fitted without the classes. By default those of :func:`make_views`.

    penalties : float or sequence of float, default=(0.0001, ..., 10)
        Penalties of the ridge to try. The variance of all features together is 1. By
        default nine, from 0.0001 to 10.

    gammas : float or sequence of float, default=(0, 0.5, 2)
        Kernels to try: 0 is linear, others are :math:`e^{-\gamma d^2 / m}` with the
        median :math:`m` of the squared distances :math:`d^2`.

    cv : int, splitter or iterable, default=5
        Inner folds. An integer is the number of folds of
        :class:`sklearn.model_selection.StratifiedKFold` or, with groups,
        :class:`sklearn.model_selection.StratifiedGroupKFold`, shuffled; there are fewer
        if every class has fewer members, or if there are fewer groups. scikit-learn
        warns of classes with fewer members than folds.

    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the ridge and in the inner score: "balanced" gives all
        classes equal weight, a dict gives a weight per class, and None gives all
        sequences equal weight.

    solver : {"auto", "dual", "primal"}, default="auto"
        "dual" works with all pairs of training sequences, "primal" with all pairs of
        features; the latter only has a linear kernel (`gammas` must be the default, or
        0). "auto" is "dual" up to 3000 sequences.

    max_rank : int or None, default=512
        The primal solver replaces views with more features by this many principal
        coordinates; None keeps all features, as the dual solver always does. With
        ``solver="dual"`` it must be the default.

    n_jobs : int, default=None
        Number of joblib workers for the ridges, and for the default views.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the folds, and of the default views.

    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.

    views_ : list of (str, transformer)
        The fitted views.

    view_scores_ : dict of float
        Inner score of each view alone.

    view_weights_ : dict of float
        Weight of each view; they sum to 1.

    penalty_, gamma_ : float
        The chosen penalty and kernel.

    inner_score_ : float
        Inner score of the final ridge. It is slightly optimistic, because weights,
        penalty and kernel are chosen by such scores.

    solver_ : {"dual", "primal"}
        The solver that was used.

    sharpness_ : float
        Factor by which `predict_proba` multiplies decisions.

    n_features_in_ : int
        Number of features of a frame; of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences that have names.

    See Also
    --------
    make_classifier : The same with views chosen for you.
    HMMViewRegressor : The same for numbers.
    ExplanationDisplay : A picture of the contributions to decisions.

    Notes
    -----
    Views are fitted once, to all training sequences, and never see the classes, so
    inner folds share them. With more than 10 000 training sequences they are fitted to
    10 000 drawn at random. The dual solver scores views and kernels by at most 1000
    sequences. The order of the training sequences changes nothing. The primal solver
    keeps 4 bytes per sequence and coordinate of the default views, and works on a few
    thousand sequences at a time (``benchmarks/bench_classifier.py``).

    Probabilities are the softmax of `sharpness_` times the decisions. The factor is the
    one with the least log loss for the decisions about folds that were left out, with
    the weights of the classes, so classes are equally probable beforehand if they are
    balanced.

    Examples
    --------
    The default views, and one of your own:

    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from skawhmm.classification import HMMViewClassifier, make_views
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=60, random_state=0)
    >>> lengths = FunctionTransformer(lambda X: np.array([[len(x)] for x in X]))
    >>> views = [*make_views(random_state=0), ("length", lengths)]
    >>> classifier = HMMViewClassifier(views, random_state=0).fit(X[:40], y[:40])
    >>> classifier.score(X[40:], y[40:])
    1.0
    >>> max(classifier.view_weights_, key=classifier.view_weights_.get)
    'deltas'
    """

    def __init__(
        self,
        views: Sequence[tuple[str, Any]] | None = None,
        *,
        penalties: float | Sequence[float] = PENALTIES,
        gammas: float | Sequence[float] = GAMMAS,
        cv: Any = 5,
        class_weight: str | Mapping[Any, float] | None = "balanced",
        solver: str = "auto",
        max_rank: int | None = 512,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.penalties = penalties
        self.gammas = gammas
        self.cv = cv
        self.class_weight = class_weight
        self.solver = solver
        self.max_rank = max_rank
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None
    ) -> "HMMViewClassifier":
        """Fit the views, their weights and the ridge regression.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Training sequences; also a 3-D array padded by NaN, a 2-D array whose rows
            are univariate sequences or, if the views take symbols, a list of texts.

        y : array-like of shape (n_sequences,)
            Classes.

        groups : array-like of shape (n_sequences,), default=None
            Groups that inner folds keep together, such as subjects or speakers.

        Returns
        -------
        self : HMMViewClassifier
            The fitted classifier.
        """
        self._begin_fit()
        labels = check_classes(y, type(self).__name__)
        sequences = self._training(X, y)
        check_one_each(sequences, labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes in y, got 1 class."
            )
        own = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        weights = np.asarray(own, dtype=np.float64)[codes]
        targets = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        rng = random_stream(self.random_state)
        order = content_order(sequences, targets)
        folds = self._folds(codes, groups, order, rng)
        weights, codes = weights[order], codes[order]
        held_out = self._learn(
            self._used_views(groups),
            sequences.taken(order),
            targets[order],
            weights,
            folds,
            weighted_accuracy,
            rng,
        )
        self.sharpness_ = calibrated_sharpness(held_out, codes, weights)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision values: the larger, the more likely the class.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        decisions : ndarray of shape (n_sequences,) or (n_sequences, n_classes)
            Near 1 for the class of a sequence and -1 for others; with two classes, only
            the decisions for the second one.
        """
        decisions = self._decided(X)
        return decisions[:, 1] if len(self.classes_) == 2 else decisions

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each sequence.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        classes : ndarray of shape (n_sequences,)
            The classes with the largest decisions.
        """
        decisions = self._decided(X)
        return self.classes_[decisions.argmax(axis=1)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of classes, calibrated on the training data.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        probabilities : ndarray of shape (n_sequences, n_classes)
            Rows sum to 1; the predicted class has the largest probability.
        """
        decisions = self._decided(X)
        return softmax(self.sharpness_ * decisions, axis=1)


class HMMViewRegressor(RegressorMixin, ViewRidge):
    """Predict a number per sequence by a ridge regression on several views of it.

    It is :class:`HMMViewClassifier` for numbers, such as an age or a severity. The
    inner score of a view is the fraction of the variance that it explains in folds that
    are left out.

    Parameters
    ----------
    views : list of (str, transformer), default=None
        Names and transformers that make one vector per sequence. They are cloned, and
        fitted without the targets. By default those of :func:`make_views`.

    penalties : float or sequence of float, default=(0.0001, ..., 10)
        Penalties of the ridge to try. The variance of all features together is 1. By
        default nine, from 0.0001 to 10.

    gammas : float or sequence of float, default=(0, 0.5, 2)
        Kernels to try: 0 is linear, others are radial, with rates in units of the
        median squared distance.

    cv : int, splitter or iterable, default=5
        Inner folds. An integer is the number of shuffled folds, which keep groups
        together; there are fewer if there are fewer sequences or groups.

    solver : {"auto", "dual", "primal"}, default="auto"
        "dual" works with all pairs of training sequences, "primal" with all pairs of
        features; the latter only has a linear kernel (`gammas` must be the default, or
        0). "auto" is "dual" up to 3000 sequences.

    max_rank : int or None, default=512
        The primal solver replaces views with more features by this many principal
        coordinates; None keeps all features, as the dual solver always does. With
        ``solver="dual"`` it must be the default.

    n_jobs : int, default=None
        Number of joblib workers for the ridges, and for the default views.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the folds, and of the default views.

    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    views_ : list of (str, transformer)
        The fitted views.

    view_scores_ : dict of float
        Inner score of each view alone.

    view_weights_ : dict of float
        Weight of each view; they sum to 1.

    penalty_, gamma_ : float
        The chosen penalty and kernel.

    inner_score_ : float
        Inner score of the final ridge.

    solver_ : {"dual", "primal"}
        The solver that was used.

    n_features_in_ : int
        Number of features of a frame; of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences that have names.

    See Also
    --------
    make_regressor : The same with views chosen for you.
    HMMViewClassifier : The same for classes.

    Examples
    --------
    Predict how often a sequence switches between two levels:

    >>> import numpy as np
    >>> from skawhmm import make_regressor
    >>> rng = np.random.default_rng(0)
    >>> rates = rng.uniform(0.05, 0.5, size=80)
    >>> X = [np.cumsum(rng.random((300, 1)) < rate, axis=0) % 2.0 for rate in rates]
    >>> regressor = make_regressor(random_state=0).fit(X[:60], rates[:60])
    >>> round(regressor.score(X[60:], rates[60:]), 1)
    0.9
    """

    def __init__(
        self,
        views: Sequence[tuple[str, Any]] | None = None,
        *,
        penalties: float | Sequence[float] = PENALTIES,
        gammas: float | Sequence[float] = GAMMAS,
        cv: Any = 5,
        solver: str = "auto",
        max_rank: int | None = 512,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.penalties = penalties
        self.gammas = gammas
        self.cv = cv
        self.solver = solver
        self.max_rank = max_rank
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None
    ) -> "HMMViewRegressor":
        """Fit the views, their weights and the ridge regression.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Training sequences; also a 3-D array padded by NaN, a 2-D array whose rows
            are univariate sequences or, if the views take symbols, a list of texts.

        y : array-like of shape (n_sequences,) or (n_sequences, n_targets)
            Target numbers.

        groups : array-like of shape (n_sequences,), default=None
            Groups that inner folds keep together, such as subjects or speakers.

        Returns
        -------
        self : HMMViewRegressor
            The fitted regressor.
        """
        self._begin_fit()
        numbers = check_array(
            real_array("y", check_targets(y, type(self).__name__)),
            ensure_2d=False,
            dtype=np.float64,
            input_name="y",
        )
        sequences = self._training(X, y)
        check_one_each(sequences, numbers)
        if numbers.ndim == 2 and numbers.shape[1] == 1:
            numbers = column_or_1d(numbers, warn=True)
        self._is_single = numbers.ndim == 1
        targets = numbers.reshape(len(numbers), -1)
        weights = np.ones(len(targets))
        rng = random_stream(self.random_state)
        order = content_order(sequences, targets)
        folds = self._folds(np.zeros(len(targets), np.int64), groups, order, rng)
        self._learn(
            self._used_views(groups),
            sequences.taken(order),
            targets[order],
            weights,
            folds,
            explained_variance,
            rng,
        )
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted number of each sequence.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        predicted : ndarray of shape (n_sequences,) or (n_sequences, n_targets)
            The numbers.
        """
        predicted = self._decided(X)
        return predicted[:, 0] if self._is_single else predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks pass tables whose columns are not time steps.
        tags.regressor_tags.poor_score = True
        tags.target_tags.multi_output = True
        return tags


def calibrated_sharpness(decisions, codes, weights):
    """Return the factor of decisions whose softmax has the least log loss.

    The decisions are about held-out sequences with these classes and weights.
    """
    n_rows, n_classes = decisions.shape
    targets = np.zeros(decisions.shape)
    targets[np.arange(n_rows), codes] = 1.0
    # One more sequence of each class keeps the factor finite if all are correct.
    targets = (n_rows * targets + 1.0) / (n_rows + n_classes)

    def loss(log_factor):
        logs = log_softmax(np.exp(log_factor) * decisions, axis=1)
        return -weights @ (targets * logs).sum(axis=1)

    found = minimize_scalar(loss, bounds=SHARPNESS, method="bounded")
    return float(np.exp(found.x))
