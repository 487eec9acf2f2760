"""Reference models: hidden Markov models of a sample of the training frames."""

from dataclasses import dataclass

import numpy as np

from skawhmm.emissions._base import Data, Model
from skawhmm.fitting._coordinates import Coordinates, pooled_coordinates
from skawhmm.fitting._em_fit import start_model
from skawhmm.fitting._em_loop import FitOptions, Steps, climb, model_at, stacked
from skawhmm.fitting._gaussian_starts import start_models
from skawhmm.fitting._pooled import BlockSteps, joined, pool_blocks
from skawhmm.fitting._starts import distinct_count
from skawhmm.utils._parallel import writable

# Longer sequences are sampled in pieces of this many frames.
PIECE = 100
# Transitions from each state that are added to the expected ones, in equal shares:
# every move stays possible, so that no sequence has likelihood 0 for a new one.
PSEUDO_COUNT = 1.0


@dataclass(frozen=True)
class Reference:
    """A reference in its coordinates, and how the fit went."""

    model: Model
    weights: np.ndarray
    log_likelihood: float
    n_iter: int


@dataclass(frozen=True)
class ReferenceOptions:
    """How references are fitted; the names are those of `HMMEmbedding`."""

    is_chain: bool
    max_iter: int
    tol: float
    reg_covar: float
    seed: int


def sampled_pieces(sequences, n_frames, rng):
    """Return at most `n_frames` frames, in pieces drawn without repetition.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features)
        Training sequences.

    n_frames : int
        Largest number of frames.

    rng : RandomState
        Source of the draws; not used if all frames are taken.

    Returns
    -------
    pieces : list of ndarray
        Views of the sequences, in their order.
    """
    if sum(len(x) for x in sequences) <= n_frames:
        return sequences
    places = [(i, t) for i, x in enumerate(sequences) for t in range(0, len(x), PIECE)]
    chosen, missing = [], n_frames
    for index in rng.permutation(len(places)):
        i, first = places[index]
        piece = sequences[i][first : first + min(PIECE, missing)]
        chosen.append((index, piece))
        missing -= len(piece)
        if missing == 0:
            break
    return [piece for _, piece in sorted(chosen, key=lambda pair: pair[0])]


def fit_references(pieces, sizes, options, *, n_jobs=None, verbose=False):
    """Fit one diagonal model of each size to all pieces.

    Parameters
    ----------
    pieces : list of ndarray of shape (n_timesteps, n_features)
        Training sequences, NaN where not observed.

    sizes : list of int
        Numbers of states.

    options : ReferenceOptions
        How the references are fitted.

    n_jobs : int, default=None
        Number of joblib workers for the E steps.

    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    references : list of Reference
        One per size, in their order. A reference has fewer states if there are fewer
        distinct frames.

    coordinates : Coordinates
        Coordinates of all references.
    """
    coordinates = pooled_coordinates(np.concatenate(pieces).T.copy(), "diag")
    if not coordinates.active.any():
        return [still_reference()] * len(sizes), coordinates
    blocks = pool_blocks(pieces, coordinates)
    fit_options = FitOptions(
        max_iter=options.max_iter,
        tol=options.tol,
        reg_covar=options.reg_covar,
        seed=options.seed,
    )
    pool = joined(blocks, coordinates)
    starts = [reference_start(pool, size, fit_options) for size in sizes]
    del pool
    steps = ReferenceSteps(
        fit_options.learner,
        blocks,
        fit_options.rule,
        pseudo_count=PSEUDO_COUNT,
        n_jobs=n_jobs,
        verbose=verbose,
        is_chain=options.is_chain,
    )
    climbs = [climb(steps, start) for start in starts]
    references = [
        Reference(
            model_at(found.model, 0),
            found.counts[0] / steps.n_frames[0],
            float(found.log_likelihood[0]),
            int(found.n_iter[0]),
        )
        for found in climbs
    ]
    return references, coordinates


