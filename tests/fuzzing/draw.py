"""Random sequences, the containers they may come in, and models given by parameters."""

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from skawhmm import as_sequences


def pick(rng, values):
    """Return one of several values, of whatever type."""
    return values[int(rng.integers(len(values)))]


def power(rng, largest=300):
    """Return a scale: often 1, otherwise any power of ten."""
    return 1.0 if rng.random() < 0.4 else 10.0 ** int(rng.integers(-largest, largest))


# Sequences


def plain_sequences(rng, n_sequences=None, n_features=None, *, equal=False):
    """Return sequences of a chain with two levels, without anything odd."""
    n = int(rng.integers(2, 7)) if n_sequences is None else n_sequences
    d = int(rng.integers(1, 4)) if n_features is None else n_features
    lengths = np.full(n, rng.integers(4, 14)) if equal else rng.integers(4, 14, n)
    X = []
    for length in lengths:
        levels = np.cumsum(rng.random(length) < 0.4) % 2
        X.append(3.0 * levels[:, None] + rng.normal(size=(length, d)))
    return X


def _one_frame(rng, X):
    return [x[:1] if rng.random() < 0.5 else x for x in X]


def _no_frame(rng, X):
    k = int(rng.integers(len(X)))
    return [x[:0] if i == k else x for i, x in enumerate(X)]


def _constant(rng, X):
    c = int(rng.integers(X[0].shape[1]))
    value = pick(rng, [0.0, 1.0, -1e9, 1e-200])
    return [np.where(np.arange(x.shape[1]) == c, value, x) for x in X]


def _all_constant(rng, X):
    return [np.full_like(x, pick(rng, [0.0, 5.0])) for x in X]


def _nan_channel(rng, X):
    c = int(rng.integers(X[0].shape[1]))
    k = int(rng.integers(len(X)))
    return [
        np.where((np.arange(x.shape[1]) == c) & (i == k), np.nan, x)
        for i, x in enumerate(X)
    ]


def _gaps(rng, X):
    return [np.where(rng.random(x.shape) < 0.2, np.nan, x) for x in X]


def _infinite(rng, X):
    X[0] = X[0].copy()
    X[0].flat[:1] = pick(rng, [np.inf, -np.inf])
    return X


def _equal(rng, X):
    return [X[0].copy() for _ in X]


def _repeated(rng, X):
    return [np.repeat(x[: int(rng.integers(1, 3))], 4, axis=0) for x in X]


def _deficient(rng, X):
    return [x @ np.ones((x.shape[1], x.shape[1])) for x in X]


def _mixed_scales(rng, X):
    scales = 10.0 ** rng.integers(-12, 13, X[0].shape[1])
    return [x * scales for x in X]


def _scaled(rng, X):
    scale = power(rng)
    return [x * scale for x in X]


def _shifted(rng, X):
    shift = 10.0 ** int(rng.integers(0, 18))
    return [x + shift for x in X]


def _whole(rng, X):
    return [np.rint(x) for x in X]


def _binary(rng, X):
    return [(x > 1).astype(float) for x in X]


def _wide(rng, X):
    d = int(rng.integers(5, 12))
    return [rng.normal(size=(len(x), d)) for x in X]


def _single(rng, X):
    return X[:1]


FLAVOURS = {
    "plain": lambda rng, X: X,
    "one frame": _one_frame,
    "no frame": _no_frame,
    "constant channel": _constant,
    "constant": _all_constant,
    "NaN channel": _nan_channel,
    "gaps": _gaps,
    "infinity": _infinite,
    "equal sequences": _equal,
    "repeated frames": _repeated,
    "rank deficient": _deficient,
    "mixed scales": _mixed_scales,
    "scaled": _scaled,
    "shifted": _shifted,
    "whole numbers": _whole,
    "binary": _binary,
    "many channels": _wide,
    "one sequence": _single,
}


