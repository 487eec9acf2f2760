"""Base of the classifier and the regressor over views."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import eq
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import check_consistent_length, column_or_1d

from skawhmm._estimator import EstimatorMixin, check_frames_or_symbols
from skawhmm.classification._channels import RealChannels
from skawhmm.classification._explanation import (
    Explanation,
    check_levels,
    feature_fields,
    feature_groups,
)
from skawhmm.classification._ridge import Problem, learn_dual, learn_primal
from skawhmm.classification._views import (
    SEQUENCE_BLOCK,
    all_vectors,
    check_views,
    is_group_view,
    make_views,
)
from skawhmm.sequences._symbols import learned_symbols, symbol_codes
from skawhmm.sequences._trials import split_units
from skawhmm.utils._checks import (
    check_choice,
    check_integer,
    check_numbers,
    check_optional,
    check_real,
)
from skawhmm.utils._numbers import check_one_type
from skawhmm.utils._parameters import Unused
from skawhmm.utils._seeds import array_key

PENALTIES = (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
GAMMAS = (0.0, 0.5, 2.0)
# The dual solver needs a matrix of all pairs of training sequences, and its time grows
# with the cube of their number.
DUAL_SEQUENCES = 3000
SOLVERS = {"dual": learn_dual, "primal": learn_primal}

check_positive = partial(check_real, low=0, high=np.inf, include_low=False)
check_not_negative = partial(check_real, low=0, high=np.inf)


def check_inner_cv(name, value):
    """Raise unless `value` is a number of folds, a splitter or an iterable of folds."""
    able = hasattr(value, "split") or isinstance(value, list | tuple)
    if isinstance(value, str | type) or not able:
        check_integer(name, value, 2)


def check_class_weight(name, value):
    """Raise unless `value` is "balanced", None or a dict of weights per class."""
    if value is not None and not isinstance(value, Mapping):
        check_choice(name, value, ("balanced",))
    for label, weight in value.items() if isinstance(value, Mapping) else ():
        check_positive(f"{name}[{label!r}]", weight)


class ViewRidge(EstimatorMixin, BaseEstimator):
    """Base of the estimators with one ridge over several views."""

    views: Any
    penalties: Any
    gammas: Any
    cv: Any
    solver: str
    max_rank: int | None
    n_jobs: int | None
    random_state: Any
    verbose: int

    _parameter_checks: ClassVar = {
        **EstimatorMixin._parameter_checks,
        "views": check_views,
        "penalties": partial(check_numbers, check=check_positive),
        "gammas": partial(check_numbers, check=check_not_negative),
        "cv": check_inner_cv,
        "class_weight": check_class_weight,
        "solver": partial(check_choice, choices=("auto", *SOLVERS)),
        "max_rank": partial(check_optional, check=partial(check_integer, low=1)),
    }
    _unused: ClassVar = (Unused(("max_rank",), "solver", partial(eq, "dual")),)

    def explain(
        self, X: Any, by: str | Sequence[str] = ("view", "block")
    ) -> Explanation:
        """Return how much each group of features contributes to the decisions.

        By default features are grouped by their view and by what they measure. The
        contribution of a group is the decision minus the decision with all features of
        the group set to their training means. With a linear kernel (``gamma_ == 0``)
        the contributions of all groups, and a constant, add up to the decision.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        by : str or sequence of str, default=("view", "block")
            Levels by which features are grouped, out of "view", "reference", "block",
            "state", "channel", "signal" and "feature". A channel includes its time
            derivatives; a signal is the channel itself or one of its derivatives, such
            as "x0_lag2". All but "view" and "feature" are read from the feature names
            of :class:`HMMEmbedding`; the features of any other transformer form one
            group. Features that belong to no channel, such as transitions, are called
            "other".

        Returns
        -------
        explanation : Explanation
            The contributions.
        """
        self._check_ready()
        levels = check_levels("by", by)
        sizes = [len(view.mean) for view in self._decision.views]
        labels, groups = feature_groups(feature_fields(self.views_, sizes), levels)
        sequences = check_frames_or_symbols(self, X, reset=False)
        parts = [all_vectors(view, sequences) for _, view in self.views_]
        return Explanation(
            labels,
            self._decision.contributions(parts, groups),
            self._decision.decide(parts),
            getattr(self, "classes_", None),
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, including the parameters of the views if `deep`.

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
        return params | self._view_params() if deep else params

    def set_params(self, **params: Any) -> "ViewRidge":
        """Set parameters; ``name__parameter`` sets one of a view, ``name`` replaces it.

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
        names = {k for k in self._view_params() if "__" not in k} & params.keys()
        if names:
            union = FeatureUnion(list(self.views))
            union.set_params(**{name: params.pop(name) for name in names})
            self.views = union.transformer_list
        return super().set_params(**params)

    def _view_params(self):
        """Return the views and their parameters, by name; nothing if they are wrong."""
        try:
            check_views("views", self.views)
        except (TypeError, ValueError):
            # `fit` raises the error.
            return {}
        names = {name for name, _ in self.views or ()}
        params = FeatureUnion(self.views).get_params()
        return {k: v for k, v in params.items() if k.partition("__")[0] in names}

    def _check_parameters(self):
        super()._check_parameters()
        known = self.get_params(deep=False).keys()
        clash = {name for name, _ in self.views or ()} & known
        if clash:
            raise ValueError(
                f"views must not be named as a parameter, got {min(clash)!r}."
            )

    def _training(self, X, y):
        """Return the training sequences, checked."""
        sequences = check_frames_or_symbols(self, X, y, reset=True)
        # Views get the sequences in another order, so their errors would name the wrong
        # one.
        for _, view in self.views or ():
            step = view[0] if isinstance(view, Pipeline) else view
            if isinstance(step, RealChannels):
                clone(step).fit(sequences)
                break
        return sequences

    def _used_views(self, groups):
        """Return the names and transformers of the views that are used."""
        views = self.views
        if views is None:
            views = make_views(n_jobs=self.n_jobs, random_state=self.random_state)
        used = [v for v in views if groups is not None or not is_group_view(v[1])]
        if not used:
            raise ValueError(
                "views must hold at least 1 that needs no groups, or fit must be given "
                f"groups, got {[name for name, _ in views]}."
            )
        return used

    def _learn(self, views, sequences, targets, weights, folds, score, rng):
        """Learn views and ridge; return the predictions for left-out folds."""
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
        problem = Problem(
            targets,
            weights,
            folds,
            _ascending(self.penalties),
            score,
            gammas,
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
        self.gamma_, self.penalty_ = learned.gamma, learned.ridge.penalty
        self.inner_score_ = learned.ridge.score
        return learned.ridge.held_out

    def _folds(self, codes, groups, order, rng):
        """Return the rows of each inner fold, as positions in content order."""
        n_rows = len(codes)
        if n_rows < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 sequences, got n_samples = "
                f"{n_rows}."
            )
        if groups is not None:
            check_one_type("groups", groups, "sequence")
            groups = column_or_1d(groups)
            check_consistent_length(codes, groups)
        if isinstance(self.cv, int | np.integer):
            own = None if groups is None else groups[order]
            folds = stratified_folds(codes[order], own, self.cv, rng)
        else:
            splits = check_cv(self.cv).split(np.zeros(n_rows), codes, groups)
            places = np.argsort(order)
            folds = [np.sort(places[np.asarray(test)]) for _, test in splits]
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


