"""Emissions of states by channel: curves, roses and bars over histograms."""

import numpy as np

from skawhmm.plot._style import bar_range, literal, state_color
from skawhmm.sequences._trials import unit_frames

# Largest number of channels drawn by default.
MAX_PANELS = 12

# Points of a curve, and bars of a histogram.
N_PLACES = 201
N_BINS = 24

# Quantiles of states that a panel shows.
LEVELS = (0.005, 0.995)

# More counts than this are drawn as a line without points.
MAX_COUNTS = 60


def channel_panels(model, size, channels, names, sequences):
    """Return one panel per channel, ready to draw.

    Parameters
    ----------
    model : HMMBatch
        One model.

    size : int
        Number of its states.

    channels : list of int
        Indices of the channels.

    names : list of str
        Names of all channels.

    sequences : list of ndarray or Trials, or None
        Checked sequences, whose values are drawn as histograms.

    Returns
    -------
    panels : list of dict
        One per channel, as `HMMDisplay` takes them.
    """
    frames = None
    if sequences is not None:
        parts = [np.reshape(x, (len(x), -1)) for x in unit_frames(sequences)]
        frames = np.concatenate(parts)
    weights, panels = model.weights[0, :size], []
    for c in channels:
        values = None
        if frames is not None:
            values = frames[:, c][~np.isnan(frames[:, c])]
        family = model.emission.of_channel(c)
        found = KINDS[family.support](family, weights, values)
        panels.append({"name": names[c], **found})
    return panels


def densities(family, i, places, size):
    """Return the densities (n_states, n_places) of one channel of model i."""
    logs, _ = family.frame_densities(i, np.asarray(places, float)[:, None], size)
    return np.exp(np.minimum(logs, 700.0))


def reach(family, size, i=0):
    """Return low and high quantiles (2, n_states) of one channel of model i."""
    path = np.arange(size)
    return np.array(
        [family.frames_at(i, path, np.full((size, 1), u))[:, 0] for u in LEVELS]
    )


def _line(family, weights, values):
    ends = reach(family, len(weights))
    if values is not None and len(values):
        ends = np.append(ends, np.quantile(values, LEVELS))
    low, high = bar_range(ends.ravel())
    # A gamma density may be infinite at its lower end, 0.
    places = np.linspace(low, high, N_PLACES) + (high - low) / N_PLACES / 2
    heights = weights[:, None] * densities(family, 0, places, len(weights))
    panel = {"kind": "curve", "places": places, "heights": heights}
    zeros = family.parameters.get("zero_probs")
    if zeros is not None and zeros[0, : len(weights)].any():
        parts = [f"{100 * p:.2g} %" for p in zeros[0, : len(weights), 0]]
        panel["note"] = f"zeros: {', '.join(parts)}"
    if values is not None and len(values):
        counts, edges = np.histogram(values, N_BINS, (low, high))
        panel |= {"edges": edges, "histogram": counts / len(values) / np.diff(edges)}
    return panel


def _circle(family, weights, values):
    places = np.linspace(-np.pi, np.pi, N_PLACES)
    heights = weights[:, None] * densities(family, 0, places, len(weights))
    panel = {"kind": "rose", "places": places, "heights": heights}
    if values is not None and len(values):
        counts, edges = np.histogram(values, N_BINS, (-np.pi, np.pi))
        panel |= {"edges": edges, "histogram": counts / len(values) / np.diff(edges)}
    return panel


def _counts(family, weights, values):
    top = float(reach(family, len(weights)).max())
    if values is not None and len(values):
        top = max(top, float(np.quantile(values, LEVELS[1])))
    step = max(1, int(np.ceil((top + 1) / N_PLACES)))
    places = np.arange(0, max(top, 1) + 1, step)
    heights = weights[:, None] * densities(family, 0, places, len(weights))
    panel = {"kind": "points", "places": places, "heights": heights}
    if values is not None and len(values):
        width = max(1, int(np.ceil((top + 1) / N_BINS)))
        edges = np.arange(-0.5, max(top, 1) + width + 0.5, width)
        counts, _ = np.histogram(values, edges)
        panel |= {"edges": edges, "histogram": counts / len(values) / width}
    return panel


def _symbols(family, weights, values):
    probabilities = family.emissionprobs[0, : len(weights)]
    panel = {
        "kind": "bars",
        "places": [str(symbol) for symbol in family.symbols],
        "heights": probabilities,
    }
    if values is not None and len(values):
        counts = np.bincount(values.astype(int), minlength=probabilities.shape[1])
        panel |= {"histogram": counts / len(values)}
    return panel


