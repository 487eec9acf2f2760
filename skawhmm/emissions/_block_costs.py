"""Costs between states with blocks of channels: sums of the costs of the blocks."""

from functools import cached_property

import numpy as np

from skawhmm.emissions._gaussian_costs import GaussianCosts


class BlockCosts:
    """Squared distances between the states of a stack of models.

    Parameters
    ----------
    plain : GaussianCosts or None
        Costs of all blocks whose states are points.

    others : list of (object, float)
        Costs of the other blocks, with `cross`, and their factors.

    n_models : int
        Number of models.
    """

    def __init__(self, plain, others, n_models):
        self.plain = plain
        self.others = others
        self.n_models = n_models

    @classmethod
    def of_parts(cls, parts, scales, n_models):
        """Return the costs of blocks, each divided by its squared scale."""
        points, others = [], []
        for part, scale in zip(parts, scales, strict=True):
            own = part.points()
            if own is not None:
                points.append(own / scale)
            else:
                others.append((part.ground_costs(), 1 / scale**2))
        plain = None
        if points:
            masks = np.ones((n_models, 1))
            plain = GaussianCosts(np.concatenate(points, axis=2), None, masks)
        return cls(plain, others, n_models)

    def __getitem__(self, rows):
        plain = None if self.plain is None else self.plain[rows]
        others = [(costs[rows], factor) for costs, factor in self.others]
        chosen = BlockCosts(plain, others, len(np.arange(self.n_models)[rows]))
        if "_own" in vars(self):
            chosen._own = self._own[rows]
        return chosen

    @classmethod
    def concatenate(cls, parts):
        """Return the costs of the models of all parts, which have the same blocks."""
        plain = None
        if parts[0].plain is not None:
            plain = GaussianCosts.concatenate([part.plain for part in parts])
        others = []
        for n, (costs, factor) in enumerate(parts[0].others):
            joined = type(costs).concatenate([part.others[n][0] for part in parts])
            others.append((joined, factor))
        return cls(plain, others, sum(part.n_models for part in parts))

    def cross(self, index_a, index_b):
        """Return costs (n_pairs, n_components, n_components) from states of a to b."""
        total = 0.0
        if self.plain is not None:
            total = self.plain.cross(index_a, index_b)
        for costs, factor in self.others:
            own = costs.cross(index_a, index_b)
            total = total + (own if factor == 1 else factor * own)
        return total

    def within(self, index_a, index_b):
        """Return the costs inside the models a."""
        return self._own[index_a]

    @cached_property
    def _own(self):
        index = np.arange(self.n_models)
        upper = np.triu(self.cross(index, index), 1)
        return upper + upper.swapaxes(1, 2)
