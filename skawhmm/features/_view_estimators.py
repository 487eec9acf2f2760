"""The recommended classifier and regressor: one ridge over several views."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.pipeline import make_pipeline, make_union
from sklearn.utils import (
    check_array,
    check_consistent_length,
    check_random_state,
    column_or_1d,
)
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from skawhmm._base import (
    EstimatorMixin,
    check_classes,
    check_frames_or_symbols,
    check_targets,
)
from skawhmm.features._embedding import HMMEmbedding
from skawhmm.features._explanation import (
    Explanation,
    check_levels,
    feature_fields,
    feature_groups,
)
from skawhmm.features._fold_ridge import (
    dealt_folds,
    explained_variance,
    weighted_accuracy,
)
from skawhmm.features._ngrams import NGrams
from skawhmm.features._view_fit import Problem, learn_dual, learn_primal
from skawhmm.features._views import SEQUENCE_BLOCK, all_vectors
from skawhmm.sequences._preprocessing import Deltas, TimeChannel
from skawhmm.utils._checks import (
    check_choice,
    check_integer,
    check_numbers,
    check_real,
)

ALPHAS = (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
GAMMAS = (0.0, 0.5, 2.0)
LAGS = (1, 2, 4, 8)
# The dual solver needs a matrix of all pairs of training sequences, and a time that
# grows with the third power of their number.
DUAL_SEQUENCES = 3000
SOLVERS = {"dual": learn_dual, "primal": learn_primal}
# Bounds of the logarithm of the factor that turns decisions into log odds.
SHARPNESS = (np.log(1e-3), np.log(1e3))


def check_views(name, value):
    """Return views as a list of names and transformers, or raise.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : object
        What was given: pairs of a name and a transformer, or None.

    Returns
    -------
    views : list of tuple
        The pairs; none if None was given.
    """
    if value is None:
        return []
    wanted = f"{name} must be a list of pairs of a name and a transformer"
    if not isinstance(value, list | tuple):
        raise TypeError(f"{wanted}, got {value!r}.")
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(f"{wanted}, got {pair!r} among them.")
        label, view = pair
        able = all(hasattr(view, member) for member in ("fit", "transform"))
        if not isinstance(label, str) or isinstance(view, type) or not able:
            raise TypeError(f"{wanted}, got {pair!r} among them.")
        if not label or "__" in label:
            raise ValueError(
                f"{name} must have names without double underscores, got {label!r}."
            )
    labels = [label for label, _ in value]
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"{name} must have distinct names, got {labels}.")
    return list(value)


def check_inner_cv(name, value):
    """Raise unless `value` is a number of folds, or can make them.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : object
        The value to check.
    """
    able = hasattr(value, "split") or isinstance(value, list | tuple)
    if isinstance(value, str | type) or not able:
        check_integer(name, value, 2)


def check_class_weight(name, value):
    """Raise unless `value` says how classes are weighted.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : object
        The value to check: "balanced", None, or a weight by class.
    """
    if value is not None and not isinstance(value, Mapping):
        check_choice(name, value, ("balanced",))
    for label, weight in value.items() if isinstance(value, Mapping) else ():
        check_real(f"{name}[{label!r}]", weight, 0, np.inf, include_low=False)


def check_penalties(name, value):
    """Raise unless `value` is a penalty above 0, or several.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : object
        The value to check.
    """
    positive = partial(check_real, low=0, high=np.inf, include_low=False)
    check_numbers(name, value, positive)


def check_rank(name, value):
    """Raise unless `value` is a number of coordinates, or None.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : object
        The value to check.
    """
    if value is not None:
        check_integer(name, value, 1)


class ViewRidge(EstimatorMixin, BaseEstimator):
    """Base of the estimators with one ridge over several views."""

    views: Any
    alphas: Any
    gammas: Any
    score_scale: float
    cv: Any
    solver: str
    max_rank: int | None
    n_jobs: int | None
    random_state: Any
    verbose: int

    _parameter_checks: ClassVar = {
        **EstimatorMixin._parameter_checks,
        "views": check_views,
        "alphas": check_penalties,
        "gammas": partial(check_numbers, check=partial(check_real, low=0, high=np.inf)),
        "score_scale": partial(check_real, low=0, high=np.inf, include_low=False),
        "cv": check_inner_cv,
        "class_weight": check_class_weight,
        "solver": partial(check_choice, choices=("auto", *SOLVERS)),
        "max_rank": check_rank,
    }

    def explain(
        self, X: Any, by: str | Sequence[str] = ("view", "block")
    ) -> Explanation:
        """Return what the decisions about some sequences rest on.

        Features are put in groups by their view and by what they measure. The share of
        a group is the decision less the decision with all features of the group at
        their means in the training data. With a linear kernel (``gamma_ == 0``) the
        shares of all groups, and a constant, add up to the decision.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        by : str or sequence of str, default=("view", "block")
            What tells groups apart: some of "view", "reference", "block", "state",
            "channel" and "feature". All but "view" and "feature" are read off the names
            of features that :class:`HMMEmbedding` gives; features of other
            transformers have none of them.

        Returns
        -------
        explanation : Explanation
            The shares.
        """
        check_is_fitted(self)
        levels = check_levels("by", by)
        sizes = [len(view.mean) for view in self._decision.views]
        labels, groups = feature_groups(feature_fields(self.views_, sizes), levels)
        sequences = check_frames_or_symbols(self, X, reset=False)
        parts = [all_vectors(view, sequences) for _, view in self.views_]
        return Explanation(
            labels,
            self._decision.shares(parts, groups),
            self._decision.decide(parts),
            getattr(self, "classes_", None),
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of the views if `deep`.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add the views by name, and their parameters as
            ``name__parameter``.

        Returns
        -------
        params : dict
            Values by name.
        """
        params = super().get_params(deep=deep)
        if deep and isinstance(self.views, list | tuple):
            for name, view in self.views:
                params[name] = view
                inner = view.get_params(deep=True)
                params.update({f"{name}__{key}": v for key, v in inner.items()})
        return params

    def set_params(self, **params: Any) -> "ViewRidge":
        """Set parameters, of views as ``name__parameter``; a name replaces a view.

        Parameters
        ----------
        **params : dict
            Values by name.

        Returns
        -------
        self : estimator
            The estimator.
        """
        if "views" in params:
            self.views = params.pop("views")
        if self.views is not None:
            pairs = [(name, params.pop(name, view)) for name, view in self.views]
            if any(
                new is not old
                for (_, new), (_, old) in zip(pairs, self.views, strict=True)
            ):
                self.views = pairs
        super().set_params(**params)
        return self

    def _check_parameters(self):
        super()._check_parameters()
        clash = {name for name, _ in self.views or ()} & self._params().keys()
        if clash:
            raise ValueError(
                f"views must not be named as a parameter, got {sorted(clash)[0]!r}."
            )

    def _learn(self, sequences, targets, weights, folds, score, rng):
        """Learn views and ridge; return the predictions for folds left out."""
        few = len(sequences) <= DUAL_SEQUENCES
        self.solver_ = self.solver
        if self.solver == "auto":
            self.solver_ = "dual" if few else "primal"
        gammas = _ascending(self.gammas)
        if self.solver_ == "primal" and gammas[0] > 0:
            raise ValueError(
                "gammas must hold 0, the linear kernel, with the primal solver, got "
                f"{self.gammas!r}."
            )
        views = self.views
        if views is None:
            views = make_views(n_jobs=self.n_jobs, random_state=self.random_state)
        problem = Problem(
            targets,
            weights,
            folds,
            _ascending(self.alphas),
            score,
            gammas,
            float(self.score_scale),
            self.max_rank,
            self.n_jobs,
            self.verbose,
        )
        learned = SOLVERS[self.solver_](views, sequences, problem, rng)
        names = [name for name, _ in views]
        self._decision = learned.decision
        self.views_ = [(view.name, view.transformer) for view in learned.decision.views]
        self.view_scores_ = dict(zip(names, learned.scores.tolist(), strict=True))
        self.view_weights_ = dict(zip(names, learned.weights.tolist(), strict=True))
        self.gamma_, self.alpha_ = learned.gamma, learned.ridge.alpha
        self.inner_score_ = learned.ridge.score
        return learned.ridge.held_out

    def _folds(self, codes, groups, rng):
        """Return the rows of each inner fold."""
        n_rows = len(codes)
        if n_rows < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 sequences, got n_samples = "
                f"{n_rows}."
            )
        if groups is not None:
            groups = column_or_1d(groups)
            check_consistent_length(codes, groups)
        if not isinstance(self.cv, int | np.integer):
            splits = check_cv(self.cv).split(np.zeros(n_rows), codes, groups)
            folds = [np.sort(np.asarray(test)) for _, test in splits]
        else:
            folds = dealt_folds(codes, groups, self.cv, rng)
        everything = np.sort(np.concatenate(folds))
        if len(folds) < 2 or not np.array_equal(everything, np.arange(n_rows)):
            raise ValueError(
                "The folds of cv must be at least 2 and hold each sequence once, got "
                f"{len(folds)} folds of {len(everything)} among {n_rows} sequences."
            )
        return folds

    def _decided(self, X):
        """Return decisions of shape (n_sequences, n_targets), block by block."""
        check_is_fitted(self)
        sequences = check_frames_or_symbols(self, X, reset=False)
        found = []
        for first in range(0, len(sequences), SEQUENCE_BLOCK):
            block = sequences[first : first + SEQUENCE_BLOCK]
            parts = [all_vectors(view, block) for _, view in self.views_]
            found.append(self._decision.decide(parts))
        return np.concatenate(found)


