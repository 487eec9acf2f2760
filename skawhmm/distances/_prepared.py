"""What distances by transport need of a batch, computed once per model."""

from typing import Any, NamedTuple

import numpy as np

from skawhmm.models._batch import HMMBatch


class PreparedModels(NamedTuple):
    """What distances by transport need of a batch, with one row per model."""

    weights: np.ndarray
    transmats: np.ndarray
    costs: Any
    chains: np.ndarray
    bias: np.ndarray
    sampler: Any = None

    def rows(self, index):
        """Return what belongs to some of the models."""
        models, seed = self.sampler or (None, None)
        return PreparedModels(
            self.weights[index],
            self.transmats[index],
            self.costs[index],
            self.chains[index],
            self.bias[index],
            None if models is None else (models[index], seed),
        )

    @classmethod
    def concatenate(cls, parts):
        """Return what belongs to the models of all parts."""
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
            sampler,
        )


def prepare_models(models):
    """Return what the pairs of `models` share.

    Parameters
    ----------
    models : HMMBatch
        The models.

    Returns
    -------
    prepared : PreparedModels
        Chains that are compared as they are, without bias or samples.
    """
    # Read-only arrays are another type to the compiler, which would compile all twice.
    weights, transmats = np.array(models.weights), np.array(models.transmats)
    return PreparedModels(
        weights,
        transmats,
        models.emission.ground_costs(),
        chains=transmats,
        bias=np.zeros(len(models)),
    )
