from numpy import ndarray
from typing_extensions import disjoint_base

from skawhmm.emissions._model import Data
from skawhmm.emissions._state_em import StateEM

def fill_log_densities(frames: ndarray, states: ndarray, out: ndarray) -> None: ...
def fill_statistics(
    frames: ndarray, post: ndarray, sums: ndarray, sizes: ndarray
) -> None: ...
def fill_expectations(
    frames: ndarray,
    offsets: ndarray,
    firsts: ndarray,
    chains: tuple[ndarray, ndarray],
    states: ndarray,
    active: ndarray,
    expected: tuple[ndarray, ndarray, ndarray],
    statistics: tuple[ndarray, ...],
    values: ndarray,
) -> None: ...
def fill_likelihoods(
    frames: ndarray,
    states: ndarray,
    startprobs: ndarray,
    transmats: ndarray,
    sizes: ndarray,
    models: ndarray,
    out: ndarray,
) -> None: ...
def normalized(counts: ndarray, fallback: ndarray) -> ndarray: ...
def mean_rates(sums: ndarray, sizes: ndarray, fallback: ndarray) -> ndarray: ...
def log_prior_of(prior: ndarray, states: ndarray, are_rates: bool) -> float: ...

@disjoint_base
class DiscreteEM(StateEM):
    def __init__(self, data: Data, states: ndarray, prior: ndarray) -> None: ...
