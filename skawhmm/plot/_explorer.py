"""The map of a collection as a single page that works in a browser offline.

Numbers are packed: float32 for positions and distances, one byte per entry of a
registration and per value of a sequence, two per transition probability, all in base64.
"""

import base64
import html
import json
from importlib.resources import files

import numpy as np

from skawhmm.distances._base import RegisteringDistance
from skawhmm.distances._maw import MAW
from skawhmm.distances._pairwise import registrations
from skawhmm.models._inference import best_paths
from skawhmm.plot._explorer_channels import emission_panels
from skawhmm.plot._style import channel_labels
from skawhmm.sequences._trials import unit_frames

# Longer sequences are averaged down to this many steps, the width of a panel.
MAX_STEPS = 100

# Of more channels, the ones that vary most over the collection are drawn.
MAX_CHANNELS = 8

# Bytes 0 to 254 are values; this byte stands for a missing value.
MISSING = 255

# The page holds distances and registrations of all pairs if they take at most this many
# bytes, and otherwise only of neighbours.
MAX_PAIR_BYTES = 2_000_000

# Integer columns with at most this many different values are treated as labels.
MAX_WHOLE_LABELS = 12


def explorer_page(
    positions,
    neighbors,
    lengths,
    distances,
    *,
    y,
    names,
    channel_names,
    models,
    metric,
    title,
):
    """Return the text of the page.

    Parameters
    ----------
    positions : ndarray of shape (n_models, 2)
        Positions of the models on the map.

    neighbors : ndarray of int of shape (n_models, n_neighbors)
        The nearest models of each model, nearest first.

    lengths : ndarray of shape (n_models, n_neighbors)
        Their distances.

    distances : ndarray of shape (n_models, n_models)
        Distances between all models.

    y : ndarray of shape (n_models,) or None
        Labels.

    names : sequence of str or None
        An additional name per model.

    channel_names : list of str or None
        Names of the channels.

    models : HMMBatch or None
        The models; their sequences are drawn if they contain them.

    metric : object or None
        The distance. If it does not register states, MAW registers them.

    title : str
        Heading of the page.

    Returns
    -------
    page : str
        HTML, with the data and the code in it.
    """
    values, codes = np.unique(
        np.zeros(len(positions)) if y is None else y, return_inverse=True
    )
    registering = metric if isinstance(metric, RegisteringDistance) else MAW()
    data = {
        "title": title,
        "metric": "as given" if metric is None else type(metric).__name__,
        "alpha": getattr(metric, "alpha", None),
        "metric_repr": None if metric is None else repr(metric),
        "registration": type(registering).__name__,
        "n_neighbors": neighbors.shape[1],
        "classes": None if y is None else [str(value) for value in values],
        "names": None if names is None else [str(name) for name in names],
        "points": {
            "positions": _packed(_in_unit_square(positions), "f4"),
            "codes": _packed_numbers(codes),
            "neighbors": _packed(neighbors, "i4"),
            "distances": _packed(lengths, "f4"),
        },
        "columns": [],
        "states": None,
        "sequences": None,
        "pairs": None,
    }
    size = 0
    if models is not None:
        data["columns"] = [
            _column(name, column)
            for name, column in models.info.items()
            if column.ndim == 1
        ]
        channel_names = channel_labels(
            channel_names, models.n_features, models.feature_names
        )
        data["states"] = _states(models, registering, neighbors, channel_names)
        size = models.transmats.shape[1]
        if models.sequences is not None:
            data["sequences"] = _sequences(models, channel_names)
    if len(positions) ** 2 * (4 + size**2 / 2) <= MAX_PAIR_BYTES:
        data["pairs"] = _pairs(models, registering, distances)
    # In a script element, only "<" can end the element or open a comment.
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    template = (
        files("skawhmm.plot").joinpath("_explorer.html").read_text(encoding="utf-8")
    )
    head, foot = template.split("{{data}}")
    head = head.replace("{{title}}", html.escape(title))
    return head + text.replace("<", "\\u003c") + foot


def _packed(values, kind):
    """Return an array as little-endian bytes in base64, with its type."""
    data = np.ascontiguousarray(values).astype(f"<{kind}").tobytes()
    return {"packed": [kind, base64.b64encode(data).decode()]}


