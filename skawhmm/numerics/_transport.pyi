from numpy import ndarray

PRICE: int
DEPTH: int

def make_workspace(n_sources: int, n_sinks: int) -> tuple[ndarray, ndarray]: ...
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
