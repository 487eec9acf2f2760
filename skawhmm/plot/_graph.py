"""States as circles, and transitions as arrows between them."""

import numpy as np

# Radius of the circle of states, and of the largest state.
CIRCLE, LARGEST_STATE = 1.0, 0.24
SMALLEST_STATE = 0.11


def circle_places(n_states):
    """Return positions (n_states, 2) on a circle, clockwise from the top."""
    turns = np.pi / 2 - 2 * np.pi * np.arange(n_states) / n_states
    return CIRCLE * np.stack([np.cos(turns), np.sin(turns)], axis=1)


def state_radii(occupancy, smallest=SMALLEST_STATE, largest=LARGEST_STATE):
    """Return radii of states with areas proportional to occupancy, within limits."""
    roots = np.sqrt(np.asarray(occupancy, dtype=float))
    return np.maximum(largest * roots / roots.max(), smallest)


def outward_directions(places):
    """Return unit vectors from the centre of all states to each state."""
    gaps = places - places.mean(axis=0)
    sizes = np.linalg.norm(gaps, axis=1, keepdims=True)
    # A single state is at the centre, up to rounding.
    is_apart = sizes > 1e-9
    return np.where(is_apart, gaps / np.where(is_apart, sizes, 1), [0.0, 1.0])


def draw_arrow(ax, places, radii, i, k, style):
    """Draw the transition from state `i` to state `k` and return the arrow.

    `style` holds `color`, `linewidth` and `zorder`.
    """
    from matplotlib.patches import FancyArrowPatch

    gap = places[k] - places[i]
    along = gap / np.linalg.norm(gap)
    # The two directions of a pair are bent apart.
    aside = 0.07 * np.array([along[1], -along[0]])
    arrow = FancyArrowPatch(
        places[i] + radii[i] * along + aside,
        places[k] - radii[k] * along + aside,
        arrowstyle="-|>",
        connectionstyle="arc3,rad=0.15",
        mutation_scale=8 + 2.5 * style["linewidth"],
        shrinkA=1,
        shrinkB=1,
        **style,
    )
    return ax.add_patch(arrow)


def draw_ring(ax, places, radii, i, style):
    """Draw the self-transition of state `i` as a ring and return it."""
    from matplotlib.patches import Circle

    radius = 0.7 * radii[i]
    outward = outward_directions(places)[i]
    center = places[i] + (radii[i] + 0.35 * radius) * outward
    return ax.add_patch(Circle(center, radius, fill=False, **style))


def frame_graph(ax, places, margin):
    """Set the limits of axes that hold a graph, and hide their frame."""
    low, high = places.min(axis=0) - margin, places.max(axis=0) + margin
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.set_axis_off()
