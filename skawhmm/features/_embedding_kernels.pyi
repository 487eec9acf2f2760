from numpy import ndarray

from skawhmm.emissions._contract import Model
from skawhmm.features._embedding_blocks import Statistics

def add_statistics(
    frames: ndarray, seen: ndarray, model: Model, stats: Statistics
) -> None: ...
def normalize_rows(rows: ndarray) -> None: ...
def root_rows(rows: ndarray) -> None: ...