def _packed_numbers(values):
    """Return non-negative integers in the smallest type that holds the largest."""
    largest = int(np.max(values, initial=0))
    kinds = (kind for kind, top in (("u1", 2**8), ("u2", 2**16)) if largest < top)
    return _packed(values, next(kinds, "i4"))


def _in_unit_square(positions):
    """Return the positions between 0 and 1, with y downwards as on a screen."""
    positions = np.asarray(positions, dtype=float) * [1, -1]
    low = positions.min(axis=0)
    span = np.ptp(positions, axis=0)
    margin = (span.max() - span) / 2
    return (positions - low + margin) / (span.max() or 1.0)


def _column(name, values):
    """Return a column of `info` as labels, or as numbers."""
    values = np.asarray(values)
    is_number = values.dtype.kind in "iuf"
    values = values if is_number else values.astype(str)
    found, codes = np.unique(values, return_inverse=True)
    is_whole = values.dtype.kind in "iu" and len(found) <= MAX_WHOLE_LABELS
    if not is_number or is_whole:
        labels = [str(value) for value in found]
        return {"name": str(name), "classes": labels, "codes": _packed_numbers(codes)}
    values = values.astype(float)
    finite = values[np.isfinite(values)]
    limits = [float(finite.min()), float(finite.max())] if len(finite) else [0.0, 0.0]
    fractions = (values - limits[0]) / ((limits[1] - limits[0]) or 1.0)
    return {
        "name": str(name),
        "limits": limits,
        "values": _packed(np.where(np.isfinite(values), fractions, np.nan), "f4"),
    }


def _pairs(models, metric, distances):
    """Return distances of all pairs, and one registration per pair."""
    pairs = {"distances": _packed(distances, "f4"), "plans": None}
    if models is not None:
        rows, columns = np.triu_indices(len(models), 1)
        plans = registrations(models, metric, rows, columns)
        pairs["plans"] = _packed(np.rint(255 * np.clip(plans, 0, 1)), "u1")
    return pairs


def _states(models, metric, neighbors, channel_names):
    """Return the states of the models, and registrations between neighbours."""
    n_models, n_neighbors = neighbors.shape
    rows = np.repeat(np.arange(n_models), n_neighbors)
    plans = registrations(models, metric, rows, neighbors.ravel())
    states = {
        "size": models.transmats.shape[1],
        "counts": _packed_numbers(models.n_components),
        "weights": _packed(models.weights, "f4"),
        "starts": _packed(models.startprobs, "f4"),
        "transmats": _packed(np.rint(65535 * models.transmats), "u2"),
        "plans": _packed(np.rint(255 * np.clip(plans, 0, 1)), "u1"),
        "plane": None,
        "panels": None,
        "n_features": models.n_features,
        "names": models.state_names,
    }
    if models.emission.name == "custom":
        return states
    if models.emission.name != "gaussian":
        panels = [_packed_panel(p) for p in emission_panels(models, channel_names)]
        return states | {"panels": panels or None}
    axes = " and ".join(channel_names)
    if models.n_features > 2:
        axes = "the first two principal axes"
    return states | {
        "plane": _packed(_ellipses(models), "f4"),
        "flat": models.n_features == 1,
        "axes": axes,
    }


def _packed_panel(panel):
    """Return the panel of a channel, with heights as bytes relative to the largest."""
    heights, bars, zeros = panel["heights"], panel["bars"], panel["zeros"]
    peaks = heights.max(axis=(1, 2))
    if bars is not None:
        peaks = np.maximum(peaks, bars.max(axis=1))
        bars = _packed(np.rint(255 * bars / np.maximum(peaks, 1e-300)[:, None]), "u1")
    unit = np.maximum(peaks, 1e-300)[:, None, None]
    return panel | {
        "heights": _packed(np.rint(255 * heights / unit), "u1"),
        "n_places": heights.shape[2],
        "peaks": _packed(peaks, "f4"),
        "bars": bars,
        "zeros": None if zeros is None else _packed(zeros, "f4"),
    }


