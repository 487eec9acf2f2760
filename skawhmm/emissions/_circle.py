r"""Squared 2-Wasserstein distances between states that emit angles.

On the circle an optimal plan matches quantiles in their order, as on a line, but any
quantile may be the first: the distance is the least over shifts of one quantile
function against the other. A von Mises distribution is symmetric around its location,
so its quantile function, around the location, is :math:`2 \pi (u - 1/2) + a(u)` with
a periodic odd function a. If locations differ by :math:`\delta`, a shift by
:math:`-t / 2 \pi` costs :math:`(\delta - t)^2 + G(t)`, where

.. math::
    G(t) = \int_0^1 \bigl(a(u) - b(u - t / 2 \pi)\bigr)^2 du

is an even function of both concentrations alone. Hence

.. math::
    W_2^2 = G(0) + \delta^2 r, \qquad
    \delta^2 r = \min_t \, (\delta - t)^2 + G(t) - G(0) .

:math:`G(0)` is a Euclidean distance of quantiles. The factor r, from 0 (one state is
uniform) to 1 (both are points), is a smooth function of three numbers. It is found once
on a grid, by Fourier transforms, and interpolated.
"""

from functools import cache, cached_property

import numpy as np

from skawhmm.emissions._circle_kernels import add_turns, upper_quantiles
from skawhmm.emissions._gaussian_costs_kernels import add_squared_gaps

# Quantiles of the upper half of a distribution.
N_QUANTILES = 24

# Nodes of the grid of factors r on each axis; distances are right to about 1e-3.
N_GRID = 24

# Quantiles by which the grid is filled.
N_LEVELS = 4096

# Stand for a concentration of 0, at which r is 0, and for an infinite one.
NEARLY_UNIFORM, NEARLY_POINT = 1e-4, 1e15


def quantile_nodes():
    """Return levels between 1/2 and 1, minus 1/2, and the root weights of a rule.

    The rule of Gauss and Legendre is moved towards the upper end, where quantiles of a
    wide distribution are steep. Weights count both halves, and sum to one.
    """
    nodes, weights = np.polynomial.legendre.leggauss(N_QUANTILES)
    rest = 0.5 - 0.5 * nodes
    return 0.5 * (1 - rest**4), np.sqrt(2 * weights * rest**3)


LEVELS, ROOT_WEIGHTS = quantile_nodes()


class CircleCosts:
    """Costs between the states of a stack of models.

    Parameters
    ----------
    points : ndarray of shape (n_models, n_components, n_channels * N_QUANTILES)
        Quantiles around the locations, from `circle_points`.

    places : ndarray of shape (n_models, n_components, n_channels, 6)
        Locations and places in the grid, from `circle_places`.
    """

    def __init__(self, points, places):
        self.points = points
        self.places = places

    def __getitem__(self, rows):
        chosen = CircleCosts(self.points[rows], self.places[rows])
        if "_own" in vars(self):
            chosen._own = self._own[rows]
        return chosen

    @classmethod
    def concatenate(cls, parts):
        """Return the costs of the models of all parts."""
        points = np.concatenate([part.points for part in parts])
        return cls(points, np.concatenate([part.places for part in parts]))

    def cross(self, index_a, index_b):
        """Return costs (n_pairs, n_components, n_components) from states of a to b."""
        size = self.points.shape[1]
        cost = np.zeros((len(index_a), size, size))
        masks = np.ones((len(self.points), 1))
        pairs = index_a, index_b
        add_squared_gaps(self.points, masks, *pairs, *pairs, cost)
        add_turns(np.ascontiguousarray(self.places), turn_grid(), *pairs, cost)
        return cost

    def within(self, index_a, index_b):
        """Return the costs inside the models a."""
        return self._own[index_a]

    @cached_property
    def _own(self):
        index = np.arange(len(self.points))
        upper = np.triu(self.cross(index, index), 1)
        return upper + upper.swapaxes(1, 2)


