"""Distances between models, for one pair or for all pairs of two batches."""

from skawhmm.distances._base import (
    AggregatedDistance,
    Distance,
    LearnedDistance,
    RegisteringDistance,
)
from skawhmm.distances._coupling import TransitionCoupling
from skawhmm.distances._iaw import IAW
from skawhmm.distances._jaw import JAW
from skawhmm.distances._kl import KL
from skawhmm.distances._maw import MAW
from skawhmm.distances._mmd import MMD
from skawhmm.distances._pairwise import (
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    pairwise_hmm_distances_chunked,
    register_states,
)

__all__ = [
    "IAW",
    "JAW",
    "KL",
    "MAW",
    "MMD",
    "AggregatedDistance",
    "Distance",
    "LearnedDistance",
    "RegisteringDistance",
    "TransitionCoupling",
    "hmm_distance",
    "pairwise_hmm_components",
    "pairwise_hmm_distances",
    "pairwise_hmm_distances_chunked",
    "register_states",
]
