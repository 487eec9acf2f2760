"""What the classifier and the regressor over views share."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import check_consistent_length, column_or_1d

from skawhmm._estimator import EstimatorMixin, check_frames_or_symbols
from skawhmm.classification._default_views import make_views
from skawhmm.classification._explanation import (
    Explanation,
    check_levels,
    feature_fields,
    feature_groups,
)
from skawhmm.classification._ridge import dealt_folds
from skawhmm.classification._view_fit import Problem, learn_dual, learn_primal
from skawhmm.classification._views import SEQUENCE_BLOCK, all_vectors
from skawhmm.utils._checks import (
    check_choice,
    check_integer,
    check_numbers,
    check_optional,
    check_real,
)
from skawhmm.utils._parameters import Unused

ALPHAS = (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
GAMMAS = (0.0, 0.5, 2.0)
# The dual solver needs a matrix of all pairs of training sequences, and a time that
# grows with the third power of their number.
DUAL_SEQUENCES = 3000
SOLVERS = {"dual": learn_dual, "primal": learn_primal}


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
        "max_rank": partial(check_optional, check=partial(check_integer, low=1)),
    }
    _unused: ClassVar = (
        Unused(("max_rank",), "solver", lambda solver: solver == "dual"),
        Unused(("score_scale",), "views", lambda views: len(views or "default") == 1),
    )

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
        self._check_ready()
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
        for name, view in self._named_views() if deep else ():
            params[name] = view
            inner = view.get_params(deep=True)
            params.update({f"{name}__{key}": value for key, value in inner.items()})
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
        if any(name in params for name, _ in self._named_views()):
            self.views = [(name, params.pop(name, view)) for name, view in self.views]
        super().set_params(**params)
        return self

    def _named_views(self):
        """Return names and views that have parameters of their own.

        What was set may be wrong: `fit` checks it.
        """
        given = self.views if isinstance(self.views, list | tuple) else []
        pairs = [v for v in given if isinstance(v, list | tuple) and len(v) == 2]
        return [
            (name, view)
            for name, view in pairs
            if hasattr(view, "get_params") and not isinstance(view, type)
        ]

    def _check_parameters(self):
        super()._check_parameters()
        clash = {name for name, _ in self.views or ()} & self._params().keys()
        if clash:
            raise ValueError(
                f"views must not be named as a parameter, got {min(clash)!r}."
            )

    def _learn(self, sequences, targets, weights, folds, score, rng):
        """Learn views and ridge; return the predictions for folds left out."""
        few = len(sequences) <= DUAL_SEQUENCES
        self.solver_ = self.solver
        if self.solver == "auto":
            self.solver_ = "dual" if few else "primal"
        gammas = _ascending(self.gammas)
        if self.solver_ == "primal" and gammas not in ([0.0], _ascending(GAMMAS)):
            raise ValueError(
                "gammas must be 0, the linear kernel, or the default with "
                f"solver='primal', which has no other kernel, got {self.gammas!r}."
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
        everything = np.sort(np.concatenate([np.empty(0, int), *folds]))
        if len(folds) < 2 or not np.array_equal(everything, np.arange(n_rows)):
            raise ValueError(
                "The folds of cv must be at least 2 and hold each sequence once, got "
                f"{len(folds)} folds of {len(everything)} among {n_rows} sequences."
            )
        return folds

    def _decided(self, X):
        """Return decisions of shape (n_sequences, n_targets), block by block."""
        self._check_ready()
        sequences = check_frames_or_symbols(self, X, reset=False)
        found = []
        for first in range(0, len(sequences), SEQUENCE_BLOCK):
            block = sequences[first : first + SEQUENCE_BLOCK]
            parts = [all_vectors(view, block) for _, view in self.views_]
            found.append(self._decision.decide(parts))
        return np.concatenate(found)


def _ascending(numbers):
    return sorted(np.atleast_1d(np.asarray(numbers, dtype=np.float64)).tolist())
