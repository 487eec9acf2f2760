"""Compare time series by the hidden Markov models behind them."""

from skawhmm._aggregated import IAW, MAW
from skawhmm._coupling import TransitionCoupling
from skawhmm._divergence import KL
from skawhmm._models import HMMBatch
from skawhmm._pairwise import (
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    pairwise_hmm_distances_chunked,
    register_states,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "IAW",
    "KL",
    "MAW",
    "HMMBatch",
    "TransitionCoupling",
    "hmm_distance",
    "pairwise_hmm_components",
    "pairwise_hmm_distances",
    "pairwise_hmm_distances_chunked",
    "register_states",
]
