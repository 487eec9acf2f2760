from numpy import ndarray

from skawhmm.emissions._model import Model
from skawhmm.features._embedding_statistics import GaussianStatistics

def add_statistics(
    batch: list[tuple[ndarray, ndarray]],
    owners: ndarray,
    model: Model,
    stats: GaussianStatistics,
) -> None: ...
def weighted_shifts(
    stats: GaussianStatistics, covars: ndarray, relevance: float, whole: bool
) -> ndarray: ...
def weighted_log_scales(
    stats: GaussianStatistics, covars: ndarray, relevance: float
) -> ndarray: ...
def fill_normalized(
    rows: ndarray, rooted: bool, length: float, out: ndarray, column: int
) -> None: ...
