"""Which views serve by default: decided on training parts of the sets of frames.

Run with ``python benchmarks/bench_views.py [--data NAMES] [--seeds N]`` and the
environment variable ``SKAWHMM_DATA`` set to the folder of the data.

The test parts of ``bench_accuracy.py`` are never read. The training part of each split
is divided again into five folds, which keep subjects together if they are known. The
classifier is fitted to four of them, with inner folds of its own, and scored on the
fifth. (If the splits are folds themselves, each sequence is in the training part of all
splits but one.) Each view is fitted once for all choices that are compared.

The rule for views of distances, stated before the first run: they serve by default if
the mean of their gains over the sets exceeds its standard error, no set loses more than
.003, and a fit of the two small sets stays within twice MiniRocket's time.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from bench_accuracy import DATA, make_fold  # noqa: E402
from sklearn.base import BaseEstimator, TransformerMixin, clone  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    StratifiedGroupKFold,
    StratifiedKFold,
)

from skawhmm.classification import HMMViewClassifier, make_views  # noqa: E402
from skawhmm.datasets import load_timit  # noqa: E402

FRAMES = ("frames", "deltas", "lags")
DISTANCES = ("distances_3", "distances_6")
OWN = ("own_frames", "own_deltas", "own_lags")


class Known(TransformerMixin, BaseEstimator):
    """A view whose vectors are known; sequences are their numbers."""

    def __init__(self, rows):
        self.rows = rows

    def __sklearn_clone__(self):
        return self

    def fit(self, X, y=None):  # noqa: ARG002
        """Do nothing."""
        return self

    def transform(self, X):
        """Return the vectors of some sequences."""
        return self.rows[[int(x[0, 0]) for x in X]]


def timit_by_speaker():
    """The splits of TIMIT, with the speaker of each sequence."""
    folds = []
    for seed in range(3):
        data = load_timit(concat=20, random_state=seed)
        train = data.split == "train"
        parts = np.flatnonzero(train), np.flatnonzero(~train)
        folds.append(make_fold(data.data, data.target, *parts, data.speaker))
    return folds


def parts_of(fold, seed):
    """Yield folds of the training part of a split."""
    splitter = StratifiedKFold if fold.groups is None else StratifiedGroupKFold
    splits = splitter(5, shuffle=True, random_state=seed)
    for parts in splits.split(fold.y, fold.y, fold.groups):
        yield make_fold(fold.X, fold.y, *parts, fold.groups)


def known_views(part, seed):
    """Return all views by name, with the vectors of training and other sequences."""
    found = {}
    for name, view in make_views(distances=True, random_state=seed):
        if part.groups is None and name in OWN:
            continue
        fitted = clone(view).fit(part.X)
        rows = [fitted.transform(X) for X in (part.X, part.X_test)]
        found[name] = Known(np.concatenate(rows))
    return found
