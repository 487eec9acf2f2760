from numpy import ndarray

def update_chains(
    expected: tuple[ndarray, ...],
    rows: ndarray,
    chains: tuple[ndarray, ...],
    priors: tuple[ndarray, ...],
    n_mix: int,
    relevance: float,
    active: ndarray,
) -> None: ...
