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
    """Make the recommended classifier of sequences, for frames or for symbols.

    It is :class:`HMMViewClassifier` with the views of :func:`make_views`, and needs no
    tuning: what to use is learned from the training sequences.

    Parameters
    ----------
    emission : {"gaussian", "categorical"} or ByChannel, default="gaussian"
        Whether sequences hold real frames or symbols, or which channels are of which
        kind.

    distances : bool, default=False
        Whether to add two views of distances between models, for real frames.

    cv : int, splitter or iterable, default=5
        Inner folds, by which penalty, kernel and weights of views are chosen. `fit`
        takes groups (subjects, speakers) that they keep together.

    class_weight : "balanced", dict or None, default="balanced"
        Weights of the classes.

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
    """Make the recommended regressor of sequences, for frames or for symbols.

    It is :class:`HMMViewRegressor` with the views of :func:`make_views`.

    Parameters
    ----------
    emission : {"gaussian", "categorical"} or ByChannel, default="gaussian"
        Whether sequences hold real frames or symbols, or which channels are of which
        kind.

    distances : bool, default=False
        Whether to add two views of distances between models, for real frames.

    cv : int, splitter or iterable, default=5
        Inner folds, by which penalty, kernel and weights of views are chosen. `fit`
        takes groups (subjects, speakers) that they keep together.

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
    How often a sequence changes its state:

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