def content_order(sequences, targets):
    """Return an order of sequences that depends only on their content.

    Random draws and sums then do not depend on the order in which sequences are given.
    Sequences with identical content and targets are interchangeable. Constant channels
    are ignored; sequences of strings are allowed.
    """
    recordings, units = split_units(sequences)
    if sequences.is_text:
        columns = [x[:, 0] for x in recordings]
        codes = symbol_codes(columns, learned_symbols(columns))
        recordings = [own[:, None].astype(np.float64) for own in codes]
    one = recordings[0][0]
    varies = np.any([(x != one).any(axis=0) for x in recordings], axis=0)
    hashes = [array_key(x[:, varies]) for x in recordings]
    firsts = units.bounds(recordings)
    keys = [
        (hashes[first:last], target.tobytes())
        for first, last, target in zip(firsts, firsts[1:], targets, strict=False)
    ]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__))


def stratified_folds(codes, groups, n_folds, rng):
    """Return the rows of folds with about equal proportions of each class.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Classes, counted from 0.

    groups : ndarray of shape (n,), or None
        Groups of rows that folds keep together.

    n_folds : int
        Largest number of folds. There are fewer if every class has fewer members, or if
        there are fewer groups.

    rng : RandomState
        Source of the order in which rows or groups are assigned.

    Returns
    -------
    folds : list of ndarray of int
        Rows of each fold, none of them empty.
    """
    if np.bincount(codes).max() == 1:
        # With one member per class, folds cannot be stratified.
        codes = np.zeros_like(codes)
    n_folds = min(n_folds, np.bincount(codes).max())
    splitter = StratifiedKFold
    if groups is not None:
        splitter, n_groups = StratifiedGroupKFold, len(np.unique(groups))
        if n_groups < 2:
            raise ValueError("groups must hold at least 2 groups, for folds, got 1.")
        n_folds = min(n_folds, n_groups)
    splits = splitter(n_folds, shuffle=True, random_state=rng).split(
        np.zeros(len(codes)), codes, groups
    )
    # Folds of groups are as even as possible, but some may be empty.
    return [test for _, test in splits if len(test)]


def _ascending(numbers):
    return sorted(np.atleast_1d(np.asarray(numbers, dtype=np.float64)).tolist())