def odd_sequences(rng):
    """Return degenerate sequences and their description."""
    X = plain_sequences(rng)
    words = [pick(rng, [*FLAVOURS])]
    if rng.random() < 0.3:
        words.append(pick(rng, [*FLAVOURS]))
    with np.errstate(all="ignore"):
        for word in words:
            X = FLAVOURS[word](rng, X)
    lengths = [len(x) for x in X]
    peak = max((np.nanmax(np.abs(x), initial=0.0) for x in X), default=0.0)
    shape = f"lengths {lengths}, {X[0].shape[1]} channels, values to {peak:.3g}"
    return [np.ascontiguousarray(x) for x in X], f"{' + '.join(words)} ({shape})"


# Containers


@dataclass
class Container:
    """Sequences in some form, and how they may be read."""

    value: Any
    # The same sequences as a plain list of float64 arrays.
    plain: list[np.ndarray]
    text: str
    # Whether every estimator must take the form.
    must: bool = False
    # Why it cannot be read as numbers, or None.
    wrong: str | None = None
    # Whether the value can be given twice.
    lasting: bool = True


def _square(x):
    return np.array(x, dtype=object)


def _object_array(X):
    out = np.empty(len(X), dtype=object)
    for i, x in enumerate(X):
        out[i] = x
    return out


def _stacked(X, filler=np.nan):
    """Return one array, padded at the end."""
    longest = max(map(len, X))
    pads = [np.full((longest - len(x), x.shape[1]), filler) for x in X]
    return np.stack([np.vstack([x, pad]) for x, pad in zip(X, pads, strict=True)])


def _memmap(x):
    file = Path(tempfile.mkdtemp(prefix="fuzz")) / "x.npy"
    np.save(file, x)
    return np.load(file, mmap_mode="r")


def _read_only(x):
    out = x.copy()
    out.flags.writeable = False
    return out


def _strided(x):
    wide = np.zeros((2 * len(x), 3 * x.shape[1]))
    out = wide[::2, ::3]
    out[...] = x
    return out


def _masked(rng, X):
    masks = [rng.random(x.shape) < 0.2 for x in X]
    for mask in masks:
        mask[0] = False
    value = [
        np.ma.array(np.where(m, 1e9, x), mask=m) for x, m in zip(X, masks, strict=True)
    ]
    return value, [np.where(m, np.nan, x) for x, m in zip(X, masks, strict=True)]


def _with_none(rng, X):
    rows = [_square(x) for x in X]
    plain = [x.copy() for x in X]
    k = int(rng.integers(len(X)))
    rows[k][-1, 0], plain[k][-1, 0] = None, np.nan
    return rows, plain


def _with_text(rng, X):
    lists = [x.tolist() for x in X]
    k = int(rng.integers(len(X)))
    lists[k][0][0] = pick(rng, ["a", "1.5", "", "nan", b"1", "1e5"])
    return lists


def _dates(X, kind):
    return [x.round().astype("int64").astype(kind) for x in X]


def _ragged(X):
    lists = [x.tolist() for x in X]
    lists[0][0] = [*lists[0][0], 1.0]
    return lists


def _structured(x):
    names = [f"c{k}" for k in range(x.shape[1])]
    return np.array([tuple(row) for row in x], [(name, float) for name in names])


def _frame(x):
    import pandas as pd

    return pd.DataFrame(x, columns=[f"c{k}" for k in range(x.shape[1])])


def _permuted(rng, X):
    """Return tables with the same columns, each in its own order."""
    first, *others = map(_frame, X)
    return [first, *(t[[*rng.permutation(t.columns)]] for t in others)], X


def _renamed(rng, X):
    """Return tables, one of which has another column."""
    tables = [*map(_frame, X), _frame(X[0])]
    k = int(rng.integers(len(tables)))
    tables[k] = tables[k].rename(columns={"c0": "other"})
    return tables


def _distances(rng, X):
    points = rng.normal(size=(len(X) + 3, 2))
    gaps = np.linalg.norm(points[:, None] - points, axis=2)
    return pick(rng, [gaps, gaps.tolist(), np.stack([gaps, gaps], axis=2)])


