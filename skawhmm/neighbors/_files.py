"""Files of retrievers: models and index in arrays that are mapped to memory."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from skawhmm.distances._resolve import METRICS, fitted_metric
from skawhmm.models._archive import (
    INFO,
    check_header,
    header_and_arrays,
    parts_in,
    stored_template,
)
from skawhmm.models._batch import HMMBatch
from skawhmm.models._counts import NAMES as COUNTS
from skawhmm.models._counts import Counts
from skawhmm.neighbors._approximate import ApproximateIndex
from skawhmm.neighbors._balls import Balls, compares_chains
from skawhmm.neighbors._points import PointIndex, PointUnits
from skawhmm.neighbors._search import SearchIndex, can_prune
from skawhmm.neighbors._search_kernels import LANES
from skawhmm.utils._archives import archived_arrays
from skawhmm.utils._mapped_arrays import mapped_arrays, write_arrays
from skawhmm.utils._whole_files import check_path

KIND = "skawhmm.HMMRetriever"
VERSION = 3
HEADER = "header"

# Prefixes of array names: models, index, and points of the index.
MODELS, INDEX, POINTS = "models/", "index/", "points/"

# Fields of indices that are numbers, not arrays.
BALL_NUMBERS = {"scale": float, "largest": float, "n_grouped": int}
APPROXIMATE_NUMBERS = {
    "n_groups": int,
    "marginal_fraction": float,
    "n_candidates": int,
    "n_fitted": int,
    "recall": float,
}
UNIT_NUMBERS = ("scale", "spread", "next_weight")


def save_retriever(path, params, models, index):
    """Write a retriever to a file, completely or not at all.

    Parameters
    ----------
    path : str or path-like
        The file; it is replaced if it exists.

    params : dict
        Parameters of the retriever, without `hmm`.

    models : HMMBatch
        The models.

    index : SearchIndex, ApproximateIndex or None
        The index, if there is one.
    """
    about, arrays = header_and_arrays(models)
    named = {MODELS + name: array for name, array in arrays.items()}
    header = {
        "kind": KIND,
        "version": VERSION,
        "params": _stored_params(params),
        "models": about,
    }
    if index is not None:
        named[f"{INDEX}keys"] = index.keys
    if isinstance(index, ApproximateIndex):
        header["approximate"] = {
            name: getattr(index, name) for name in APPROXIMATE_NUMBERS
        }
        if index.points is not None:
            units = index.points.units._asdict()
            named[f"{POINTS}units"] = units.pop("origin")
            header["units"] = units
            header["points"] = _name_balls(named, POINTS, index.points.balls)
        index = index.exact
    if index is not None:
        header["index"] = _name_balls(named, INDEX, index.balls)
    header["arrays"] = sorted(named)
    text = np.array(json.dumps(header, default=_plain))
    write_arrays(path, {HEADER: text, **named})


def _name_balls(named, start, balls):
    """Add the arrays of groups to those that have names; return the numbers."""
    arrays = balls._asdict()
    numbers = {name: arrays.pop(name) for name in BALL_NUMBERS}
    named.update({start + name: array for name, array in arrays.items()})
    return numbers


def _plain(value):
    """Return a NumPy number as a Python number, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r:.100} cannot be stored")


def _stored_params(params):
    """Return the parameters for JSON; a distance becomes its name and parameters."""
    metric = params["metric"]
    names = {kind: name for name, kind in METRICS.items()}
    if type(metric) in names:
        own = metric.get_params(deep=False)
        params = {**params, "metric": {"name": names[type(metric)], "params": own}}
    try:
        json.dumps(params, default=_plain)
    except TypeError as error:
        raise TypeError(
            "A retriever is saved if its parameters are numbers and names, and its "
            f"distance one of {list(METRICS)}, got metric={metric!r:.100}: {error}. "
            "joblib.dump stores any retriever."
        ) from error
    return params


