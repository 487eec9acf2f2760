from numpy import ndarray

def log_likelihood_of(
    logs: ndarray, startprob: ndarray, transmat: ndarray
) -> float: ...
def forward_backward(
    logs: ndarray, startprob: ndarray, transmat: ndarray, post: ndarray, moves: ndarray
) -> float: ...
def forward_backward_each(
    logs: ndarray,
    offsets: ndarray,
    startprob: ndarray,
    transmat: ndarray,
    post: ndarray,
    starts: ndarray,
    moves: ndarray,
) -> float: ...
