from numpy import ndarray
from typing_extensions import disjoint_base

from skawhmm.emissions._gaussian_em import Moments

@disjoint_base
class Room: ...

def fill_expectations(
    frames: ndarray,
    seen: ndarray,
    offsets: ndarray,
    firsts: ndarray,
    chains: tuple[ndarray, ...],
    states: tuple[ndarray, ...],
    active: ndarray,
    expected: tuple[ndarray, ...],
    moments: Moments,
    values: ndarray,
) -> None: ...
def fill_given(
    frames: ndarray,
    seen: ndarray,
    offsets: ndarray,
    firsts: ndarray,
    labels: ndarray,
    states: tuple[ndarray, ...],
    allowed: tuple[ndarray, ...],
    expected: tuple[ndarray, ...],
    moments: Moments,
) -> None: ...
def fill_updates(
    moments: Moments,
    rows: ndarray,
    states: tuple[ndarray, ...],
    prior: tuple[ndarray, ...],
    relevance: float,
    floor: float,
    is_pooled: bool,
    active: ndarray,
) -> ndarray: ...
def is_below(covars: ndarray, floor: float) -> ndarray: ...
def composed(values: ndarray, vectors: ndarray) -> ndarray: ...
def log_priors(
    states: tuple[ndarray, ...], prior: tuple[ndarray, ...], active: ndarray
) -> ndarray: ...