def still_reference():
    """Return a reference without channels, for frames that are all equal."""
    nothing = np.zeros((1, 0))
    model = Model(np.ones(1), np.ones((1, 1)), (nothing, nothing))
    return Reference(model, np.ones(1), 0.0, 0)


def reference_start(pool, n_components, options):
    """Return start values by k-means, a stack of one model."""
    points = pool.points
    if len(points) == 0:
        nothing = np.zeros((1, 1, 0))
        return Model(np.ones((1, 1)), np.ones((1, 1, 1)), (nothing, nothing))
    n_states = distinct_count(points, 0, points.shape[1], n_components)
    return start_models(points, pool.data, n_states, options, n_candidates=1)[0]


class ReferenceMixin:
    """EM steps of a reference, which is a chain or a mixture.

    Parameters
    ----------
    *args, **kwargs : object
        As for the steps of which it is a mixin.

    is_chain : bool, default=True
        Whether the reference is a chain. Otherwise it is a mixture: all rows of its
        transition matrix are equal.
    """

    def __init__(self, *args, is_chain=True, **kwargs):
        super().__init__(*args, **kwargs)
        self.is_chain = is_chain

    def maximization(self, expected, rows, model, active):
        """Change the parameters of the model, in place, by an M step."""
        super().maximization(expected, rows, model, active)  # type: ignore[misc]
        if not self.is_chain:
            counts = expected.counts + PSEUDO_COUNT
            weights = counts / counts.sum(axis=1, keepdims=True)
            model.startprob[:] = weights
            model.transmat[:] = weights[:, None]


class ReferenceSteps(ReferenceMixin, BlockSteps):
    """EM steps of a reference with Gaussian states."""


class DiscreteReferenceSteps(ReferenceMixin, Steps):
    """EM steps of a reference whose states emit symbols or counts."""


def fit_discrete_references(pieces, sizes, family, options):
    """Fit one model of each size to all pieces, from random start values.

    The prior of a state is the common law of all frames, with the weight of one frame.

    Parameters
    ----------
    pieces : list of ndarray
        Frames of training sequences, in the form that the family's EM reads.

    sizes : list of int
        Numbers of states.

    family : Discrete
        The family, with one blank state.

    options : ReferenceOptions
        How the references are fitted.

    Returns
    -------
    references : list of Reference
        One per size; one state is enough if all frames are equal.
    """
    offsets = np.cumsum([0, *(len(piece) for piece in pieces)])
    data = Data(np.concatenate(pieces), None, offsets, np.array([0, len(pieces)]))
    fit_options = FitOptions(
        max_iter=options.max_iter,
        tol=options.tol,
        relevance=PSEUDO_COUNT,
        seed=options.seed,
        family=family,
    )
    references = []
    for n, size in enumerate(sizes):
        n_states = size if family.varied(data.frames) else 1
        start = start_model(
            data,
            n_states,
            fit_options,
            np.random.default_rng([options.seed, n]),
            first=True,
        )
        prior = common_model(family, data.frames, n_states)
        steps = DiscreteReferenceSteps(
            family, data, fit_options.rule, prior, is_chain=options.is_chain
        )
        found = climb(steps, start)
        references.append(
            Reference(
                model_at(found.model, 0),
                found.counts[0] / found.counts[0].sum(),
                float(found.log_likelihood[0]),
                int(found.n_iter[0]),
            )
        )
    return references


def common_model(family, frames, n_states):
    """Return a stack of one model whose states are all alike and equally probable."""
    equal = np.full(n_states, 1 / n_states)
    states = tuple(
        np.repeat(part, n_states, axis=0) for part in family.common_states(frames)
    )
    return stacked([Model(equal, np.tile(equal, (n_states, 1)), states)])


def raw_model(reference: Reference, coordinates: Coordinates):
    """Return the model of a reference over all channels, in raw units."""
    states = coordinates.raw_states(reference.model.states)
    return reference.model._replace(states=states)


def writable_model(model):
    """Return a model whose arrays are writable, for the kernels."""
    startprob, transmat, *states = writable((*model[:2], *model.states))
    return Model(startprob, transmat, tuple(states))
