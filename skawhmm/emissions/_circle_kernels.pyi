from numpy import ndarray

def circle_costs(
    points: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    cost: ndarray,
) -> None: ...
def fill_cells(concentrations: ndarray, cells: ndarray) -> None: ...
def quantiles(concentration: float, levels: ndarray) -> ndarray: ...
