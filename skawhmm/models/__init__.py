"""HMMBatch, inference with it, its files, and exchange with hmmlearn."""

from skawhmm.models._batch import HMMBatch
from skawhmm.models._causal import Forecast, HMMStream

__all__ = [
    "Forecast",
    "HMMBatch",
    "HMMStream",
]
