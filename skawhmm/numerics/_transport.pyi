from numpy import ndarray

PRICE: int
DEPTH: int

def make_workspace(n_sources: int, n_sinks: int) -> tuple[ndarray, ndarray]: ...
