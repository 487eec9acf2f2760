"""Compare time series by the hidden Markov models behind them."""

from skawhmm._distances import MAW
from skawhmm._models import HMMBatch
from skawhmm._pairwise import (
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "MAW",
    "HMMBatch",
    "hmm_distance",
    "pairwise_hmm_components",
    "pairwise_hmm_distances",
    "register_states",
]
