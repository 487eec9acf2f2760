from numpy import ndarray

def gaussian_divergences(
    means: ndarray,
    roots: ndarray,
    values: ndarray,
    vectors: ndarray,
    index_a: ndarray,
    index_b: ndarray,
) -> ndarray: ...
