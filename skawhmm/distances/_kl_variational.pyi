from numpy import ndarray

def variational_rates(
    weights: ndarray,
    transmats: ndarray,
    divergences: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    lengths: ndarray,
) -> ndarray: ...
