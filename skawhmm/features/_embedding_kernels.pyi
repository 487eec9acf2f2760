from numpy import ndarray

from skawhmm.emissions._model import Model
from skawhmm.features._embedding_statistics import GaussianStatistics

def add_statistics(
    frames: ndarray, seen: ndarray, model: Model, stats: GaussianStatistics
) -> None: ...
def weighted_shifts(
    stats: GaussianStatistics, covars: ndarray, relevance: float, whole: bool
) -> ndarray: ...
def weighted_log_scales(
    stats: GaussianStatistics, covars: ndarray, relevance: float
) -> ndarray: ...
def normalize_rows(rows: ndarray, rooted: bool, length: float) -> None: ...
