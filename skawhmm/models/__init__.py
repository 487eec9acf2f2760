"""HMMBatch, inference with it, its files, and exchange with other libraries."""

from skawhmm.models._as_models import as_models
from skawhmm.models._batch import HMMBatch
from skawhmm.models._causal import Forecast, HMMStream

__all__ = [
    "Forecast",
    "HMMBatch",
    "HMMStream",
    "as_models",
]
