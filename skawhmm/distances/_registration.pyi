from numpy import ndarray

def power_cost(squared: ndarray, p: float) -> ndarray: ...
def optimal_registrations(
    weights: ndarray,
    transmats: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    cost: ndarray,
    break_ties: bool = True,
) -> ndarray: ...
