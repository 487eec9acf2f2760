from numpy import ndarray

from skawhmm.emissions._model import Model
from skawhmm.emissions._state_em import StateEM
from skawhmm.fitting._em import EMRuns, Rule

def advance_runs(
    states: StateEM,
    prior: Model,
    runs: EMRuns,
    rule: Rule,
    n_frames: ndarray,
    active: ndarray,
) -> ndarray: ...
