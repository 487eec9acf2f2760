from numpy import ndarray

def greedy_medoids(
    columns: ndarray, n_clusters: int, scale: float = ..., most: float = ...
) -> ndarray: ...
def swap_medoids(
    columns: ndarray,
    medoids: ndarray,
    max_iter: int,
    scale: float = ...,
    most: float = ...,
) -> int: ...
