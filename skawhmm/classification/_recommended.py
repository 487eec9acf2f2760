"""The recommended classifier and regressor: the estimators with default views."""

from collections.abc import Mapping
from typing import Any

from skawhmm.classification._estimators import HMMViewClassifier, HMMViewRegressor
from skawhmm.classification._views import make_views


def make_classifier(
    emission: Any = "gaussian",
    *,
    distances: bool = False,
    cv: Any = 5,
    class_weight: str | Mapping[Any, float] | None = "balanced",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> HMMViewClassifier:
    """Return the recommended classifier of sequences of frames or symbols.

    It is :class:`HMMViewClassifier` with the views of :func:`make_views`, and needs no
    tuning: the weights of the views, the penalty and the kernel are learned from the
    training sequences.

    Parameters
    ----------
    emission : {"gaussian", "categorical"} or ByChannel, default="gaussian"
        Kind of the sequences: real frames, symbols or, by `ByChannel`, channels of
        several kinds.

    distances : bool, default=False
        Whether to add two views that hold distances between models; for real frames
        only.

    cv : int, splitter or iterable, default=5
        Inner folds, which choose the penalty, the kernel and the weights of views. They
        keep the `groups` given to `fit` together, such as subjects or speakers.

    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes, as in :class:`HMMViewClassifier`.

    n_jobs : int, default=None
        Number of joblib workers.

    random_state : int, RandomState instance, Generator or None, default=None
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
    array(['sv'], dtype='<U2')
    """
    return HMMViewClassifier(
        make_views(
            emission, distances=distances, n_jobs=n_jobs, random_state=random_state
        ),
        cv=cv,
        class_weight=class_weight,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )


def make_regressor(
    emission: Any = "gaussian",
    *,
    distances: bool = False,
    cv: Any = 5,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> HMMViewRegressor:
    """Return the recommended regressor of sequences of frames or symbols.

    It is :class:`HMMViewRegressor` with the views of :func:`make_views`.

    Parameters
    ----------
    emission : {"gaussian", "categorical"} or ByChannel, default="gaussian"
        Kind of the sequences: real frames, symbols or, by `ByChannel`, channels of
        several kinds.

    distances : bool, default=False
        Whether to add two views that hold distances between models; for real frames
        only.

    cv : int, splitter or iterable, default=5
        Inner folds, which choose the penalty, the kernel and the weights of views. They
        keep the `groups` given to `fit` together, such as subjects or speakers.

    n_jobs : int, default=None
        Number of joblib workers.

    random_state : int, RandomState instance, Generator or None, default=None
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
    return HMMViewRegressor(
        make_views(
            emission, distances=distances, n_jobs=n_jobs, random_state=random_state
        ),
        cv=cv,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )
