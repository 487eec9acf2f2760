"""Distances to one model per class, as features."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone

from skawhmm._estimator import (
    METRIC_NAMES,
    ModelsMixin,
    check_classes,
    check_frames_or_symbols,
)
from skawhmm.distances._pairwise import all_pairs
from skawhmm.emissions._categorical import Categorical
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.models._batch import HMMBatch
from skawhmm.sequences._names import fitted_names
from skawhmm.sequences._tables import shown
from skawhmm.utils._checks import check_one_each
from skawhmm.utils._interruption import all_or_nothing


def check_pooling_hmm(name, value):
    """Raise unless `value` can fit one model to many sequences, or is None."""
    if value is None:
        return
    able = hasattr(value, "get_params") and not isinstance(value, type)
    if not able or not {"init", "prior"} & {*value.get_params(deep=False)}:
        raise TypeError(
            f"{name} must be None or an HMMTransformer, which fits one model to all "
            f"sequences of a class, got {value!r}."
        )


class HMMClassDistance(ModelsMixin, TransformerMixin, BaseEstimator):
    """Represent a sequence by the distances of its model to one model per class.

    One model is fitted to all sequences of a class. With groups of channels, such as
    the joints of a body, there is one model per class and group, and it is compared
    with the model of the same channels of a sequence.

    Parameters
    ----------
    groups : dict or sequence of sequences of int or str, default=None
        Channels of each group: a dict from group names to channels, or a list of
        channels per group. Channels are given by index or, if the training sequences
        have channel names, by name. By default all channels form one group.

    metric : {"maw", "iaw", "jaw", "kl", "coupling", "mmd"} or object, default="maw"
        Distance between two models.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw"
        and "iaw", 0.5 for "jaw". Must be None if the distance has no components, or if
        `metric` is an object, which has its own.

    hmm : HMMTransformer, default=None
        Fits the models of sequences and of classes; it is cloned. By default
        ``HMMTransformer()``.

    n_jobs : int, default=None
        Number of joblib workers for the distances, threads by default.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.

    groups_ : dict of ndarray of int
        Channels of each group by its name.

    models_ : list of HMMBatch
        One batch per group, with one model per class.

    hmms_ : list of HMMTransformer
        One per group: it turns the channels of the group into models.

    n_features_in_ : int
        Number of features of a frame; number of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences that have names.

    See Also
    --------
    PairwiseHMMDistance : Distances to the models of all training sequences.

    References
    ----------
    Y. Chen, J. Ye and J. Li, "Aggregated Wasserstein Distance and State Registration
    for Hidden Markov Models", IEEE Transactions on Pattern Analysis and Machine
    Intelligence, 2020, section 5.3.3.

    Examples
    --------
    >>> from sklearn.ensemble import AdaBoostClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.features import HMMClassDistance
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(40, n_features=4, separation=2, random_state=0)
    >>> features = HMMClassDistance(
    ...     groups={"left": [0, 1], "right": [2, 3]}, hmm=HMMTransformer(random_state=0)
    ... )
    >>> features.fit(X, y).get_feature_names_out()
    array(['left_0', 'left_1', 'right_0', 'right_1'], dtype=object)
    >>> boosted = make_pipeline(features, AdaBoostClassifier(random_state=0))
    >>> boosted.fit(X[:30], y[:30]).score(X[30:], y[30:])
    1.0
    """

    _parameter_checks: ClassVar = {
        **ModelsMixin._parameter_checks,
        "hmm": check_pooling_hmm,
    }
    _read_later: ClassVar = METRIC_NAMES

    def __init__(
        self,
        groups: Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]] | None = None,
        *,
        metric: Any = "maw",
        alpha: float | None = None,
        hmm: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.groups = groups
        self.metric = metric
        self.alpha = alpha
        self.hmm = hmm
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> "HMMClassDistance":
        """Fit one model per class and group.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Training sequences; also a 3-D array padded by NaN, or a 2-D array whose
            rows are univariate sequences.

        y : array-like of shape (n_sequences,)
            Classes.

        Returns
        -------
        self : HMMClassDistance
            The fitted transformer.
        """
        self._begin_fit()
        y = check_classes(y, type(self).__name__)
        sequences = check_frames_or_symbols(self, X, y, reset=True)
        check_one_each(sequences, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.groups_ = check_channel_groups(
            self.groups, sequences.n_features, fitted_names(self)
        )
        hmm = HMMTransformer() if self.hmm is None else self.hmm
        self.hmms_, self.models_ = [], []
        for channels in self.groups_.values():
            part = sequences.channels(channels)
            fitted = clone(hmm).fit(part)
            self.hmms_.append(fitted)
            self.models_.append(_class_models(_taught(hmm, fitted), part, codes))
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the distances of each sequence to every class, per group of channels.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        features : ndarray of shape (n_sequences, n_groups * n_classes)
            Distances to all classes for the first group, then for the next groups.
        """
        metric = self._check_ready()
        sequences = check_frames_or_symbols(self, X, reset=False)
        parts = zip(self.groups_.values(), self.hmms_, self.models_, strict=True)
        blocks = [
            all_pairs(
                hmm.transform(sequences.channels(channels)),
                models,
                metric,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            for channels, hmm, models in parts
        ]
        return np.hstack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the names of the features.

        Parameters
        ----------
        input_features : Ignored
            Not used, present for API consistency.

        Returns
        -------
        names : ndarray of str
            Group and class of each feature.
        """
        self._check_ready()
        names = [
            f"{group}_{label}" for group in self.groups_ for label in self.classes_
        ]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _taught(hmm, fitted):
    """Return a transformer set up with the values learned from all classes.

    A single class may lack some of the symbols, or have other scales of blocks.
    """
    template = fitted._template
    if template.name == "by_channel":
        return clone(hmm).set_params(emission=template)
    if not hasattr(fitted, "symbols_"):
        return hmm
    symbols, costs = fitted.symbols_, getattr(fitted, "symbol_costs_", None)
    if "symbols" in hmm.get_params(deep=False):
        return clone(hmm).set_params(symbols=symbols)
    return clone(hmm).set_params(emission=Categorical(symbols, costs=costs))


def _class_models(hmm, sequences, codes):
    """Return one model per class, fitted to all sequences of the class."""
    # Visible chains have no start values; their pooled chain is a prior.
    has_starts = "init" in hmm.get_params(deep=False)
    asked = {"init" if has_starts else "prior": "pooled"}
    models = []
    for code in range(codes.max() + 1):
        members = sequences.taken(np.flatnonzero(codes == code))
        pooled = clone(hmm).set_params(**asked).fit(members)
        models.append(pooled.pooled_model_)
    return HMMBatch.concatenate(models)


def _channel_numbers(group, channels, names):
    """Return the channels of a group as indices."""
    array = np.asarray(channels)
    if array.dtype.kind not in "UT" or array.ndim != 1:
        return array
    if names is None or not {*array.tolist()} <= {*names}:
        known = "no names" if names is None else f"the names {shown(names)}"
        raise ValueError(
            f"groups[{group!r}] must hold channels of the sequences, which have "
            f"{known}, got {channels!r}."
        )
    return np.array([names.index(name) for name in array.tolist()])


def check_channel_groups(groups, n_features, names=None):
    """Return the channels of each group by name; None means one group of all."""
    if groups is None:
        return {"all": np.arange(n_features)}
    if not isinstance(groups, Iterable) or isinstance(groups, str):
        raise TypeError(
            "groups must be a dict or a sequence of lists of channel numbers, got "
            f"{groups!r}."
        )
    if not isinstance(groups, Mapping):
        groups = {f"group{n}": channels for n, channels in enumerate(groups)}
    if not groups:
        raise ValueError("groups must hold at least one group of channels, got none.")
    checked = {}
    for name, channels in groups.items():
        array = _channel_numbers(name, channels, names)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise ValueError(
                f"groups[{name!r}] must be a list of channel numbers, got {channels!r}."
            )
        if array.min() < 0 or array.max() >= n_features:
            raise ValueError(
                f"groups[{name!r}] must hold channels from 0 to {n_features - 1}, got "
                f"{channels!r}."
            )
        if str(name) in checked:
            raise ValueError(f"groups must have distinct names, got {name!r} twice.")
        checked[str(name)] = array
    return checked
