from numpy import ndarray

def add_squared_gaps(
    points: ndarray,
    masks: ndarray,
    left: ndarray,
    right: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    cost: ndarray,
) -> None: ...
def vector_spreads(
    roots: ndarray,
    masks: ndarray,
    left: ndarray,
    right: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    spread: ndarray,
    traces: ndarray,
) -> None: ...
