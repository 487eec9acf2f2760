from numpy import ndarray
from typing_extensions import disjoint_base

from skawhmm.emissions._model import Data
from skawhmm.emissions._state_em import StateEM

@disjoint_base
class GaussianEM(StateEM):
    def __init__(
        self,
        data: Data,
        states: tuple[ndarray, ...],
        prior: tuple[ndarray, ...],
        floor: float,
        is_pooled: bool,
    ) -> None: ...
