"""HTML display of a batch in notebooks: a table with a small graph per model."""

import html

import numpy as np

from skawhmm.utils._colors import COLORS

# Most models and columns shown; the others are only counted.
MAX_MODELS = 5
MAX_COLUMNS = 6

# Size of a graph, and of the circle its states are placed on, in pixels.
WIDTH, HEIGHT, CIRCLE = 150, 92, 32

# Radii of the rarest and of the most frequent state.
RADII = 5.0, 11.0

# Fainter transitions are not drawn.
LEAST_SHOWN = 0.01


def batch_html(batch):
    """Return a table of the first models of a batch, with pictures.

    Parameters
    ----------
    batch : HMMBatch
        The models.

    Returns
    -------
    page : str
        HTML fragment, in the colours of the surrounding page.
    """
    columns = list(batch.info)[:MAX_COLUMNS]
    heads = ["model", "states and transitions", "n_components", *columns]
    n_shown = min(len(batch), MAX_MODELS)
    rows = []
    for n in range(n_shown):
        cells = [str(n), _picture(batch, n), str(batch.n_components[n])]
        cells += [html.escape(_shown(batch.info[name][n])) for name in columns]
        rows.append("".join(f"<td>{cell}</td>" for cell in cells))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    left = [
        f"{len(items) - shown} more {name}"
        for items, shown, name in (
            (batch, n_shown, "models"),
            (batch.info, len(columns), "info columns"),
        )
        if len(items) > shown
    ]
    more = f"<p>… {' and '.join(left)}</p>" if left else ""
    title = f"<p><code>{html.escape(repr(batch))}</code></p>"
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div>{title}{table}{more}</div>"


def _shown(value):
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def _picture(batch, n):
    """Return the states of a model as circles, and its transitions as arrows."""
    size = int(batch.n_components[n])
    transmat = batch.transmats[n, :size, :size]
    weights = batch.weights[n, :size]
    names = [html.escape(str(name)) for name in batch.state_names or range(size)]
    turns = 2 * np.pi * np.arange(size) / size - np.pi / 2
    places = CIRCLE * np.stack([1.5 * np.cos(turns), np.sin(turns)], axis=1)
    if size == 1:
        places[:] = 0
    places += np.array([WIDTH, HEIGHT]) / 2
    radii = np.maximum(RADII[1] * np.sqrt(weights / weights.max()), RADII[0])
    arrows = [
        _arrow(places, radii, i, k, f"{names[i]} to {names[k]}", transmat[i, k])
        for i, k in np.argwhere(transmat >= LEAST_SHOWN)
        if i != k
    ]
    circles = [
        _circle(places[k], radii[k], k, name, weights[k], transmat[k, k])
        for k, name in enumerate(names)
    ]
    said = f"Model {n}: {size} state{'s' if size > 1 else ''}"
    return (
        # Pages shrink graphics to the width of the cell, which may be a small screen.
        f'<svg width="{WIDTH}" height="{HEIGHT}" style="max-width: none" role="img" '
        f'aria-label="{said}">'
        f"{''.join(arrows)}{''.join(circles)}</svg>"
    )


def _circle(place, radius, k, name, weight, staying):
    length = f"{1 / (1 - staying):.3g} steps per visit" if staying < 1 else "never left"
    x, y = place
    return (
        f"<g><title>state {name}: {100 * weight:.0f} % of the time, {length}</title>"
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" '
        f'fill="{COLORS[k % len(COLORS)]}" stroke="#888" stroke-width="0.5"/></g>'
    )


def _arrow(places, radii, i, k, name, probability):
    """Return a bent arrow from one state to the next."""
    gap = places[k] - places[i]
    length = np.linalg.norm(gap)
    along = gap / length
    aside = np.array([-along[1], along[0]])
    # The two directions of a pair bend apart.
    bend = (places[i] + places[k]) / 2 + 0.18 * length * aside
    inward = (places[k] - bend) / np.linalg.norm(places[k] - bend)
    tip = places[k] - (radii[k] + 1) * inward
    width = 0.8 + 2.2 * np.sqrt(probability)
    head = 3.5 + 1.2 * width
    foot = tip - head * inward
    across = head / 2 * np.array([-inward[1], inward[0]])
    line = _path("M{} {}Q{} {} {} {}", places[i], bend, foot)
    point = _path("M{} {}L{} {} {} {}Z", tip, foot + across, foot - across)
    return (
        f"<g><title>{name}: {probability:.2g}</title>"
        f'<path d="{line}" fill="none" stroke="#888" stroke-width="{width:.1f}"/>'
        f'<path d="{point}" fill="#888"/></g>'
    )


def _path(form, *points):
    return form.format(*(f"{value:.1f}" for value in np.concatenate(points)))
