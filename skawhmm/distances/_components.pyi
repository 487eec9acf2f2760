from numpy import ndarray

def marginal_components(
    plans: ndarray, cost: ndarray, p: float, bias: ndarray
) -> ndarray: ...
def transition_components(
    weights: ndarray,
    transmats: ndarray,
    chains: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    plans: ndarray,
    within_a: ndarray,
    within_b: ndarray,
    p: float,
) -> ndarray: ...
def carried_chains(transmats: ndarray, plans: ndarray) -> ndarray: ...
def conditional_plans(plan: ndarray, forth: ndarray, back: ndarray) -> None: ...
def carried_chain(
    forth: ndarray, transmat: ndarray, back: ndarray, half: ndarray, moved: ndarray
) -> None: ...
