"""How views are weighted, and which serve by default: decided on training parts.

Run with ``python benchmarks/bench_views.py [--data NAMES] [--seeds N] [--splits N]
[--keep FOLDER] [--docs FILE]`` and the environment variable ``SKAWHMM_DATA`` set to the
folder of the data. ``--keep`` stores the vectors of views, so that another run only
compares choices.
``--docs`` merges the table into that page, as ``bench_accuracy.py`` does.

The test parts of ``bench_accuracy.py`` are never read. The training part of each split
is divided again into five folds, which keep subjects together if they are known. The
classifier is fitted to four of them, with inner folds of its own, and scored on the
fifth. (If the splits are folds themselves, each sequence is in the training part of all
splits but one.) Each view is fitted once for all choices that are compared.

Rules, stated before the first complete run:

- Views of distances serve by default if the mean of their gains over the sets exceeds
  its standard error, no set loses more than .003, and a fit of the two small sets stays
  within twice MiniRocket's time.
- Otherwise the choice with the best mean over the sets is taken. (Added after the first
  runs: if it loses at most .003 on every set.)
"""

import argparse
import os
import pickle
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from bench_accuracy import (  # noqa: E402
    COMMIT,
    DATA,
    SYMBOLS,
    hit_rate,
    is_symbols,
    make_fold,
    markdown,
    merge,
)
from scipy import sparse  # noqa: E402
from sklearn.base import BaseEstimator, TransformerMixin, clone  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from skawhmm.classification import (  # noqa: E402
    HMMViewClassifier,
    _ridge,
    make_views,
)

DISTANCES = ("distances_3", "distances_6")
OWN = ("own_frames", "own_deltas", "own_lags")
SCALES = (0.02, 0.05, 0.1, 0.3)
DEFAULT = _ridge.SCORE_SCALE
SETS = ("sleep", "chorales", "regulation")


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


def parts_of(fold, seed):
    """Yield folds of the training part of a split."""
    splitter = StratifiedKFold if fold.groups is None else StratifiedGroupKFold
    splits = splitter(5, shuffle=True, random_state=seed)
    for parts in splits.split(fold.y, fold.y, fold.groups):
        yield make_fold(fold.X, fold.y, *parts, fold.groups)


def known_views(part, seed):
    """Return all views by name, with the vectors of training and other sequences."""
    symbols = is_symbols(part)
    emission = "categorical" if symbols else "gaussian"
    found = {}
    for name, view in make_views(emission, distances=not symbols, random_state=seed):
        if part.groups is None and name in OWN:
            continue
        fitted = clone(view).fit(part.X)
        rows = [fitted.transform(X) for X in (part.X, part.X_test)]
        if sparse.issparse(rows[0]):
            found[name] = Known(sparse.csr_array(sparse.vstack(rows)))
        else:
            found[name] = Known(compact(np.concatenate(rows), len(part.X)))
    return found


def compact(rows, n_train):
    """Return fewer columns with the same inner products and lengths.

    They are the principal coordinates of the training rows, and the distance of other
    rows to their span.
    """
    rows = rows.astype(np.float64) - rows[:n_train].mean(axis=0)
    if rows.shape[1] <= n_train:
        return rows.astype(np.float32)
    products = rows @ rows[:n_train].T
    values, directions = np.linalg.eigh(products[:n_train])
    kept = values > 1e-9 * values[-1]
    points = products @ (directions[:, kept] / np.sqrt(values[kept]))
    rest = np.maximum((rows**2).sum(axis=1) - (points**2).sum(axis=1), 0.0)
    rest[:n_train] = 0.0
    return np.column_stack([points, np.sqrt(rest)]).astype(np.float32)


def kept_views(part, seed, file):
    """Return `known_views`, from a file or stored in one."""
    if file is not None and file.exists():
        rows = pickle.loads(file.read_bytes())["views"]
        return {name: Known(own) for name, own in rows.items()}
    views = known_views(part, seed)
    if file is not None:
        rows = {name: view.rows for name, view in views.items()}
        file.write_bytes(pickle.dumps({"views": rows}))
    return views


def choices_of(names, groups):
    """Return the choices: names of views, scale of the weights, and inner folds."""
    default = [name for name in names if name not in DISTANCES]
    found = {f"weights exp(s / {scale})": (default, scale, 5) for scale in SCALES}
    if len(default) < len(names):
        found["with distances"] = names, DEFAULT, 5
    if groups is not None and OWN[0] in names:
        others = [name for name in default if name not in OWN]
        found["without own scale"] = others, DEFAULT, 5
        found["own scale only"] = OWN, DEFAULT, 5
        found["one subject per inner fold"] = default, DEFAULT, LeaveOneGroupOut()
    return found


def scores_of(part, views, seed):
    """Return the accuracy of each choice."""
    numbers = np.arange(len(part.X) + len(part.X_test))[:, None, None].astype(float)
    train, test = np.split(numbers, [len(part.X)])
    found = {}
    for label, (names, scale, cv) in choices_of(list(views), part.groups).items():
        _ridge.SCORE_SCALE = scale
        chosen = [(name, views[name]) for name in names]
        classifier = HMMViewClassifier(chosen, cv=cv, random_state=seed)
        classifier.fit(train, part.y, groups=part.groups)
        found[label] = hit_rate(classifier.predict(test), part)
    return found


def print_choices(name, folds, n_seeds, keep):
    """Print and return the mean accuracy of each choice on one set."""
    found = []
    for seed in range(n_seeds):
        for split, fold in enumerate(folds):
            for n, part in enumerate(parts_of(fold, seed)):
                file = keep and keep / f"{name}.{split}.{seed}.{n}.pkl"
                views = kept_views(part, seed, file)
                found.append(scores_of(part, views, seed))
    means = {label: np.mean([own[label] for own in found]) for label in found[0]}
    print(f"\n{name}: {len(found)} parts")
    for label, mean in means.items():
        print(f"{label:28}{mean:9.4f}", flush=True)
    return means


def print_gains(scores):
    """Print the mean gain of distances over the sets, and its standard error."""
    label, base = "with distances", f"weights exp(s / {DEFAULT})"
    gains = [own[label] - own[base] for own in scores.values() if label in own]
    if len(gains) > 1:
        error = np.std(gains, ddof=1) / np.sqrt(len(gains))
        print(f"\ngain of distances: {np.mean(gains):.4f}, standard error {error:.4f}")
        print(f"smallest gain of a set: {min(gains):.4f}")


def main():
    """Read the options and print the table."""
    sets = {**DATA, **{name: SYMBOLS[name] for name in SETS}}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", help=f"of {', '.join(sets)}")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    parser.add_argument("--splits", type=int, help="number of splits, at most")
    parser.add_argument("--keep", type=Path, help="folder for the vectors of views")
    parser.add_argument("--docs", type=Path, help="page whose table is updated")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message="The least populated class")
    scores = {}
    for name in args.data or sets:
        scores[name] = print_choices(
            name, sets[name]()[: args.splits], args.seeds, args.keep
        )
        if args.docs is not None:
            cells = {label: f"{mean:.3f}" for label, mean in scores[name].items()}
            merge(args.docs, 7, name, cells | {"commit": COMMIT})
    table = {
        name: {label: f"{mean:.3f}" for label, mean in own.items()}
        for name, own in scores.items()
    }
    print("", markdown("accuracy on training parts", table), sep="\n\n")
    print_gains(scores)


if __name__ == "__main__":
    main()