KINDS = {"line": _line, "circle": _circle, "counts": _counts, "symbols": _symbols}


def draw_panels(ax, panels, names):
    """Draw panels in place of axes, and return the axes of each."""
    n_columns = 1 if len(panels) == 1 else 2 if len(panels) <= 6 else 3
    n_rows = -(-len(panels) // n_columns)
    ax.axis("off")
    axes = []
    for n, panel in enumerate(panels):
        row, column = divmod(n, n_columns)
        width, height = 1 / n_columns, 1 / n_rows
        place = (
            (column + 0.06) * width,
            1 - (row + 0.86) * height,
            0.88 * width,
            0.66 * height,
        )
        kind = {"projection": "polar"} if panel["kind"] == "rose" else {}
        own = ax.inset_axes(place, **kind)
        DRAWN[panel["kind"]](own, panel)
        own.set_title(literal(panel["name"]), fontsize="small", pad=4)
        if "note" in panel:
            style = {"fontsize": 7, "ha": "right", "va": "top", "color": "0.35"}
            own.text(0.98, 0.95, panel["note"], transform=own.transAxes, **style)
        axes.append(own)
    lines = [ax.plot([], [], color=state_color(k))[0] for k in range(len(names))]
    labels = [literal(f"state {name}") for name in names]
    ax.legend(
        lines,
        labels,
        frameon=False,
        fontsize="small",
        ncols=min(len(names), 4),
        loc="lower center",
        bbox_to_anchor=(0.5, -0.1),
    )
    return axes


def _draw_curve(ax, panel):
    places, marker = panel["places"], ""
    if panel["kind"] == "points" and len(places) <= MAX_COUNTS:
        marker = "."
    top = 0.0
    if "histogram" in panel:
        style = {"color": "0.85", "linewidth": 0, "width": np.diff(panel["edges"])}
        ax.bar(panel["edges"][:-1], panel["histogram"], align="edge", **style)
        top = np.max(panel["histogram"], initial=0.0)
    for k, y in enumerate(panel["heights"]):
        style = {"color": state_color(k), "linewidth": 1.5, "marker": marker}
        ax.plot(places, y, **style)
        ax.fill_between(places, y, color=state_color(k), alpha=0.15, linewidth=0)
    # A density that is infinite at 0 must not flatten the other curves.
    inner = np.quantile(panel["heights"], 0.98, axis=1).max()
    top = max(1.6 * top, min(2 * inner, np.max(panel["heights"])))
    ax.set(ylim=(0, 1.05 * top or 1.0), yticks=[])
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _draw_rose(ax, panel):
    if "histogram" in panel:
        widths = np.diff(panel["edges"])
        middles = panel["edges"][:-1] + widths / 2
        style = {"color": "0.85", "linewidth": 0, "width": widths}
        ax.bar(middles, panel["histogram"], **style)
    for k, y in enumerate(panel["heights"]):
        ax.plot(panel["places"], y, color=state_color(k), linewidth=1.5)
        ax.fill(panel["places"], y, color=state_color(k), alpha=0.15, linewidth=0)
    turns = np.array([0, 0.5, 1, 1.5]) * np.pi
    ax.set_xticks(turns, ["0", "π/2", "±π", "-π/2"], fontsize=7)
    ax.tick_params(pad=-2)
    ax.set_yticks([])
    ax.set_rlim(0)
    ax.spines["polar"].set_color("0.8")


def _draw_bars(ax, panel):
    heights = np.asarray(panel["heights"])
    places = np.arange(heights.shape[1])
    if "histogram" in panel:
        ax.bar(places, panel["histogram"], width=0.95, color="0.85")
    width = 0.8 / len(heights)
    for k, y in enumerate(heights):
        middle = places + (k - (len(heights) - 1) / 2) * width
        ax.bar(middle, y, width=0.9 * width, color=state_color(k))
    shown = slice(None, None, 1 + (len(places) - 1) // 12)
    texts = [literal(place) for place in panel["places"]]
    ax.set_xticks(places[shown], texts[shown], fontsize=7)
    ax.set(ylim=(0, None), yticks=[])
    ax.spines[["top", "right", "left"]].set_visible(False)


DRAWN = {
    "curve": _draw_curve,
    "points": _draw_curve,
    "rose": _draw_rose,
    "bars": _draw_bars,
}
