from numpy import ndarray

from skawhmm.emissions._gaussian_scores import Densities, PackedSequences

def make_room(
    densities: Densities, n_timesteps: int
) -> tuple[ndarray, ndarray, ndarray]: ...
def chain_densities(
    frames: ndarray,
    seen: ndarray,
    densities: Densities,
    i: int,
    startprob: ndarray,
    transmat: ndarray,
) -> ndarray: ...
def frame_densities(
    frames: ndarray, seen: ndarray, densities: Densities, i: int, size: int
) -> tuple[ndarray, ndarray]: ...
def score_models(
    frames: ndarray,
    seen: ndarray,
    densities: Densities,
    startprobs: ndarray,
    transmats: ndarray,
    sizes: ndarray,
    models: ndarray,
    out: ndarray,
) -> None: ...
def paired_log_likelihoods(
    packed: PackedSequences,
    densities: Densities,
    startprobs: ndarray,
    transmats: ndarray,
    sizes: ndarray,
    sequence: ndarray,
    model: ndarray,
) -> tuple[ndarray, ndarray]: ...
