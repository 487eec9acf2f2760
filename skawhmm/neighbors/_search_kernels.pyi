from numpy import ndarray

def centroid_bounds(
    centroids_a: ndarray, centroids_b: ndarray, index_a: ndarray, index_b: ndarray
) -> ndarray: ...
def relaxed_bounds(
    vectors_a: ndarray,
    weights_a: ndarray,
    vectors_b: ndarray,
    weights_b: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    p: float,
) -> ndarray: ...
def transition_bounds(
    weights: ndarray,
    transmats: ndarray,
    chains: ndarray,
    vectors: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    plans: ndarray,
    p: float,
    joint: bool,
) -> ndarray: ...