def _ellipses(models):
    """Return centre, radii and angle of each state, on axes common to all models."""
    weights = models.weights[..., None] / len(models)
    means = np.nan_to_num(models.means)
    covars = np.nan_to_num(models.emission.full_covars())
    n_features = models.n_features
    if n_features == 1:
        zeros = np.zeros_like(means)
        radii = np.sqrt(covars[..., 0])
        return np.concatenate([means, zeros, radii, zeros, zeros], axis=2)
    basis = np.eye(n_features)
    if n_features > 2:
        gaps = means - np.sum(weights * means, axis=(0, 1))
        total = np.einsum("nki,nkj->ij", weights * gaps, gaps)
        total += np.sum(weights[..., None] * covars, axis=(0, 1))
        basis = np.linalg.eigh(total)[1][:, :-3:-1]
    values, vectors = np.linalg.eigh(basis.T @ covars @ basis)
    # Rounding can push the variance of a dead channel below zero.
    radii = np.sqrt(np.maximum(values[..., ::-1], 0))
    angles = np.arctan2(vectors[..., 1, 1], vectors[..., 0, 1])
    return np.concatenate([means @ basis, radii, angles[..., None]], axis=2)


def _sequences(models, channel_names):
    """Return the sequences, shortened, with the state of each step."""
    X = [np.asarray(x, dtype=float) for x in unit_frames(models.sequences)]
    frames = np.concatenate(X)
    spread = np.nan_to_num(np.nanstd(frames[:, _seen(frames)], axis=0))
    order = np.argsort(-spread, kind="stable")[:MAX_CHANNELS]
    channels = np.sort(np.flatnonzero(_seen(frames))[order])
    edges = [_edges(len(x)) for x in X]
    # Symbols cannot be averaged.
    shortened = _picked if models.emission.name == "categorical" else _shortened
    values, ranges = [], []
    for x, starts in zip(X, edges, strict=True):
        codes, limits = _coded(shortened(x[:, channels], starts))
        values.append(codes)
        ranges.append(limits)
    counts = [len(starts) for starts in edges]
    return {
        "lengths": _packed([len(x) for x in X], "i4"),
        "starts": _packed(np.concatenate([[0], np.cumsum(counts)]), "i4"),
        "values": _packed(np.concatenate(values), "u1"),
        "ranges": _packed(np.stack(ranges), "f4"),
        "paths": _paths(models, edges),
        "channels": channels.tolist(),
        "names": [channel_names[k] for k in channels],
        "n_features": frames.shape[1],
        "max_steps": MAX_STEPS,
        "shortened": max(len(x) for x in X) > MAX_STEPS,
    }


def _seen(frames):
    """Return which channels have any observed value."""
    return np.isfinite(frames).any(axis=0)


def _edges(n_timesteps):
    """Return the first frame of each step that is drawn."""
    n_steps = min(n_timesteps, MAX_STEPS)
    return (np.arange(n_steps) * n_timesteps) // n_steps


def _shortened(x, starts):
    """Return means of the frames of each step, over the observed values."""
    there = np.isfinite(x)
    counts = np.add.reduceat(there, starts, axis=0, dtype=float)
    sums = np.add.reduceat(np.where(there, x, 0), starts, axis=0)
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


def _picked(x, starts):
    """Return the first frame of each step."""
    return x[starts]


def _coded(x):
    """Return values as bytes between the limits of their channel, and the limits."""
    there = np.isfinite(x)
    low = np.where(there, x, np.inf).min(axis=0)
    high = np.where(there, x, -np.inf).max(axis=0)
    empty = ~there.any(axis=0)
    low[empty] = high[empty] = 0
    fractions = (np.where(there, x, low) - low) / np.where(high > low, high - low, 1)
    codes = np.where(there, np.rint((MISSING - 1) * fractions), MISSING)
    return codes, np.stack([low, high], axis=1)


def _paths(models, edges):
    """Return the state in the middle of each step."""
    if models.emission.name == "custom":
        return None
    paths, _ = best_paths(models, models.sequences)
    # Trials are drawn one after the other.
    whole = [np.concatenate(x) if isinstance(x, list) else x for x in paths]
    steps = []
    for path, starts in zip(whole, edges, strict=True):
        steps.append(path[(starts + np.append(starts[1:], len(path))) // 2])
    return _packed_numbers(np.concatenate(steps))