def _polars(x):
    import polars as pl

    return pl.DataFrame({f"c{k}": x[:, k] for k in range(x.shape[1])})


def _arrow(x):
    import pyarrow as pa

    return pa.table({f"c{k}": x[:, k] for k in range(x.shape[1])})


def _awkward(X):
    import awkward as ak

    return ak.Array([x.tolist() for x in X])


def _xarray(X):
    import xarray as xr

    return xr.DataArray(_stacked(X), dims=("id", "time", "channels"))


def _series(X):
    import pandas as pd

    return pd.Series(X)


def _as(kind):
    def made(rng, X):
        with np.errstate(all="ignore"):
            value = [np.rint(x).astype(kind) for x in X]
        return value, [x.astype(np.float64) for x in value]

    return made


def _every(change):
    """Return a container that holds each sequence in another form."""

    def made(rng, X):
        return [change(x) for x in X], X

    return made


def _whole_of(change):
    def made(rng, X):
        return change(X), X

    return made


# Forms that every estimator is documented to take.
ACCEPTED = {
    "list": _every(lambda x: x),
    "tuple": _whole_of(tuple),
    "object array": _whole_of(_object_array),
    "Fortran order": _every(np.asfortranarray),
    "strided": _every(_strided),
    "reversed": _every(lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]),
    "read-only": _every(_read_only),
    "memmap": _every(_memmap),
    "float32": _as(np.float32),
    "float16": _as(np.float16),
    "int64": _as(np.int64),
    "int8": _as(np.int8),
    "3-D array": _whole_of(_stacked),
    "big endian": _every(lambda x: x.astype(">f8")),
    "objects": _every(_square),
}
# Forms that may be rejected, but not misread.
DOUBTFUL = {
    "masked": _masked,
    "None among numbers": _with_none,
    "bool": lambda rng, X: (
        [x > 1 for x in X],
        [(x > 1).astype(float) for x in X],
    ),
    "nested lists": _every(lambda x: x.tolist()),
    "tuples": _every(lambda x: tuple(map(tuple, x.tolist()))),
    "matrix": _every(np.asmatrix),
    "pandas frames": _every(_frame),
    "permuted columns": _permuted,
    "named arrays": _whole_of(lambda X: as_sequences([*map(_frame, X)])[0]),
    "polars frames": _every(_polars),
    "pyarrow tables": _every(_arrow),
    "awkward": _whole_of(_awkward),
    "xarray": _whole_of(_xarray),
    "Series": _whole_of(_series),
    "dict": _whole_of(lambda X: {f"s{i}": x for i, x in enumerate(X)}),
    "dict values": _whole_of(lambda X: dict(enumerate(X)).values()),
    "generator": _whole_of(lambda X: (x for x in X)),
    "iterator": _whole_of(iter),
    "map": _whole_of(lambda X: map(np.asarray, X)),
    "longdouble": _every(lambda x: x.astype(np.longdouble)),
    "masked stack": lambda rng, X: (
        np.ma.masked_invalid(_stacked(X)),
        X,
    ),
}
# Forms without any sequences of numbers.
WRONG = {
    "text among numbers": _with_text,
    "strings": lambda rng, X: [x.astype(str) for x in X],
    "bytes": lambda rng, X: [x.astype("S8") for x in X],
    "dates": lambda rng, X: _dates(X, "M8[s]"),
    "durations": lambda rng, X: _dates(X, "m8[s]"),
    "datetime objects": lambda rng, X: [
        [[datetime(2020, 1, 1, tzinfo=UTC)] * x.shape[1]] * len(x) for x in X
    ],
    "timedelta objects": lambda rng, X: [
        _square([[timedelta(1)] * x.shape[1]] * len(x)) for x in X
    ],
    "complex": lambda rng, X: [x + 1j for x in X],
    "complex of real": lambda rng, X: [x.astype(complex) for x in X],
    "complex stack": lambda rng, X: _stacked(X) + 0j,
    "dates stack": lambda rng, X: _dates([_stacked(X, 0.0)], "M8[s]")[0],
    "structured": lambda rng, X: [_structured(x) for x in X],
    "one structured": lambda rng, X: _structured(X[0]),
    "ragged": lambda rng, X: _ragged(X),
    "set": lambda rng, X: {tuple(x[:, 0].tolist()) for x in X},
    "sparse": lambda rng, X: [sparse.csr_matrix(x) for x in X],
    "sparse whole": lambda rng, X: sparse.csr_matrix(X[0]),
    "None member": lambda rng, X: [None, *X],
    "None": lambda rng, X: None,
    "number": lambda rng, X: pick(rng, [3, 2.5, np.nan, True, 1j]),
    "text": lambda rng, X: pick(rng, ["abc", b"abc", ""]),
    "no sequence": lambda rng, X: pick(
        rng, [[], (), np.empty((0, 4, 2)), np.empty(0, object), np.empty((0, 3)), {}]
    ),
    "one 1-D array": lambda rng, X: X[0][:, 0],
    "0-D array": lambda rng, X: np.array(1.5),
    "4-D array": lambda rng, X: _stacked(X)[None],
    "list of 3-D arrays": lambda rng, X: [x[None] for x in X],
    "other columns": _renamed,
    "distances": _distances,
    "other channels": lambda rng, X: [*X, np.zeros((4, X[0].shape[1] + 1))],
    "no channel": lambda rng, X: [x[:, :0] for x in X],
    "dict member": lambda rng, X: [{"a": 1}, *X],
    "type": lambda rng, X: list,
    "huge integers": lambda rng, X: [[[10**400] * x.shape[1]] * 4 for x in X],
    "nested too deep": lambda rng, X: [[[x.tolist()]] for x in X],
    "strings stack": lambda rng, X: _stacked(X).astype(str),
}
ONCE = {"generator", "iterator", "map"}


