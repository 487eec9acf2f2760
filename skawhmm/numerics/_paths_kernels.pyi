from numpy import ndarray

def best_path(
    logs: ndarray, startprob: ndarray, transmat: ndarray, path: ndarray
) -> float: ...
def random_path(
    startprob: ndarray, transmat: ndarray, uniforms: ndarray, path: ndarray
) -> None: ...
