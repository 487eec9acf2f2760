from numpy import ndarray

def matched_sums(
    masses: ndarray, labels: ndarray, values: ndarray, n_rows: int
) -> tuple[ndarray, ndarray]: ...
