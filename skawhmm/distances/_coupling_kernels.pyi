from numpy import ndarray

def coupling_distances(
    weights: ndarray,
    transmats: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    cost: ndarray,
    gamma: float,
    p: float,
) -> ndarray: ...
def make_scratch(n_rows: int, n_columns: int, n_dense: int) -> tuple[ndarray, ...]: ...
