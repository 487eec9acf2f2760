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