def load_retriever(path, memory_map):
    """Return what `save_retriever` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    memory_map : bool
        Whether arrays stay in the file until they are used.

    Returns
    -------
    params : dict
        The parameters.

    models : HMMBatch
        The models.

    make_index : callable
        Takes a distance and returns its index, or None if the file has none.
    """
    check_path("path", path)
    where = repr(os.fspath(path))
    try:
        arrays = mapped_arrays(path) if memory_map else archived_arrays(Path(path))
    except ValueError as error:
        raise ValueError(
            f"{where} must be a complete {KIND} file, but cannot be read as one "
            f"({error}): it was cut short, damaged or is something else. "
            "HMMRetriever.save writes such files."
        ) from error
    header = _checked_header(where, arrays)
    parts: dict[str, dict[str, Any]] = {MODELS: {}, INDEX: {}, POINTS: {}}
    for name, array in arrays.items():
        start, _, rest = name.partition("/")
        parts[f"{start}/"][rest] = array
    try:
        params = dict(header["params"])
        models = _mapped_models(path, header["models"], parts[MODELS])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{where} must hold valid models: {error}") from error
    if isinstance(params.get("metric"), dict):
        metric = params["metric"]
        params["metric"] = METRICS[metric["name"]](**metric["params"])

    def make_index(metric):
        try:
            return _index(header, parts, models, metric)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{where} must hold the index of its models, but it is damaged: {error}"
            ) from error

    return params, models, make_index


def _checked_header(where, arrays):
    """Remove the header from the arrays of a file and return it, or raise."""
    try:
        header = dict(json.loads(str(arrays.pop(HEADER))))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{where} must be a {KIND} file, got an archive without its header. "
            "HMMRetriever.save writes such files."
        ) from error
    if header.get("kind") != KIND:
        raise ValueError(
            f"{where} must hold a {KIND}, got a {str(header.get('kind'))[:40]}."
        )
    if header.get("version") != VERSION:
        raise ValueError(
            f"{where} has version {str(header.get('version'))[:40]} of the {KIND} "
            f"format; this skawhmm reads version {VERSION}."
        )
    known = all(name.startswith((MODELS, INDEX, POINTS)) for name in arrays)
    if header.get("arrays") != sorted(arrays) or not known:
        raise ValueError(
            f"{where} must hold the arrays {header.get('arrays')}, got "
            f"{sorted(arrays)}: it is damaged."
        )
    return header


def _mapped_models(path, header, arrays):
    """Return models; the arrays of Gaussian ones stay mapped to the file."""
    where = repr(os.fspath(path))
    check_header(header, where)
    if header.get("emission") != "gaussian":
        copies = {name: np.array(array) for name, array in arrays.items()}
        return HMMBatch._of(**parts_in(path, header, copies))
    means, covars = arrays["means"], arrays["covars"]
    n_models, size, n_features = means.shape
    shapes = {
        "transmats": (n_models, size, size),
        "weights": (n_models, size),
        "startprobs": (n_models, size),
        "means": (n_models, size, n_features),
        "covars": (n_models, size, n_features, n_features)[: covars.ndim],
    }
    _check_arrays(arrays, dict.fromkeys(shapes, np.float64), shapes)
    observed = None
    if header.get("masked"):
        observed = arrays["observed"]
        _check_arrays(
            arrays, {"observed": np.bool_}, {"observed": (n_models, n_features)}
        )
    counts = None
    if COUNTS[0] in arrays:
        shapes = {COUNTS[0]: shapes["weights"], COUNTS[1]: shapes["transmats"]}
        _check_arrays(arrays, dict.fromkeys(shapes, np.float64), shapes)
        counts = Counts(*(arrays[name] for name in COUNTS))
    info = {
        name.removeprefix(INFO): array
        for name, array in arrays.items()
        if name.startswith(INFO)
    }
    _check_arrays(info, {}, dict.fromkeys(info, (n_models,)))
    names = header.get("feature_names")
    batch = HMMBatch.__new__(HMMBatch)
    batch._set(
        stored_template(header, where).like(means, covars, observed=observed),
        arrays["transmats"],
        arrays["weights"],
        arrays["startprobs"],
        info,
        None,
        None if names is None else tuple(names),
        counts,
    )
    return batch


