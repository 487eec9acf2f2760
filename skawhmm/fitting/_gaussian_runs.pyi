from numpy import ndarray

from skawhmm.emissions._model import Data, Model
from skawhmm.fitting._em import EMRuns, Rule

def advance_runs(
    data: Data,
    model: Model,
    prior: Model,
    runs: EMRuns,
    rule: Rule,
    floor: float,
    is_pooled: bool,
    active: ndarray,
) -> tuple[ndarray, ndarray]: ...
