"""A matrix of distances, and a use of it."""

import numpy as np

import skawhmm as sk
from fuzzing.draw import pick, power
from fuzzing.judge import MISREAD, Trial, check_same
from fuzzing.uses import used


def _matrix(rng):
    """Return a matrix, whether it must be rejected, its description, and its size."""
    n = int(rng.integers(2, 8))
    points = rng.normal(size=(n, 2))
    D = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
    hole = np.where(np.arange(n * n).reshape(n, n) == 1, np.nan, D)
    forms = {
        "plain": (D, False),
        "scaled": (D * power(rng), False),
        "near the largest float": (D / max(D.max(), 1) * 1.7e308, False),
        "infinite": (np.where(np.median(D) < D, np.inf, D), False),
        "all infinite": (np.full((n, n), np.inf), False),
        "zeros": (np.zeros((n, n)), False),
        "ties": (np.rint(D), False),
        "integers": (np.rint(D).astype(int), False),
        "float32": (D.astype(np.float32), False),
        "list": (D.tolist(), False),
        "not symmetric": (rng.random((n, n)), False),
        "components": (np.stack([D, D], axis=-1), False),
        "read-only Fortran": (_frozen(D), False),
        "one": (np.zeros((1, 1)), False),
        "empty": (np.empty((0, 0)), True),
        "NaN": (hole, True),
        "strings": (D.astype(str), True),
        "complex": (D + 1j, True),
        "dates": (np.rint(D).astype(int).astype("M8[s]"), True),
        "1-D": (D[0], True),
        "None": (None, True),
        "text": ("far", True),
        "negative": (-D, False),
        "objects": (D.astype(object), False),
        "rows missing": (D[:-1], False),
        "masked": (np.ma.array(D, mask=np.median(D) < D), False),
        "DataFrame": (_table(D), False),
        "bool": (D > 1, False),
        "4-D": (D[None, None], True),
        "ragged": ([[0.0, 1.0], [1.0]], True),
        "set": ({1.0, 2.0}, True),
        "dict": ({"a": 1}, True),
        "generator": ((row for row in D), True),
    }
    name = pick(rng, [*forms])
    return *forms[name], name, n


def _frozen(D):
    out = np.asfortranarray(D)
    out.flags.writeable = False
    return out


def _table(D):
    import pandas as pd

    return pd.DataFrame(D)


def _given_labels(rng, n):
    """Return labels, often valid ones, and their description."""
    y = np.arange(n) % 2
    odd = [y[:-1], y.astype(float), y.astype(str), [None] * n, np.full(n, np.nan), 5]
    odd += ["ab", y[:, None], [], y.astype(object), None, [[0, 1]] * n, {0, 1}, {}]
    odd += [np.arange(n) / 2, y.astype("M8[s]"), y + 0j, y > 0, np.zeros(n), [0, "a"]]
    return y if rng.random() < 0.6 else pick(rng, odd)


def _precomputed(kind, **params):
    def use(D, y):
        return used(kind(metric="precomputed", **params), D, y)

    return use


def _mixer(D, y):
    return sk.AlphaMixer(0.3).fit(D).transform(D)


DISTANCE_USES = {
    "KNeighborsHMMClassifier": _precomputed(sk.KNeighborsHMMClassifier, n_neighbors=1),
    "KNeighborsHMMRegressor": _precomputed(sk.KNeighborsHMMRegressor, n_neighbors=1),
    "KNeighborsHMMClassifierCV": _precomputed(
        sk.KNeighborsHMMClassifierCV, n_neighbors=1
    ),
    "HMMRetriever": _precomputed(sk.HMMRetriever, n_neighbors=1),
    "HMMNoveltyDetector": _precomputed(
        sk.HMMNoveltyDetector, n_neighbors=1, false_alarm_rate=0.5
    ),
    "HMMKMedoids": _precomputed(sk.HMMKMedoids, n_clusters=2),
    "AlphaMixer": _mixer,
    "average_precision": sk.neighbors.average_precision,
    "precision_at_k": sk.neighbors.precision_at_k,
    "retrieval_auc": sk.neighbors.retrieval_auc,
    "retrieval_curve": sk.neighbors.retrieval_curve,
    "hmm_group_test": lambda D, y: sk.hmm_group_test(
        D, y, n_permutations=19, random_state=0
    ),
    "DistanceMatrixDisplay": lambda D, y: sk.plot.DistanceMatrixDisplay.from_distances(
        D, y
    ).im_.get_array(),
    "HMMMapDisplay": lambda D, y: (
        sk.plot.HMMMapDisplay.from_distances(D, y, method="mds").positions
    ),
    "HMMMapDisplay, tsne": lambda D, y: (
        sk.plot.HMMMapDisplay.from_distances(D, y, method="tsne").positions
    ),
    "RetrievalDisplay": lambda D, y: (
        sk.plot.RetrievalDisplay.from_distances(D, y).precision
    ),
}
# Their results may be NaN or infinite where they are undefined.
OPEN_RESULTS = {
    *("average_precision", "precision_at_k", "retrieval_auc", "retrieval_curve"),
    *("AlphaMixer", "HMMRetriever", "hmm_group_test", "RetrievalDisplay"),
    *("DistanceMatrixDisplay", "HMMKMedoids", "HMMNoveltyDetector"),
}


def trial(rng):
    """Draw a matrix of distances and a use of it."""
    D, is_wrong, text, n = _matrix(rng)
    y = _given_labels(rng, n)
    name = pick(rng, [*DISTANCE_USES])
    use = DISTANCE_USES[name]
    lasting = text != "generator"

    def verify(result):
        if lasting:
            check_same(use(D, y), result, "called twice")
        if text in {"float32", "list", "integers", "objects", "read-only Fortran"}:
            plain = np.array(D, dtype=np.float64)
            check_same(use(plain, y), result, f"read as float64 ({text})", MISREAD)

    return Trial(
        f"{name} of {text}, {n} items, y {y!r:.60}",
        lambda: use(D, y),
        [D, y] if lasting else [y],
        {"X", "y", "distances", "groups", "y_query", "n_neighbors", "n_clusters"}
        | {"false_alarm_rate", "confidence", "method", "alpha"},
        verify,
        finite=name not in OPEN_RESULTS,
        # In a figure, missing values have no colour.
        wrong=f"{name} of {text}"
        if is_wrong and (name, text) != ("DistanceMatrixDisplay", "NaN")
        else None,
    )