def container(rng):
    """Return sequences in a random form."""
    X = plain_sequences(rng)
    draw = rng.random()
    if draw < 0.45:
        name = pick(rng, [*ACCEPTED])
        value, plain = ACCEPTED[name](rng, X)
        return Container(value, plain, name, must=True)
    if draw < 0.7:
        name = pick(rng, [*DOUBTFUL])
        value, plain = DOUBTFUL[name](rng, X)
        return Container(value, plain, name, lasting=name not in ONCE)
    name = pick(rng, [*WRONG])
    return Container(WRONG[name](rng, X), X, name, wrong=name)


# Models given by parameters


def _rows(rng, n, m):
    """Return transition matrices: dense, sparse, absorbing or deterministic."""
    form = pick(rng, ["dense", "dense", "zeros", "identity", "cycle", "tiny"])
    T = rng.dirichlet(np.ones(m), size=(n, m))
    if form == "zeros":
        T = np.where(rng.random(T.shape) < 0.5, 0, T)
        T[..., 0] += T.sum(axis=-1) == 0
        T /= T.sum(axis=-1, keepdims=True)
    elif form == "identity":
        T = np.broadcast_to(np.eye(m), T.shape).copy()
    elif form == "cycle":
        T = np.broadcast_to(np.roll(np.eye(m), 1, axis=1), T.shape).copy()
    elif form == "tiny":
        T = T * 1e-300 + np.eye(m)
    return T, form


def _weights(rng, n, m):
    if rng.random() < 0.6:
        return None
    w = rng.dirichlet(np.ones(m), size=n)
    if rng.random() < 0.5 and m > 1:
        w[:, int(rng.integers(m))] = 0
        w[w.sum(axis=1) == 0] = 1
        w /= w.sum(axis=1, keepdims=True)
    return w


