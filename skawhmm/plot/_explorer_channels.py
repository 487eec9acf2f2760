"""Emissions of states by channel, packed for the page of the explorer."""

from typing import Any

import numpy as np

from skawhmm.plot._channels import densities, reach
from skawhmm.plot._style import bar_range
from skawhmm.sequences._trials import unit_frames

# Number of points of a curve, and of bars of a histogram.
N_PLACES = 64
N_BINS = 24

# Largest number of symbols or counts drawn as bars.
MAX_BARS = 12

# Largest number of channels drawn, and of bytes that they may add to the page.
MAX_PANELS = 8
MAX_BYTES = 4_000_000

# States with smaller weights do not widen the axes.
LEAST_WEIGHT = 0.01

# Fraction of points whose height may exceed the axis, since densities may be infinite.
STEEP = 0.02


def emission_panels(models, names):
    """Return one panel per channel, with the same axes for all models.

    Parameters
    ----------
    models : HMMBatch
        The models. Their sequences, if they have them, are drawn as histograms.

    names : list of str
        Names of the channels.

    Returns
    -------
    panels : list of dict
        One per channel: name, `kind`, `heights` (n_models, n_components, n_places),
        `bars` (n_models, n_bins) of the frames or None, `zeros` (n_models,
        n_components) or None, and the `ends` of its axis or the `labels` of bars. There
        is no panel for channels of a family without quantiles, nor for visible chains,
        whose states are their symbols.
    """
    emission = models.emission
    has_channels = emission.support is not None or emission.name == "by_channel"
    if not has_channels or models.state_names is not None:
        return []
    frames = None
    if models.sequences is not None:
        frames = [np.reshape(x, (len(x), -1)) for x in unit_frames(models.sequences)]
    panels: list[dict[str, Any]] = []
    room = MAX_BYTES
    for c, name in enumerate(names):
        family = emission.of_channel(c)
        if family.support is None or len(panels) == MAX_PANELS:
            continue
        values = None if frames is None else [x[:, c] for x in frames]
        panel = KINDS[family.support](family, models, values)
        room -= panel["heights"].size
        if room < 0:
            break
        zeros = family.parameters.get("zero_probs")
        has_zeros = zeros is not None and zeros.any()
        panel["zeros"] = zeros[..., 0] if has_zeros else None
        panels.append({"name": name, **panel})
    return panels


def _line(family, models, values):
    low, high = bar_range(_ends(family, models))
    width = (high - low) / N_PLACES
    places = low + width * (np.arange(N_PLACES) + 0.5)
    bars = _histograms(values, np.linspace(low, high, N_BINS + 1))
    heights = _heights(family, models, places)
    return {"kind": "curve", "ends": [low, high], "heights": heights, "bars": bars}


def _circle(family, models, values):
    places = 2 * np.pi * np.arange(N_PLACES) / N_PLACES - np.pi
    bars = _histograms(values, np.linspace(-np.pi, np.pi, N_BINS + 1))
    heights = _heights(family, models, places)
    return {"kind": "rose", "heights": heights, "bars": bars}


def _counts(family, models, values):
    top = int(max(np.ceil(_ends(family, models)[1]), 1))
    if top < MAX_BARS:
        places = np.arange(top + 1)
        rows = [densities(family, i, places, n) for i, n in _sizes(models)]
        edges = np.arange(top + 2) - 0.5
        return _bars(places, _padded(rows, models), _histograms(values, edges))
    step = -(-(top + 1) // N_PLACES)
    places = np.arange(0, top + 1, step)
    width = -(-(top + 1) // N_BINS)
    edges = np.arange(-0.5, top + width + 0.5, width)
    return {
        "kind": "curve",
        "ends": [0, int(places[-1] + step - 1)],
        "heights": _heights(family, models, places),
        "bars": _histograms(values, edges),
    }


def _symbols(family, _models, values):
    edges = np.arange(len(family.symbols) + 1) - 0.5
    bars = _histograms(values, edges)
    return _bars(family.symbols, np.array(family.emissionprobs), bars)


KINDS = {"line": _line, "circle": _circle, "counts": _counts, "symbols": _symbols}


def _bars(labels, heights, bars):
    labels = [str(label) for label in labels]
    return {"kind": "bars", "labels": labels, "heights": heights, "bars": bars}


def _sizes(models):
    return [(i, int(n)) for i, n in enumerate(models.n_components)]


def _ends(family, models):
    """Return the ends of an axis on which nearly all states are fully visible."""
    ends = [reach(family, n, i) for i, n in _sizes(models)]
    seen = [models.weights[i, :n] > LEAST_WEIGHT for i, n in _sizes(models)]
    low, high = np.concatenate(
        [own[:, used] for own, used in zip(ends, seen, strict=True)], axis=1
    )
    return np.array([np.quantile(low, STEEP), np.quantile(high, 1 - STEEP)])


def _heights(family, models, places):
    """Return densities times state probabilities, cut off where they are very steep."""
    rows = []
    for i, n in _sizes(models):
        own = models.weights[i, :n, None] * densities(family, i, places, n)
        rows.append(np.minimum(own, 2 * np.quantile(own, 1 - STEEP, axis=1).max()))
    return _padded(rows, models)


def _padded(rows, models):
    heights = np.zeros((len(rows), models.transmats.shape[1], rows[0].shape[1]))
    for i, row in enumerate(rows):
        heights[i, : len(row)] = row
    return heights


def _histograms(values, edges):
    """Return the densities of the frames of each model, or None without frames."""
    if values is None:
        return None
    rows = []
    for x in values:
        seen = x[~np.isnan(x)]
        counts, _ = np.histogram(seen, edges)
        rows.append(counts / max(len(seen), 1) / np.diff(edges))
    return np.array(rows)
