from numpy import ndarray

def coupling_value(
    chain_a: ndarray, chain_b: ndarray, cost: ndarray, gamma: float
) -> tuple[ndarray, ndarray]: ...
def policy_value(
    policy: ndarray, cost: ndarray, gamma: float, dense: bool
) -> tuple[ndarray, int]: ...