class HMMViewClassifier(ClassifierMixin, ViewRidge):
    r"""Classify sequences by one ridge over several views of them.

    A view turns a sequence into a vector: its statistics under reference hidden Markov
    models of some channels, say, or frequencies of pairs of symbols. All views feed one
    ridge regression on the classes, in which views that classify well alone weigh more.
    :func:`make_classifier` makes this classifier with views that suit most data.

    Each view is centred and scaled to unit variance. Its inner score :math:`s` is the
    balanced accuracy of a ridge on this view alone, for folds of the training sequences
    that are left out one at a time, less a hundredth of the squared error. The weights
    of views are proportional to :math:`e^{s / \tau}`. The penalty and the kernel of the
    whole are those with the best inner score. Everything is learned in `fit`.

    Parameters
    ----------
    views : list of (str, transformer), default=None
        Names and transformers that make one vector per sequence. They are cloned, and
        fitted without the classes. By default those of :func:`make_views`.

    alphas : float or sequence of float
        Penalties to try. The variance of all features together is 1.

    gammas : float or sequence of float, default=(0, 0.5, 2)
        Kernels to try: 0 is linear, others are :math:`e^{-\gamma d^2 / m}` with the
        median :math:`m` of the squared distances :math:`d^2`.

    score_scale : float, default=0.02
        The difference :math:`\tau` of inner scores at which the weights of two views
        differ by the factor e.

    cv : int, splitter or iterable, default=5
        Inner folds. An integer is the number of folds, which have about equal shares of
        each class and keep groups together.

    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes in the ridge and in the inner score: all classes alike,
        by class, or all sequences alike.

    solver : {"auto", "dual", "primal"}, default="auto"
        "dual" works with all pairs of training sequences, "primal" with pairs of
        features, and a linear kernel only. "auto" is "dual" up to 3000 sequences.

    max_rank : int or None, default=512
        Of a view with more features, the primal solver takes so many principal
        coordinates; None takes all features. The dual solver always does.

    n_jobs : int, default=None
        Number of joblib workers for the ridges, and for the default views.

    random_state : int, RandomState instance or None, default=None
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

    alpha_, gamma_ : float
        The chosen penalty and kernel.

    inner_score_ : float
        Inner score of the whole. It is a little too good for new sequences, because
        weights, penalty and kernel are chosen by such scores.

    solver_ : {"dual", "primal"}
        The solver that was used.

    sharpness_ : float
        Factor of decisions in `predict_proba`.

    n_features_in_ : int
        Number of features of a frame; of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if `fit` was given a data frame.

    See Also
    --------
    make_classifier : The same with views chosen for you.
    HMMViewRegressor : The same for numbers.
    ExplanationDisplay : What decisions rest on, as a picture.

    Notes
    -----
    Views are fitted once, to all training sequences, and never see the classes, so
    inner folds share them. With more than 10 000 training sequences they are fitted to
    as many, drawn at random. The primal solver needs 8 bytes per sequence and
    coordinate: 100 000 sequences with 4 views of 512 coordinates are 1.6 GB.

    Probabilities are the softmax of `sharpness_` times the decisions. The factor is the
    one with the least log loss for the decisions about folds that were left out, with
    the weights of the classes, so classes are equally probable beforehand if they are
    balanced.

    Examples
    --------
    The default views, and one of your own:

    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from skawhmm import HMMViewClassifier, make_views
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=60, random_state=0)
    >>> lengths = FunctionTransformer(lambda X: np.array([[len(x)] for x in X]))
    >>> views = [*make_views(random_state=0), ("length", lengths)]
    >>> classifier = HMMViewClassifier(views, random_state=0).fit(X[:40], y[:40])
    >>> classifier.score(X[40:], y[40:])
    1.0
    >>> {name: round(w, 2) for name, w in classifier.view_weights_.items()}
    """

    def __init__(
        self,
        views: Sequence[tuple[str, Any]] | None = None,
        *,
        alphas: float | Sequence[float] = ALPHAS,
        gammas: float | Sequence[float] = GAMMAS,
        score_scale: float = 0.02,
        cv: Any = 5,
        class_weight: str | Mapping[Any, float] | None = "balanced",
        solver: str = "auto",
        max_rank: int | None = 512,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.alphas = alphas
        self.gammas = gammas
        self.score_scale = score_scale
        self.cv = cv
        self.class_weight = class_weight
        self.solver = solver
        self.max_rank = max_rank
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None
    ) -> "HMMViewClassifier":
        """Learn views, weights and ridge.

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
        self._check_parameters()
        y = check_classes(y, type(self).__name__)
        sequences = check_frames_or_symbols(self, X, reset=True)
        check_consistent_length(sequences, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes in y, got 1 class."
            )
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        weights = weights[codes].astype(np.float64)
        targets = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        rng = check_random_state(self.random_state)
        folds = self._folds(codes, groups, rng)
        held_out = self._learn(
            sequences, targets, weights, folds, weighted_accuracy, rng
        )
        self.sharpness_ = calibrated_sharpness(held_out, codes, weights)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return how much speaks for each class.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        decisions : ndarray of shape (n_sequences,) or (n_sequences, n_classes)
            Near 1 for the class of a sequence and -1 for others; of two classes, only
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
            Rows sum to 1; the largest is that of the predicted class.
        """
        decisions = self._decided(X)
        return softmax(self.sharpness_ * decisions, axis=1)


