from typing import Any

from numpy import ndarray

POINT_SET_GAP: int
MOST_POINTS: int

def relaxed_bounds(
    vectors_a: ndarray,
    weights_a: ndarray,
    vectors_b: ndarray,
    weights_b: ndarray,
    p: float,
) -> ndarray: ...
def group_survivors(
    vectors: ndarray,
    weights: ndarray,
    groups: Any,
    model: ndarray,
    group: ndarray,
    limits: ndarray,
    p: float,
) -> tuple[ndarray, ndarray, ndarray, int]: ...
def group_bounds(
    vectors: ndarray, weights: ndarray, centres: ndarray, radii: ndarray, p: float
) -> tuple[ndarray, ndarray]: ...
def state_balls(
    vectors: ndarray, weights: ndarray, starts: ndarray, n_steps: int
) -> tuple[ndarray, ndarray, ndarray, ndarray]: ...
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
