"""Checks of the arrays of models: finite numbers, probabilities, covariances."""

import numpy as np

from skawhmm.numerics._lapack import in_batches

# A smaller variance counts as 0: fractions and quotients of it would leave the range.
LEAST_VARIANCE = 1e-290
# Probabilities given in single precision sum to one up to this.
SUM_TOLERANCE = 1e-6
# Probabilities whose sum is closer to one than this are left unchanged.
SUM_ROUNDING = 1e-12
# A covariance may be asymmetric or have negative eigenvalues by this fraction of its
# largest entry.
COVARIANCE_TOLERANCE = 1e-8


def check_finite(name, stack, largest=np.inf):
    """Raise if an array of models holds NaN, infinity or a value that is too large.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    stack : ndarray of shape (n_models, n_components, ...)
        The values.

    largest : float, default=inf
        The largest size of a value.
    """
    sizes = np.abs(stack)
    for wrong, wanted in (
        (~np.isfinite(sizes), "be finite"),
        (sizes > largest, f"be of size at most {largest:g}"),
    ):
        if wrong.any():
            place = np.argwhere(wrong)[0]
            raise ValueError(
                f"{name} must {wanted}, got {stack[tuple(place)]} in model {place[0]}, "
                f"state {place[1]}."
            )


def check_probabilities(name, stack):
    """Return probabilities that sum to one, or raise unless they do up to rounding.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    stack : ndarray of shape (n_models, n_components[, n_components])
        The probabilities.

    Returns
    -------
    stack : ndarray of the same shape
        Probabilities that sum to one along the last axis.
    """
    totals = stack.sum(axis=-1)
    for wrong, wanted, values in (
        (stack.min(axis=-1) < 0, "not be negative", stack.min(axis=-1)),
        (np.abs(totals - 1) > SUM_TOLERANCE, "sum to one", totals),
    ):
        if wrong.any():
            n, *state = np.argwhere(wrong)[0]
            where = f"model {n}" + (f", state {state[0]}" if state else "")
            by_column = np.abs(stack[n].sum(axis=0) - 1).max() <= SUM_TOLERANCE
            hint = " Its columns do: transpose it." * bool(state and by_column)
            raise ValueError(
                f"{name} must {wanted}, got {values[(n, *state)]} in {where}.{hint}"
            )
    off = np.abs(totals - 1) > SUM_ROUNDING
    return np.where(off[..., None], stack / totals[..., None], stack)


def check_covariances(covars):
    """Return symmetric covariances, or raise unless they are positive semidefinite.

    Parameters
    ----------
    covars : ndarray of shape (n_models, n_components, n_features[, n_features])
        The covariances.

    Returns
    -------
    covars : ndarray of the same shape
        The covariances, exactly symmetric, and 0 where variances are below
        `LEAST_VARIANCE`.
    """
    if covars.ndim == 3:
        check_not_negative("covars", covars)
        return np.where(covars < LEAST_VARIANCE, 0.0, covars)
    turned = covars.swapaxes(2, 3)
    slack = COVARIANCE_TOLERANCE * np.abs(covars).max(axis=(2, 3))
    gap = np.abs(covars - turned).max(axis=(2, 3))
    _raise_at(gap > slack, "covars must be symmetric, got entries that differ by", gap)
    covars = (covars + turned) / 2
    least = in_batches(np.linalg.eigvalsh, covars)[..., 0]
    _raise_at(
        least < -slack,
        "covars must be positive semidefinite, got the eigenvalue",
        least,
    )
    tiny = np.einsum("nkcc->nkc", covars) < LEAST_VARIANCE
    return np.where(tiny[..., None] | tiny[..., None, :], 0.0, covars)


def check_not_negative(name, stack):
    """Raise if a parameter of a state is negative."""
    least = stack.min(axis=-1)
    _raise_at(least < 0, f"{name} must not be negative, got", least)


def check_positive(name, stack, is_state):
    """Raise if a parameter of a state is not positive; padding may hold zeros."""
    padding = ~is_state & ~stack.any(axis=-1)
    least = np.where(padding, 1.0, stack.min(axis=-1))
    _raise_at(least <= 0, f"{name} must be positive, got", least)


def _raise_at(wrong, message, values):
    if wrong.any():
        n, state = np.argwhere(wrong)[0]
        raise ValueError(f"{message} {values[n, state]} in model {n}, state {state}.")


def check_observed(sequences, channels, *, is_pooled):
    """Raise if a channel has no value in a sequence to be fitted.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_channels)
        Checked sequences.

    channels : list of int
        What the caller calls the channels.

    is_pooled : bool
        Whether one model is fitted to all of them.
    """
    seen = [~np.isnan(x).all(axis=0) for x in sequences]
    if is_pooled:
        seen = [np.any(seen, axis=0)]
    for i, known in enumerate(seen):
        if not known.all():
            where = "X" if is_pooled else f"X[{i}]"
            raise ValueError(
                f"{where} must have at least 1 observed value in each channel, got "
                f"only NaN in channel {channels[int(np.argmin(known))]}."
            )
