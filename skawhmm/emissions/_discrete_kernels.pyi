from numpy import ndarray

def fill_log_densities(frames: ndarray, states: ndarray, out: ndarray) -> None: ...
def fill_statistics(
    frames: ndarray, post: ndarray, sums: ndarray, sizes: ndarray
) -> None: ...
def fill_expectations(
    frames: ndarray,
    offsets: ndarray,
    firsts: ndarray,
    chains: tuple[ndarray, ndarray],
    states: ndarray,
    active: ndarray,
    expected: tuple[ndarray, ndarray, ndarray],
    statistics: tuple[ndarray, ...],
    values: ndarray,
) -> None: ...
def fill_likelihoods(
    frames: ndarray,
    states: ndarray,
    startprobs: ndarray,
    transmats: ndarray,
    sizes: ndarray,
    models: ndarray,
    out: ndarray,
) -> None: ...
def normalized(counts: ndarray, fallback: ndarray) -> ndarray: ...
def shared_log(prior: ndarray, states: ndarray) -> float: ...
