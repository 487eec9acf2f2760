from typing import Any

from numpy import ndarray

def marginal_components(
    plans: ndarray, cost: ndarray, p: float, bias: ndarray
) -> ndarray: ...
def transition_components(
    weights: ndarray,
    transmats: ndarray,
    chains: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    plans: ndarray,
    within_a: ndarray,
    within_b: ndarray,
    p: float,
    joint: bool,
    hellinger: bool,
) -> ndarray: ...
def carried_chains(transmats: ndarray, plans: ndarray, joint: bool) -> ndarray: ...
def make_rows(size: int) -> tuple[Any, ...]: ...
