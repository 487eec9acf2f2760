"""Start values of models with Gaussian states: frames are sorted into states."""

from functools import lru_cache

import numpy as np

from skawhmm.emissions._gaussian_em import Moments
from skawhmm.emissions._gaussian_em_kernels import fill_given
from skawhmm.emissions._model import Expected, Model
from skawhmm.fitting._em import (
    Steps,
    allowed_moves,
    best_start,
    model_at,
    stacked,
)
from skawhmm.fitting._starts import (
    content_seeds,
    kmeans_starts,
    segment_starts,
    split_starts,
)

# Number of starts compared before a fit: this many frames in all, within these bounds.
CANDIDATE_FRAMES = 600
CANDIDATES = (2, 6)

# Steps of EM after which starts are compared.
SCREENING_STEPS = 1


@lru_cache(maxsize=256)
def blank_model(n_features, n_states, topology, n_mix, full):
    """Return a stack of one model with equal probabilities, and its allowed moves.

    States have the moments of standard coordinates. The arrays are shared between calls
    and must not be changed.
    """
    start, allowed = allowed_moves(topology, n_states)
    start, allowed = np.repeat(start, n_mix), np.kron(allowed, np.ones((n_mix, n_mix)))
    covar = np.eye(n_features) if full else np.ones(n_features)
    model = Model(
        (start / start.sum())[None],
        (allowed / allowed.sum(axis=1, keepdims=True))[None],
        (
            np.zeros((1, len(start), n_features)),
            np.repeat(covar[None], len(start), axis=0)[None],
        ),
    )
    return model, allowed


def n_starts(n_components, n_frames):
    """Return how many starts to compare: more for short sequences, which cost less."""
    most = np.clip(CANDIDATE_FRAMES // n_frames, *CANDIDATES)
    return np.where(n_components == 1, 1, most)


def start_labels(points, offsets, bounds, n_states, n_candidates, options, run=0):
    """Return the state of each frame in several starts, and the seeds of the models."""
    seeds = content_seeds(points, bounds, options.seed + 1000003 * run)
    labels = np.empty((n_candidates, points.shape[1]), np.intp)
    states = seeds.copy()
    if options.topology == "ergodic":
        kmeans_starts(points, bounds, n_states, states, labels)
    else:
        segment_starts(points, offsets, bounds, n_states, states, labels)
    if options.n_mix > 1:
        split_starts(points, bounds, options.n_mix, states, labels)
    return labels, seeds


def given_start(data, labels, n_features, n_states, options):
    """Return start values from the states of the frames.

    Parameters
    ----------
    data : Data
        The frames.

    labels : ndarray of shape (n_frames,)
        State of every frame.

    n_features, n_states : int
        Number of channels, and of states.

    options : FitOptions
        Topology, covariances.

    Returns
    -------
    model : Model
        A stack of start values, one per model.
    """
    full = options.covariance_type in {"full", "tied"}
    shape = (n_features, n_states, options.topology, options.n_mix, full)
    origin, allowed = blank_model(*shape)
    n_models = len(data.firsts) - 1
    means, covars = (part[0] for part in origin.states)
    start, moves, *moments = (
        np.zeros((n_models, *part.shape))
        for part in (origin.startprob[0], origin.transmat[0], means, means, covars)
    )
    fill_given(
        data.frames,
        data.seen,
        data.offsets,
        data.firsts,
        labels,
        origin.states,
        (origin.startprob[0], allowed),
        (start, moves),
        Moments(*moments),
    )
    every, steps = np.arange(n_models), starting_steps(data, options)
    model = stacked([model_at(origin, 0)] * n_models)
    expected = Expected(start, moves, start, Moments(*moments))
    steps.maximization(expected, every, model, every)
    return model


def starting_steps(data, options):
    """Return the EM steps that make and compare starts, without a prior."""
    return Steps(options.template, data, options.rule._replace(relevance=0.0))


def start_models(points, data, n_states, options, *, n_candidates=None, run=0):
    """Return start values of models, and the seeds they were drawn with.

    Parameters
    ----------
    points : ndarray of shape (n_features, n_frames)
        Standardized frames, between which k-means takes distances.

    data : Data
        The frames in the coordinates of the fit.

    n_states : int
        Number of states.

    options : FitOptions
        Topology, covariances, seed.

    n_candidates : int, default=None
        Number of starts to compare; by default it follows from the model with the
        fewest frames.

    run : int, default=0
        Number of the restart.

    Returns
    -------
    model : Model
        A stack of start values, one per model.

    seeds : ndarray of shape (n_models,)
        Seeds of the draws.
    """
    bounds = data.bounds
    if n_candidates is None:
        n_frames = int(np.diff(bounds).min())
        n_candidates = int(n_starts(n_states * options.n_mix, n_frames))
    labels, seeds = start_labels(
        points, data.offsets, bounds, n_states, n_candidates, options, run
    )
    starts = [given_start(data, row, len(points), n_states, options) for row in labels]
    steps = starting_steps(data, options)
    model = best_start(steps, starts, n_steps=SCREENING_STEPS, tol=-np.inf)
    return model, seeds
