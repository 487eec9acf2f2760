"""Sequences drawn from hidden Markov models with known differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from skawhmm.datasets._sampling import (
    length_range,
    sampled_sequences,
    seed_sequence,
)
from skawhmm.utils._checks import (
    LARGEST_VALUE,
    check_choice,
    check_integer,
    check_real,
)
from skawhmm.utils._seeds import item_rng

# Root random streams of one call: the models' parameters, and the sequences.
_MODELS, _SEQUENCES = 0, 1


def make_hmm_sequences(
    n_sequences: int = 40,
    *,
    n_classes: int = 2,
    n_components: int = 3,
    n_features: int = 2,
    n_timesteps: int | tuple[int, int] = (50, 100),
    differ_in: str = "means",
    separation: float = 1.0,
    random_state: Any = None,
) -> tuple[list[NDArray[np.float64]], NDArray[Any]]:
    """Draw labelled sequences from hidden Markov models, one model per class.

    The models of all classes are equal except for the parameter named by `differ_in`.

    Parameters
    ----------
    n_sequences : int, default=40
        Number of sequences. Classes alternate from one sequence to the next.

    n_classes : int, default=2
        Number of classes.

    n_components : int, default=3
        Number of hidden states.

    n_features : int, default=2
        Number of channels.

    n_timesteps : int or (int, int), default=(50, 100)
        Length of the sequences, or the smallest and the largest length.

    differ_in : {"means", "covariances", "transitions"}, default="means"
        What differs between the classes: the means of their states, their covariances,
        or the transitions between them. With "transitions" all classes have the same
        states and spend the same fraction of time in each, so that they differ only in
        the order of the frames.

    separation : float, default=1.0
        How far apart the classes are; at 0 they are equal.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draw. The i-th sequence does not depend on `n_sequences`.

    Returns
    -------
    X : list of ndarray of shape (n_timesteps, n_features)
        The sequences.

    y : ndarray of shape (n_sequences,)
        Their classes, from 0 to `n_classes` - 1.

    See Also
    --------
    make_seed_models : The paper's randomly drawn models.
    make_phonemes : Synthetic speech sounds.

    Examples
    --------
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=6, random_state=0)
    >>> [x.shape for x in X[:3]], y
    ([(74, 2), (70, 2), (85, 2)], array([0, 1, 0, 1, 0, 1]))
    """
    n_sequences = check_integer("n_sequences", n_sequences, 1)
    n_classes = check_integer("n_classes", n_classes, 1)
    n_components = check_integer("n_components", n_components, 1)
    n_features = check_integer("n_features", n_features, 1)
    separation = check_real("separation", separation, 0, np.inf)
    check_choice("differ_in", differ_in, sorted(_CLASS_MODELS))
    lengths = length_range(n_timesteps)
    root = seed_sequence(random_state)
    rng = item_rng(root, _MODELS)
    shape = (n_classes, n_components, n_features)
    models = {
        "transmats": np.tile(_cycle(n_components, 0.8, 0.5), (n_classes, 1, 1)),
        "means": np.tile(
            _spread_means(rng, n_components, n_features), (n_classes, 1, 1)
        ),
        "covars": np.ones(shape),
    }
    with np.errstate(over="ignore", invalid="ignore"):
        models |= _CLASS_MODELS[differ_in](rng, models, separation)
    check_range("separation", separation, models)
    y = np.arange(n_sequences) % n_classes
    stream = np.random.SeedSequence(root.entropy, spawn_key=(_SEQUENCES,))
    return sampled_sequences(models, y, lengths, stream), y


def check_range(name, value, models):
    """Raise if a parameter leads to models with values that are too large."""
    if not all(np.all(np.abs(x) <= LARGEST_VALUE) for x in models.values()):
        raise ValueError(
            f"{name} must be smaller, got {value!r}: the models have values beyond "
            f"{LARGEST_VALUE:g}."
        )


def _spread_means(rng, n_components, n_features):
    """Means on a ring in the first two channels, so that no two states coincide."""
    turns = rng.random() + np.arange(n_components) / n_components
    radius = 1 + n_components / 2
    means = rng.normal(size=(n_components, n_features))
    means[:, 0] = radius * np.cos(2 * np.pi * turns)
    if n_features > 1:
        means[:, 1] = radius * np.sin(2 * np.pi * turns)
    return means


def _cycle(n_components, stay, forward):
    """Transitions that stay, step forward or step back; states are equally likely."""
    step = np.roll(np.eye(n_components), 1, axis=1)
    move = forward * step + (1 - forward) * step.T
    return stay * np.eye(n_components) + (1 - stay) * move


def _moved_means(rng, models, separation):
    shift = rng.normal(size=models["means"].shape)
    return {"means": models["means"] + 0.4 * separation * shift}


def _changed_covariances(rng, models, separation):
    n_features = models["means"].shape[-1]
    noise = rng.normal(size=(*models["means"].shape, n_features))
    exponents = (noise + np.swapaxes(noise, -1, -2)) / 2
    return {"covars": expm(0.7 * separation * exponents)}


def _changed_transitions(rng, models, separation):
    n_classes, n_components, _ = models["means"].shape
    if n_components < 2:
        raise ValueError(
            'n_components must be at least 2 with differ_in="transitions", '
            f"got {n_components}."
        )
    # The odds of staying are 4 : 1, as in the other families, times a factor per class.
    ranks = rng.permutation(n_classes) - (n_classes - 1) / 2
    factors = np.exp(1.2 * separation * ranks / max(n_classes - 1, 1))
    stay = 4 * factors / (4 * factors + 1)
    forward = 0.5 + 0.5 * np.tanh(separation * (-1.0) ** np.arange(n_classes))
    pairs = zip(stay, forward, strict=True)
    return {"transmats": np.stack([_cycle(n_components, *pair) for pair in pairs])}


_CLASS_MODELS = {
    "means": _moved_means,
    "covariances": _changed_covariances,
    "transitions": _changed_transitions,
}
