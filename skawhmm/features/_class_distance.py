"""Distances to one model a class, as features."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from skawhmm.distances._pairwise import pairwise_hmm_distances
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.models._batch import HMMBatch
from skawhmm.sequences._input import check_classes, check_input, is_models
from skawhmm.utils._checks import check_channel_groups, check_distances


class HMMClassDistance(TransformerMixin, BaseEstimator):
    """Represent a sequence by the distances of its model to one model a class.

    One model is fitted to all sequences of a class. With groups of channels, such as
    the joints of a body, there is one for each class and group, compared with the model
    of the same channels of a sequence.

    Parameters
    ----------
    groups : dict or sequence of sequences of int, default=None
        Channels of each group, by name or in order. By default one group of all.

    metric : {"maw", "iaw", "kl", "coupling"} or object, default="maw"
        Distance between two models.

    alpha : float in [0, 1], default=0.1
        Share of the transition component in the distance. Distances that are a single
        number ("kl", "coupling"), and objects, do not use it.

    p : float in (0, 2], default=1
        Order of the distance.

    metric_params : dict, default=None
        Further parameters of the distance.

    hmm : HMMTransformer, default=None
        How models are fitted, to sequences and to classes. By default
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
        For each group, one model a class.

    hmms_ : list of HMMTransformer
        For each group, what fits models to sequences.

    n_features_in_ : int
        Number of features of a frame; of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if `fit` was given a data frame.

    See Also
    --------
    PairwiseHMMDistance : Distances to the models of all training sequences.

    References
    ----------
    Y. Chen, J. Ye and J. Li, "Aggregated Wasserstein Metric and State Registration for
    Hidden Markov Models", IEEE Transactions on Pattern Analysis and Machine
    Intelligence, 2020, section 5.3.3.

    Examples
    --------
    >>> from sklearn.ensemble import AdaBoostClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from skawhmm import HMMClassDistance, HMMTransformer
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

    def __init__(
        self,
        groups: Mapping[str, Sequence[int]] | Sequence[Sequence[int]] | None = None,
        *,
        metric: Any = "maw",
        alpha: float = 0.1,
        p: float = 1,
        metric_params: Mapping[str, Any] | None = None,
        hmm: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.groups = groups
        self.metric = metric
        self.alpha = alpha
        self.p = p
        self.metric_params = metric_params
        self.hmm = hmm
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike) -> "HMMClassDistance":
        """Fit one model for each class and group.

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
        y = check_classes(self, y)
        sequences = self._check_sequences(X, reset=True)
        check_consistent_length(sequences, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.groups_ = check_channel_groups(self.groups, sequences[0].shape[1])
        hmm = HMMTransformer() if self.hmm is None else self.hmm
        self.hmms_, self.models_ = [], []
        for channels in self.groups_.values():
            part = [x[:, channels] for x in sequences]
            fitted = clone(hmm).fit(part)
            if hasattr(fitted, "symbols_"):
                # A class may lack some of the symbols.
                hmm = clone(hmm).set_params(symbols=fitted.symbols_)
            self.hmms_.append(fitted)
            self.models_.append(_class_models(hmm, part, codes))
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the distances of each sequence's models to those of the classes.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        features : ndarray of shape (n_sequences, n_groups * n_classes)
            Distances, the classes of a group beside each other.
        """
        check_is_fitted(self)
        sequences = self._check_sequences(X, reset=False)
        parts = zip(self.groups_.values(), self.hmms_, self.models_, strict=True)
        blocks = [
            pairwise_hmm_distances(
                hmm.transform([x[:, channels] for x in sequences]),
                models,
                self.metric,
                alpha=self.alpha,
                p=self.p,
                metric_params=self.metric_params,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            for channels, hmm, models in parts
        ]
        return check_distances("metric", np.hstack(blocks))

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
        check_is_fitted(self)
        names = [
            f"{group}_{label}" for group in self.groups_ for label in self.classes_
        ]
        return np.array(names, dtype=object)

    def _check_sequences(self, X, reset):
        if is_models(X):
            raise TypeError(
                "X must hold sequences for HMMClassDistance, which fits a model to all "
                "sequences of a class, got an HMMBatch."
            )
        return check_input(self, X, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _class_models(hmm, sequences, codes):
    """Return one model a class, fitted to all of its sequences together."""
    models = []
    for code in range(codes.max() + 1):
        members = [x for x, own in zip(sequences, codes, strict=True) if own == code]
        pooled = clone(hmm).set_params(init="pooled").fit(members)
        models.append(pooled.pooled_model_)
    return HMMBatch.concatenate(models)
