from typing import Any

from numpy import ndarray

LANES: int

def in_tiles(vectors: ndarray) -> ndarray: ...
def from_tiles(tiles: ndarray, n_models: int) -> ndarray: ...
def relaxed_bounds(
    vectors: ndarray, weights: ndarray, tiles: ndarray, probs: ndarray, p: float
) -> ndarray: ...
def costs_to_centres(
    vectors: ndarray, weights: ndarray, centres: ndarray, used: ndarray, p: float
) -> ndarray: ...
def state_balls(
    vectors: ndarray, weights: ndarray, starts: ndarray, n_steps: int, p: float
) -> tuple[ndarray, ndarray, ndarray]: ...
def group_survivors(
    queries: Any,
    groups: Any,
    model: ndarray,
    group: ndarray,
    to_centres: ndarray,
    limits: ndarray,
    marginal_limits: ndarray,
    p: float,
    marginal_weight: float,
    transition_weight: float,
    joint: bool,
) -> tuple[ndarray, ndarray, ndarray, ndarray, tuple[int, int]]: ...
def transition_bounds(
    weights: ndarray,
    transmats: ndarray,
    chains: ndarray,
    vectors: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    plans: ndarray,
    p: float,
    joint: bool,
) -> ndarray: ...