def _covars(rng, n, m, d, scale):
    form = pick(rng, ["diag", "diag", "full", "zero", "singular"])
    if form == "diag":
        return scale * scale * rng.uniform(0.1, 2, (n, m, d)), form
    if form == "zero":
        return np.where(rng.random((n, m, d)) < 0.5, 0, scale * scale), form
    rank = d if form == "full" else max(1, d - 1)
    roots = scale * rng.normal(size=(n, m, d, rank))
    return roots @ roots.swapaxes(2, 3), form


def gaussian_arguments(rng, *, largest=300):
    """Return the arguments of a batch of Gaussian models, and their description."""
    n, m, d = (int(k) for k in rng.integers([2, 1, 1], [6, 5, 4]))
    T, rows = _rows(rng, n, m)
    scale = power(rng, largest)
    with np.errstate(all="ignore"):
        means = scale * rng.normal(size=(n, m, d))
        covars, form = _covars(rng, n, m, d, scale)
    states = "distinct"
    if rng.random() < 0.2 and m > 1:
        means[:, -1], covars[:, -1], states = means[:, 0], covars[:, 0], "two equal"
    if rng.random() < 0.15:
        means[-1], covars[-1], T[-1], states = means[0], covars[0], T[0], "equal models"
    given = {"transmats": T, "means": means, "covars": covars}
    weights = _weights(rng, n, m)
    if weights is not None:
        given["weights"] = weights
    text = f"{n} models, {m} states ({states}), {d} channels, rows {rows}, {form}, "
    return given, f"{text}scale {scale:g}, weights {weights is not None}"


def chain_arguments(rng, n, m):
    """Return transition matrices, sometimes with weights, and their description."""
    T, rows = _rows(rng, n, m)
    weights = _weights(rng, n, m)
    given = {"transmats": T}
    if weights is not None:
        given["weights"] = weights
    return given, f"rows {rows}"


def discrete_arguments(rng):
    """Return a constructor of `HMMBatch`, its arguments and their description."""
    n, m, k = (int(v) for v in rng.integers([2, 1, 1], [6, 4, 5]))
    given, rows = chain_arguments(rng, n, m)
    maker = pick(rng, ["from_emissionprobs", "from_rates", "from_state_costs"])
    if maker == "from_emissionprobs":
        probs = rng.dirichlet(np.ones(k), size=(n, m))
        given["emissionprobs"] = np.where(probs > 0.9, 1, 0) if k == 1 else probs
        if rng.random() < 0.3:
            costs = rng.random((k, k))
            given["symbol_costs"] = costs + costs.T - np.diag(2 * np.diag(costs))
    elif maker == "from_rates":
        given["rates"] = power(rng, 100) * rng.random((n, m, k))
    else:
        costs = rng.random((n * m, n * m)) * power(rng, 100)
        given["cost"] = costs + costs.T - np.diag(2 * np.diag(costs))
    return maker, given, f"{maker}: {n} models, {m} states, {k} values, {rows}"


def spoilt(rng, given):
    """Return the arguments of a batch, one of them wrong, and what is wrong."""
    name = pick(rng, [*given])
    array = np.array(given[name], dtype=float)
    cut = array[:, :-1] if array.shape[1] > 1 else array[..., None]
    wrongs = {
        "NaN": np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array),
        "infinity": np.where(
            np.arange(array.size).reshape(array.shape) == 0, np.inf, array
        ),
        "text": "many",
        "strings": array.astype(str),
        "complex": array + 1j,
        "dates": np.zeros(array.shape, "M8[s]"),
        "None": None if name != "weights" else np.nan,
        "number": 2.5,
        "fewer models": array[:-1],
        "other shape": cut,
        "a dict": {"a": array},
        "empty": array[:0],
        "ragged": [[1.0, [2.0]]],
        "objects": np.full(array.shape, object()),
    }
    if name != "means":
        wrongs["negative"] = -array - 1
    if name in {"transmats", "weights", "emissionprobs"}:
        wrongs["sums"] = array * 2
    how = pick(rng, [*wrongs])
    return {**given, name: wrongs[how]}, f"{name}: {how}"