def _check_arrays(arrays, dtypes, shapes):
    """Raise unless arrays have the given types and shapes."""
    for name, shape in shapes.items():
        array = arrays[name]
        dtype = np.dtype(dtypes.get(name, array.dtype))
        if array.dtype != dtype or array.shape != shape:
            raise ValueError(
                f"{name} must be {dtype} of shape {shape}, got {array.dtype} of shape "
                f"{array.shape}"
            )


def _index(header, parts, models, metric):
    """Return the index of models, or None if the file has none."""
    exact = points = None
    keys = parts[INDEX].pop("keys", None)
    if keys is not None:
        _check_arrays({"keys": keys}, {"keys": np.uint64}, {"keys": (len(models),)})
    if "index" in header:
        if not can_prune(metric, models):
            raise ValueError(f"{metric!r:.100} has no bounds")
        balls = _balls(header["index"], parts[INDEX], models, 2 * models.n_features)
        exact = SearchIndex.of(models, metric, keys, balls)
        # Kernels read chains if the distance has bounds for them.
        n_chains = len(models) if compares_chains(metric, models) else 0
        if len(balls.chains) != n_chains:
            raise ValueError(
                f"{n_chains} chains are needed, {len(balls.chains)} stored"
            )
    if "approximate" not in header:
        return exact
    numbers = {
        name: kind(header["approximate"][name])
        for name, kind in APPROXIMATE_NUMBERS.items()
    }
    if "points" in header:
        origin = parts[POINTS].pop("units")
        balls = _balls(header["points"], parts[POINTS], models, 2 * len(origin) + 1)
        units = {name: float(header["units"][name]) for name in UNIT_NUMBERS}
        points = PointIndex(PointUnits(origin, **units), balls)
    chosen = fitted_metric(metric, models._bare())
    return ApproximateIndex.of(models, chosen, keys, exact, points, numbers)


def _balls(numbers, arrays, models, n_dimensions):
    """Return groups whose arrays are checked against the models: kernels trust them."""
    numbers = {name: kind(numbers[name]) for name, kind in BALL_NUMBERS.items()}
    balls = Balls(**arrays, **numbers)
    n_models, size = models.weights.shape
    n_groups = len(balls.starts) - 1
    n_chains = n_models if len(balls.chains) else 0
    shapes = {
        "centres": (-(-n_groups // LANES), size, n_dimensions, LANES),
        "used": (n_groups, size),
        "tiles": (-(-n_models // LANES), size, n_dimensions, LANES),
        "margins": (n_models, size),
        "spreads": (n_models,),
        "chains": (n_chains, size, size),
        "apart": (n_chains, size * (size - 1) // 2),
        "origin": (n_dimensions,),
    }
    dtypes: dict[str, Any] = dict.fromkeys(shapes, np.float32)
    dtypes.update(margins=np.float64, origin=np.float64, used=np.uint8)
    _check_arrays(balls._asdict(), dtypes, shapes)
    _check_partition(balls.starts, balls.order, n_models)
    return balls


def _check_partition(starts, order, n_models):
    """Raise unless the groups hold each model exactly once: kernels trust this."""
    whole = order.shape == (n_models,) and order.dtype == starts.dtype == np.int64
    if not whole or not len(starts) or starts[0] != 0 or starts[-1] != n_models:
        raise ValueError("the groups do not hold all models")
    if np.diff(starts).min(initial=0) < 0 or order.min() < 0 or order.max() >= n_models:
        raise ValueError("the groups hold models that do not exist")
