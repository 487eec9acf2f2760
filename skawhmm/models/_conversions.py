"""Conversion of chains and states from the forms of other libraries."""

from itertools import product

import numpy as np

# More marks than this make too many combinations to list each as a symbol.
MOST_MARKS = 8


def check_fitted(model, where, is_fitted):
    """Raise if a model of another library has no parameters yet."""
    if not is_fitted:
        raise TypeError(
            f"{where} must be a fitted model, got a {type(model).__name__} that is not "
            "fitted: call its fit first."
        )


def unknown_states(where, kind, known):
    """Return the error for states of another library that have no family here."""
    return TypeError(
        f"{where} must have states of a known kind, one of {list(known)}, got {kind}. "
        "HMMBatch.from_state_costs compares states of any kind by distances between "
        "them."
    )


def first_known(types, known):
    """Return the name of the first type with a known name, or None."""
    return next((cls.__name__ for cls in types if cls.__name__ in known), None)


def with_every_row(transmat):
    """Return a transition matrix with rows of zeros replaced by equal probabilities.

    Libraries that count transitions leave such a row for a state that holds only last
    frames. Our own fits keep the equal probabilities that they start from.
    """
    is_empty = ~np.any(transmat, axis=1)
    return np.where(is_empty[:, None], 1 / len(transmat), transmat)


def as_matrices(covars):
    """Return diagonal matrices, given variances in the last axis."""
    covars = np.asarray(covars, float)
    return covars[..., None] * np.eye(covars.shape[-1])


def equal_covariances(models):
    """Return models with covariance matrices in all of them if any has matrices.

    Parameters
    ----------
    models : list of dict of ndarray
        Arrays of one model each; those without `covars` are left unchanged.

    Returns
    -------
    models : list of dict of ndarray
        The models.
    """
    axes = [np.ndim(model["covars"]) if "covars" in model else 0 for model in models]
    if 3 not in axes:
        return models
    return [
        {**model, "covars": as_matrices(model["covars"])} if n == 2 else model
        for n, model in zip(axes, models, strict=True)
    ]


def split_mixture(transmat, startprob, fractions):
    """Return the chain in which each component of a mixture is a separate state.

    Parameters
    ----------
    transmat, startprob : ndarray
        The chain of states, of shape (n, n) and (n,).

    fractions : ndarray of shape (n, n_mix)
        Weights of the mixtures. State i with its parts becomes the states from
        ``i * n_mix``, which all move as it does.

    Returns
    -------
    transmat, startprob : ndarray
        The chain of parts, of shape (n * n_mix, n * n_mix) and (n * n_mix,).
    """
    size = fractions.size
    moves = np.repeat(transmat, fractions.shape[1], axis=0)[..., None] * fractions
    return moves.reshape(size, size), (startprob[:, None] * fractions).ravel()


def mark_states(probs, where):
    """Return states with independent binary marks as states that emit symbols.

    There is one symbol per combination of marks. The distance between two symbols is
    the number of marks in which they differ, so states are compared exactly.

    Parameters
    ----------
    probs : ndarray of shape (..., n_components, n_marks)
        Probabilities of the marks.

    where : str
        The model as the caller knows it.

    Returns
    -------
    arrays : dict
        `emissionprobs`, `symbols` and `symbol_costs`. A symbol such as "010" has a
        digit per mark.
    """
    probs = np.asarray(probs, float)
    n_marks = probs.shape[-1]
    if n_marks > MOST_MARKS:
        raise TypeError(
            f"{where} must have at most {MOST_MARKS} marks that are 0 or 1, because "
            f"each combination of them becomes a symbol, got {n_marks}."
        )
    wrong = probs[~((probs >= 0) & (probs <= 1))]
    if wrong.size:
        raise ValueError(
            f"{where} must have probabilities of marks between 0 and 1, got {wrong[0]}."
        )
    bits = np.array([*product((0, 1), repeat=n_marks)])
    each = probs[..., None, :]
    return {
        "emissionprobs": np.where(bits, each, 1 - each).prod(axis=-1),
        "symbols": ["".join(map(str, row)) for row in bits],
        "symbol_costs": np.abs(bits[:, None] - bits).sum(axis=2).astype(float),
    }
