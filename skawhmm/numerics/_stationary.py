"""Stationary distributions of stacks of chains."""

import numpy as np

from skawhmm.numerics._stationary_kernels import stationary_distributions


def stationary_distribution(transmats, startprobs):
    r"""Return the fraction of time that chains spend in each state in the long run.

    It is found by the elimination of Grassmann, Taksar and Heyman, which never
    subtracts and so keeps full relative accuracy for nearly reducible chains. A chain
    with several closed classes has no unique stationary distribution: its start
    probabilities then decide how much weight each class receives (the Cesàro limit of
    :math:`s T^t`).
    """
    return stationary_distributions(
        np.ascontiguousarray(transmats), np.ascontiguousarray(startprobs)
    )