class HMMViewRegressor(RegressorMixin, ViewRidge):
    """Predict a number for each sequence by one ridge over several views of it.

    It is :class:`HMMViewClassifier` for numbers, such as an age or a severity. The
    inner score of a view is the share of the variance that it explains in folds that
    are left out.

    Parameters
    ----------
    views : list of (str, transformer), default=None
        Names and transformers that make one vector per sequence. They are cloned, and
        fitted without the targets. By default those of :func:`make_views`.

    alphas : float or sequence of float
        Penalties to try. The variance of all features together is 1.

    gammas : float or sequence of float, default=(0, 0.5, 2)
        Kernels to try: 0 is linear, others are radial, with rates in units of the
        median squared distance.

    score_scale : float, default=0.02
        The difference of inner scores at which the weights of two views differ by the
        factor e.

    cv : int, splitter or iterable, default=5
        Inner folds. An integer is the number of folds, which keep groups together.

    solver : {"auto", "dual", "primal"}, default="auto"
        "dual" works with all pairs of training sequences, "primal" with pairs of
        features, and a linear kernel only. "auto" is "dual" up to 3000 sequences.

    max_rank : int or None, default=512
        Of a view with more features, the primal solver takes so many principal
        coordinates; None takes all features. The dual solver always does.

    n_jobs : int, default=None
        Number of joblib workers for the ridges, and for the default views.

    random_state : int, RandomState instance or None, default=None
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

    alpha_, gamma_ : float
        The chosen penalty and kernel.

    inner_score_ : float
        Inner score of the whole.

    solver_ : {"dual", "primal"}
        The solver that was used.

    n_features_in_ : int
        Number of features of a frame; of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if `fit` was given a data frame.

    See Also
    --------
    make_regressor : The same with views chosen for you.
    HMMViewClassifier : The same for classes.

    Examples
    --------
    How often a sequence changes its state:

    >>> import numpy as np
    >>> from skawhmm import make_regressor
    >>> rng = np.random.default_rng(0)
    >>> rates = rng.uniform(0.05, 0.5, size=80)
    >>> X = [np.cumsum(rng.random((100, 1)) < rate, axis=0) % 2.0 for rate in rates]
    >>> regressor = make_regressor(random_state=0).fit(X[:60], rates[:60])
    >>> round(regressor.score(X[60:], rates[60:]), 1)
    0.9
    """

    def __init__(
        self,
        views: Sequence[tuple[str, Any]] | None = None,
        *,
        alphas: float | Sequence[float] = ALPHAS,
        gammas: float | Sequence[float] = GAMMAS,
        score_scale: float = 0.02,
        cv: Any = 5,
        solver: str = "auto",
        max_rank: int | None = 512,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.alphas = alphas
        self.gammas = gammas
        self.score_scale = score_scale
        self.cv = cv
        self.solver = solver
        self.max_rank = max_rank
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None
    ) -> "HMMViewRegressor":
        """Learn views, weights and ridge.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Training sequences; also a 3-D array padded by NaN, a 2-D array whose rows
            are univariate sequences or, if the views take symbols, a list of texts.

        y : array-like of shape (n_sequences,) or (n_sequences, n_targets)
            Numbers.

        groups : array-like of shape (n_sequences,), default=None
            Groups that inner folds keep together, such as subjects or speakers.

        Returns
        -------
        self : HMMViewRegressor
            The fitted regressor.
        """
        self._check_parameters()
        y = check_array(
            check_targets(y, type(self).__name__),
            ensure_2d=False,
            dtype=np.float64,
            input_name="y",
        )
        sequences = check_frames_or_symbols(self, X, reset=True)
        check_consistent_length(sequences, y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        self._is_single = y.ndim == 1
        targets = y.reshape(len(y), -1)
        rng = check_random_state(self.random_state)
        folds = self._folds(np.zeros(len(y), np.int64), groups, rng)
        self._learn(sequences, targets, np.ones(len(y)), folds, explained_variance, rng)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the number of each sequence.

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


def _ascending(numbers):
    return sorted(np.atleast_1d(np.asarray(numbers, dtype=np.float64)).tolist())


def calibrated_sharpness(decisions, codes, weights):
    """Return the factor of decisions whose softmax has the least log loss.

    Parameters
    ----------
    decisions : ndarray of shape (n_sequences, n_classes)
        Decisions about sequences that were not learned from.

    codes : ndarray of int of shape (n_sequences,)
        Their classes.

    weights : ndarray of shape (n_sequences,)
        Weights of the sequences.

    Returns
    -------
    sharpness : float
        The factor.
    """
    n_rows, n_classes = decisions.shape
    aims = np.zeros(decisions.shape)
    aims[np.arange(n_rows), codes] = 1.0
    # One more sequence of each class keeps the factor finite if all is right.
    aims = (n_rows * aims + 1.0) / (n_rows + n_classes)

    def loss(log_factor):
        logs = log_softmax(np.exp(log_factor) * decisions, axis=1)
        return -weights @ (aims * logs).sum(axis=1)

    found = minimize_scalar(loss, bounds=SHARPNESS, method="bounded")
    return float(np.exp(found.x))


def frame_views(n_jobs, random_state):
    """Return views of frames: channel sets of the embedding."""

    def embedding():
        return HMMEmbedding(dtype=np.float32, n_jobs=n_jobs, random_state=random_state)

    return [
        ("frames", embedding()),
        ("deltas", make_pipeline(Deltas(), embedding())),
        ("lags", make_pipeline(Deltas(lags=LAGS), embedding())),
        ("position", make_pipeline(Deltas(lags=LAGS), TimeChannel(), embedding())),
    ]


def symbol_views(n_jobs, random_state):
    """Return views of symbols: states of reference models, and n-grams."""
    states = HMMEmbedding(
        emission="categorical",
        dtype=np.float32,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    apart = make_union(*(NGrams(2, lag) for lag in LAGS[1:]))
    return [
        ("states", states),
        ("symbols", NGrams(1)),
        ("pairs", NGrams(2)),
        ("triples", NGrams(3)),
        ("lags", apart),
    ]


VIEWS = {"gaussian": frame_views, "categorical": symbol_views}


def make_views(
    emission: str = "gaussian", *, n_jobs: int | None = None, random_state: Any = None
) -> list[tuple[str, Any]]:
    """Make the views of the recommended classifier.

    Of real frames they are vectors of :class:`HMMEmbedding`: of the channels ("frames"),
    with time derivatives ("deltas"), with derivatives over 1, 2, 4 and 8 frames ("lags"),
    and of the last and the position in the sequence ("position"). Of symbols they are
    vectors of reference models of symbols ("states"), and square roots of the
    frequencies of symbols, pairs, triples, and pairs 2, 4 and 8 apart ("lags").

    Parameters
    ----------
    emission : {"gaussian", "categorical"}, default="gaussian"
        Whether sequences hold real frames or symbols.

    n_jobs : int, default=None
        Number of joblib workers of each view.

    random_state : int, RandomState instance or None, default=None
        Seed of each view.

    Returns
    -------
    views : list of (str, transformer)
        Names and transformers, for :class:`HMMViewClassifier`.

    See Also
    --------
    make_classifier : A classifier with these views.

    Examples
    --------
    >>> from skawhmm import make_views
    >>> [name for name, _ in make_views("categorical")]
    ['states', 'symbols', 'pairs', 'triples', 'lags']
    """
    check_choice("emission", emission, tuple(VIEWS))
    return VIEWS[emission](n_jobs, random_state)


def make_classifier(
    emission: str = "gaussian",
    *,
    cv: Any = 5,
    class_weight: str | Mapping[Any, float] | None = "balanced",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> HMMViewClassifier:
    """Make the recommended classifier of sequences, for frames or for symbols.

    It is :class:`HMMViewClassifier` with the views of :func:`make_views`, and needs no
    tuning: what to use is learned from the training sequences.

    Parameters
    ----------
    emission : {"gaussian", "categorical"}, default="gaussian"
        Whether sequences hold real frames or symbols.

    cv : int, splitter or iterable, default=5
        Inner folds, by which penalty, kernel and weights of views are chosen. `fit`
        takes groups (subjects, speakers) that they keep together.

    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes.

    n_jobs : int, default=None
        Number of joblib workers.

    random_state : int, RandomState instance or None, default=None
        Seed of views and folds.

    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    classifier : HMMViewClassifier
        The classifier.

    See Also
    --------
    make_regressor : The same for numbers.

    Examples
    --------
    >>> from skawhmm import make_classifier
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=60, random_state=0)
    >>> classifier = make_classifier(random_state=0).fit(X[:40], y[:40])
    >>> classifier.score(X[40:], y[40:])
    1.0

    Texts are sequences of symbols:

    >>> texts = ["the cat sat", "a dog ran", "den katt satt", "en hund sprang"] * 3
    >>> classifier = make_classifier("categorical", cv=3, random_state=0)
    >>> classifier.fit(texts, ["en", "en", "sv", "sv"] * 3).predict(["hunden satt"])
    """
    return HMMViewClassifier(
        make_views(emission, n_jobs=n_jobs, random_state=random_state),
        cv=cv,
        class_weight=class_weight,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def make_regressor(
    emission: str = "gaussian",
    *,
    cv: Any = 5,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> HMMViewRegressor:
    """Make the recommended regressor of sequences, for frames or for symbols.

    It is :class:`HMMViewRegressor` with the views of :func:`make_views`.

    Parameters
    ----------
    emission : {"gaussian", "categorical"}, default="gaussian"
        Whether sequences hold real frames or symbols.

    cv : int, splitter or iterable, default=5
        Inner folds, by which penalty, kernel and weights of views are chosen. `fit`
        takes groups (subjects, speakers) that they keep together.

    n_jobs : int, default=None
        Number of joblib workers.

    random_state : int, RandomState instance or None, default=None
        Seed of views and folds.

    verbose : int, default=0
        Whether to show progress bars.

    Returns
    -------
    regressor : HMMViewRegressor
        The regressor.

    See Also
    --------
    make_classifier : The same for classes.

    Examples
    --------
    How often a sequence changes its state:

    >>> import numpy as np
    >>> from skawhmm import make_regressor
    >>> rng = np.random.default_rng(0)
    >>> rates = rng.uniform(0.05, 0.5, size=80)
    >>> X = [np.cumsum(rng.random((100, 1)) < rate, axis=0) % 2.0 for rate in rates]
    >>> regressor = make_regressor(random_state=0).fit(X[:60], rates[:60])
    >>> round(regressor.score(X[60:], rates[60:]), 1)
    0.9
    """
    return HMMViewRegressor(
        make_views(emission, n_jobs=n_jobs, random_state=random_state),
        cv=cv,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )
