"""Squared 2-Wasserstein distances between states that emit angles.

On the circle an optimal plan matches quantiles in their order, as on a line, but any
quantile may be the first. The distance is the least over shifts of one quantile
function against the other.
"""

from functools import cached_property

import numpy as np

from skawhmm.emissions._circle_kernels import circle_costs, fill_cells, quantiles

# Cells of equal probability in which quantiles are summarised by mean and deviation.
N_CELLS = 128


class CircleCosts:
    """Costs between the states of a stack of models.

    Parameters
    ----------
    points : ndarray of shape (n_models, n_components, n_channels, 1 + 2 * n_cells)
        States, from `circle_points`.
    """

    def __init__(self, points):
        self.points = points

    def __getitem__(self, rows):
        chosen = CircleCosts(self.points[rows])
        if "_own" in vars(self):
            chosen._own = self._own[rows]
        return chosen

    @classmethod
    def concatenate(cls, parts):
        """Return the costs of the models of all parts."""
        return cls(np.concatenate([part.points for part in parts]))

    def cross(self, index_a, index_b):
        """Return costs (n_pairs, n_components, n_components) from states of a to b."""
        size = self.points.shape[1]
        cost = np.zeros((len(index_a), size, size))
        circle_costs(self.points, index_a, index_b, cost)
        return cost

    def within(self, index_a, index_b):
        """Return the costs inside the models a."""
        return self._own[index_a]

    @cached_property
    def _own(self):
        index = np.arange(len(self.points))
        upper = np.triu(self.cross(index, index), 1)
        return upper + upper.swapaxes(1, 2)


def circle_points(locations, concentrations):
    """Return states as `CircleCosts` takes them.

    Parameters
    ----------
    locations, concentrations : ndarray of shape (n_models, n_components, n_channels)
        Parameters of von Mises distributions.

    Returns
    -------
    points : ndarray of shape (n_models, n_components, n_channels, 1 + 2 * n_cells)
        The location, and means and deviations of quantiles around it.
    """
    cells = np.empty((concentrations.size, 2 * N_CELLS))
    fill_cells(np.ascontiguousarray(concentrations).ravel(), cells)
    cells = cells.reshape(*locations.shape, -1)
    return np.concatenate([locations[..., None], cells], axis=3)


def vonmises_quantiles(location, concentration, levels):
    """Return quantiles of a von Mises distribution."""
    return location + quantiles(concentration, np.ascontiguousarray(levels))
