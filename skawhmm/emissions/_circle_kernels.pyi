from numpy import ndarray

def add_turns(
    places: ndarray,
    grid: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    cost: ndarray,
) -> None: ...
def upper_quantiles(concentrations: ndarray, levels: ndarray) -> ndarray: ...
