"""Quantities that transport distances compute once per model."""

from typing import Any, NamedTuple

import numpy as np

from skawhmm.models._batch import HMMBatch

# A state counts as visited if its probability is at least this fraction of the
# probability that a step leads to it. The two are equal for stationary distributions,
# and of similar size for a state in which a sequence spends a frame.
VISITED_FRACTION = 1e-3


class PreparedModels(NamedTuple):
    """Quantities that transport distances compute once, with one row per model.

    Transferred chains are compared with `chains`; `bias` is subtracted from the
    marginal component. The neighbour search bounds distances by the transport between
    `margins`, which are state probabilities.
    """

    weights: np.ndarray
    transmats: np.ndarray
    costs: Any
    chains: np.ndarray
    bias: np.ndarray
    margins: np.ndarray
    sampler: Any = None

    def rows(self, index):
        """Return the rows of some of the models."""
        models, seed = self.sampler or (None, None)
        return PreparedModels(
            self.weights[index],
            self.transmats[index],
            self.costs[index],
            self.chains[index],
            self.bias[index],
            self.margins[index],
            None if models is None else (models[index], seed),
        )

    @classmethod
    def concatenate(cls, parts):
        """Return the rows of all parts as one."""
        sampler = None
        if parts[0].sampler is not None:
            models = HMMBatch.concatenate([part.sampler[0] for part in parts])
            sampler = models, parts[0].sampler[1]
        return cls(
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.transmats for part in parts]),
            type(parts[0].costs).concatenate([part.costs for part in parts]),
            np.concatenate([part.chains for part in parts]),
            np.concatenate([part.bias for part in parts]),
            np.concatenate([part.margins for part in parts]),
            sampler,
        )


def visited_chains(weights, transmats):
    r"""Return chains without steps to states that the models do not visit.

    Because of its prior, a model fitted to a short sequence may step to states that the
    sequence never visited. The registration of a state with (almost) no probability is
    empty or arbitrary, so steps to it cannot be transferred. They are left out, and the
    other steps are rescaled to sum to one. To keep the result continuous as a state
    begins to be visited, a step to state l is multiplied by
    :math:`\min(1, \pi_l / (\epsilon \, (\pi T)_l))^2`. The square hides the rounding of
    the smallest probabilities.

    Parameters
    ----------
    weights : ndarray of shape (n_models, n_components)
        State probabilities :math:`\pi`.

    transmats : ndarray of shape (n_models, n_components, n_components)
        Transition matrices :math:`T`.

    Returns
    -------
    chains : ndarray of shape (n_models, n_components, n_components)
        The transition matrices; `transmats` itself if all states are visited. A state
        that only leads to states that are not visited stays.
    """
    # Summed state by state, so that padding does not change the rounding.
    reached = sum(weights[:, [i]] * transmats[:, i] for i in range(transmats.shape[1]))
    rare = np.any(weights < VISITED_FRACTION * reached, axis=1)
    if not rare.any():
        return transmats
    factors = np.ones_like(weights[rare])
    few = weights[rare] < VISITED_FRACTION * reached[rare]
    factors[few] = (weights[rare][few] / (VISITED_FRACTION * reached[rare][few])) ** 2
    kept = transmats[rare] * factors[:, None, :]
    totals = sum(kept[:, :, [k]] for k in range(kept.shape[2]))
    stays = np.eye(kept.shape[1])
    chains = transmats.copy()
    chains[rare] = np.where(totals > 0, kept / np.where(totals > 0, totals, 1), stays)
    return chains


def prepare_models(models):
    """Return what is computed once for all pairs of `models`.

    Parameters
    ----------
    models : HMMBatch
        The models.

    Returns
    -------
    prepared : PreparedModels
        Chains restricted to visited states, without bias or samples.
    """
    # Read-only arrays would need a second compiled version of every kernel.
    weights = np.array(models.weights)
    transmats = visited_chains(weights, np.array(models.transmats))
    return PreparedModels(
        weights,
        transmats,
        models.emission.ground_costs(),
        chains=transmats,
        bias=np.zeros(len(models)),
        margins=weights,
    )
