from numpy import ndarray

from skawhmm.emissions._gaussian_scores import Densities

def sample_costs(
    points: ndarray,
    parts: tuple[ndarray, ...],
    a: int,
    b: int,
    mask: ndarray,
    p: float,
    cost: ndarray,
) -> None: ...
def sampled_registrations(
    points: ndarray,
    parts: tuple[ndarray, ...],
    posteriors: ndarray,
    masks: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    p: float,
) -> ndarray: ...
def smoothed_registrations(
    points: ndarray,
    parts: tuple[ndarray, ...],
    posteriors: ndarray,
    masks: ndarray,
    index_a: ndarray,
    index_b: ndarray,
    p: float,
    reg: float,
    n_iterations: int,
) -> ndarray: ...
def entropic_coupling(cost: ndarray, reg: float, n_iterations: int) -> ndarray: ...
def project_registrations(
    plans: ndarray, weights: ndarray, index_a: ndarray, index_b: ndarray
) -> None: ...
def fill_posteriors(
    points: ndarray,
    states: ndarray,
    densities: Densities,
    weights: ndarray,
    sizes: ndarray,
    posteriors: ndarray,
) -> None: ...