def circle_points(concentrations):
    """Return states as points; all channels of a state are on the last axis.

    Their squared distances are the costs of states at the same location.
    """
    own = upper_quantiles(np.ascontiguousarray(concentrations).ravel(), LEVELS)
    return (own * ROOT_WEIGHTS).reshape(*concentrations.shape[:2], -1)


def circle_places(locations, concentrations):
    """Return locations, widths, and the weights of a width in the grid.

    Weights include one minus the width, which makes the interpolated function smooth
    and not zero where states are nearly uniform.
    """
    widths = (1 + 2 * concentrations) ** (-1 / 3)
    weights = (1 - widths)[..., None] * cubic_weights(widths * (N_GRID - 1))
    return np.concatenate([locations[..., None], widths[..., None], weights], axis=-1)


def cubic_weights(places):
    """Return weights of four nodes of a grid on the integers, on a new last axis."""
    t = places - np.clip(np.floor(places) - 1, 0, N_GRID - 4)
    return np.stack(
        [
            (1 - t) * (2 - t) * (3 - t) / 6,
            t * (2 - t) * (3 - t) / 2,
            t * (t - 1) * (3 - t) / 2,
            t * (t - 1) * (t - 2) / 6,
        ],
        axis=-1,
    )


@cache
def turn_grid():
    r"""Return the factors r over one minus both widths.

    Returns
    -------
    grid : ndarray of shape (N_GRID, N_GRID, N_GRID)
        By the widths of both states and by :math:`1 - (1 - \delta / \pi)^{1/2}`, all of
        them from 0 to 1. Nodes are close where r is steep: for concentrated states at
        opposite sides.
    """
    nodes = np.linspace(0, 1, N_GRID)
    concentrations = np.full(N_GRID, NEARLY_UNIFORM)
    concentrations[0] = NEARLY_POINT
    concentrations[1:-1] = 0.5 * (nodes[1:-1] ** -3 - 1)
    gaps = np.pi * (1 - (1 - nodes) ** 2)
    levels = (np.arange(N_LEVELS // 2) + 0.5) / N_LEVELS
    upper = upper_quantiles(concentrations, levels) - 2 * np.pi * levels
    waves = np.fft.rfft(np.concatenate([-upper[:, ::-1], upper], axis=1))
    inverse = 1 / (1 - (1 + 2 * concentrations) ** (-1 / 3))
    grid = np.empty((N_GRID, N_GRID, N_GRID))
    for i in range(N_GRID):
        products = np.fft.irfft(waves[i].conj() * waves[: i + 1])
        for j, product in enumerate(products[:, : N_LEVELS // 2 + 1] / N_LEVELS):
            rises = 2 * (product[0] - product)
            grid[i, j] = grid[j, i] = _turns(rises, gaps) * inverse[i] * inverse[j]
    return grid


def _turns(rises, gaps):
    """Return the factors r at some gaps, given G(t) - G(0) at whole shifts."""
    step = 2 * np.pi / N_LEVELS
    shifts = step * np.arange(len(rises))
    # The costs of a gap fall up to the shift where their slope turns positive.
    slopes = shifts[:-1] + 0.5 * step + np.diff(rises) / (2 * step)
    best = np.searchsorted(slopes, gaps)
    near = np.clip(best + np.array([[-1], [0], [1]]), 0, len(rises) - 1)
    below, here, above = (gaps - shifts[near]) ** 2 + rises[near]
    curvature = below - 2 * here + above
    inside = (below > here) & (above > here)
    gain = np.where(
        inside, (below - above) ** 2 / (8 * np.maximum(curvature, 1e-300)), 0
    )
    # In the limit of no gap costs are a parabola.
    slope = rises[1] / shifts[1] ** 2
    ratios = (here - gain)[1:] / gaps[1:] ** 2
    return np.concatenate([[slope / (1 + slope)], ratios])


def vonmises_quantiles(location, concentration, levels):
    """Return quantiles of a von Mises distribution."""
    above = np.ascontiguousarray(levels) - 0.5
    found = upper_quantiles(np.array([float(concentration)]), np.abs(above))[0]
    return location + np.copysign(found, above)
