from numpy import ndarray

def fill_count_densities(
    frames: ndarray, means: ndarray, shapes: ndarray, table: ndarray, logs: ndarray
) -> None: ...
def count_sums(
    frames: ndarray, post: ndarray, shapes: ndarray, edges: ndarray
) -> ndarray: ...
def count_shapes(
    sums: ndarray,
    means: ndarray,
    before: ndarray,
    edges: ndarray,
    low: float,
    high: float,
) -> ndarray: ...
