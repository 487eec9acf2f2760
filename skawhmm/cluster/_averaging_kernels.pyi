from numpy import ndarray

def priced_weights(
    weights: ndarray,
    model_weights: ndarray,
    labels: ndarray,
    fractions: ndarray,
    cost: ndarray,
) -> tuple[ndarray, ndarray]: ...
def averaged_chains(
    plans: ndarray,
    transmats: ndarray,
    startprobs: ndarray,
    labels: ndarray,
    fractions: ndarray,
    weights: ndarray,
) -> tuple[ndarray, ndarray]: ...
