from numpy import ndarray

from skawhmm.emissions._model import Data
from skawhmm.emissions._state_em import StateEM

class GaussianEM(StateEM):
    def __init__(
        self,
        data: Data,
        states: tuple[ndarray, ...],
        prior: tuple[ndarray, ...],
        floor: float,
        is_pooled: bool,
    ) -> None: ...
