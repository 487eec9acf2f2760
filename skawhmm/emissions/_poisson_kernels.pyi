from numpy import ndarray

def squared_rate_gaps(
    states: ndarray, index_a: ndarray, index_b: ndarray
) -> ndarray: ...
def rate_divergences(
    states: ndarray, index_a: ndarray, index_b: ndarray
) -> ndarray: ...
