from numpy import ndarray

def squared_variations(
    states: ndarray, index_a: ndarray, index_b: ndarray
) -> ndarray: ...
def squared_transports(
    states: ndarray,
    symbol_costs: ndarray,
    is_metric: bool,
    index_a: ndarray,
    index_b: ndarray,
) -> ndarray: ...
def state_divergences(
    states: ndarray, index_a: ndarray, index_b: ndarray
) -> ndarray: ...
