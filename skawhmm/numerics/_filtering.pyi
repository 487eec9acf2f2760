from numpy import ndarray

def filter_frames(
    logs: ndarray,
    ranks: ndarray,
    transmat: ndarray,
    ahead: ndarray,
    proba: ndarray,
    surprise: ndarray,
) -> None: ...
