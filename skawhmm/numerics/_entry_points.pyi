from numpy import ndarray

def solve_transport(
    supply: ndarray,
    demand: ndarray,
    cost: ndarray,
    plan: ndarray,
    numbers: ndarray,
    nodes: ndarray,
) -> float: ...
def reprice(cost: ndarray, numbers: ndarray, nodes: ndarray) -> None: ...
def improve_plan(
    cost: ndarray, plan: ndarray, numbers: ndarray, nodes: ndarray
) -> None: ...
def ranked_cells(cost: ndarray, numbers: ndarray, nodes: ndarray) -> ndarray: ...
def solve_ranked(
    supply: ndarray,
    demand: ndarray,
    cost: ndarray,
    places: ndarray,
    plan: ndarray,
    numbers: ndarray,
    nodes: ndarray,
) -> None: ...
def keep_plan(
    plan: ndarray, numbers: ndarray, nodes: ndarray
) -> tuple[ndarray, ndarray]: ...
def resume_plan(
    cells: ndarray,
    masses: ndarray,
    cost: ndarray,
    plan: ndarray,
    numbers: ndarray,
    nodes: ndarray,
) -> bool: ...
def max_entropy_plan(marks: ndarray, plan: ndarray) -> ndarray: ...
def solve_assignment(cost: ndarray, columns: ndarray) -> None: ...
def fill_exp(gaps: ndarray, out: ndarray) -> None: ...
