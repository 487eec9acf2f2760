"""Checks of the parameters of states and chains, and their error messages."""

import numpy as np

# Probabilities given in single precision sum to one within this.
SUM_TOLERANCE = 1e-6
# Sums closer to one than this are left as they are; others are divided out.
SUM_ROUNDING = 1e-12
# A covariance may miss symmetry or positivity by this share of its largest entry.
COVARIANCE_TOLERANCE = 1e-8


def check_finite(name, stack):
    """Check that a stack of models has neither NaN nor infinity.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    stack : ndarray of shape (n_models, n_components, ...)
        The values.
    """
    bad = np.argwhere(~np.isfinite(stack))
    if len(bad):
        value, (n, state) = stack[tuple(bad[0])], bad[0][:2]
        raise ValueError(
            f"{name} must be finite, got {value} in model {n}, state {state}."
        )


def check_probabilities(name, stack):
    """Check that the last axis holds probabilities, and divide their rounding out.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    stack : ndarray of shape (n_models, n_components[, n_components])
        The laws.

    Returns
    -------
    stack : ndarray of the same shape
        Laws that sum to one.
    """
    totals = stack.sum(axis=-1)
    for wrong, wanted, values in (
        (stack.min(axis=-1) < 0, "not be negative", stack.min(axis=-1)),
        (np.abs(totals - 1) > SUM_TOLERANCE, "sum to one", totals),
    ):
        if wrong.any():
            n, *state = np.argwhere(wrong)[0]
            where = f"model {n}" + (f", state {state[0]}" if state else "")
            raise ValueError(
                f"{name} must {wanted}, got {values[(n, *state)]} in {where}."
            )
    off = np.abs(totals - 1) > SUM_ROUNDING
    return np.where(off[..., None], stack / totals[..., None], stack)


def check_covariances(covars):
    """Check that covariances are symmetric and positive semidefinite.

    Parameters
    ----------
    covars : ndarray of shape (n_models, n_components, n_features[, n_features])
        The covariances.

    Returns
    -------
    covars : ndarray of the same shape
        Covariances that are symmetric to the last bit.
    """
    if covars.ndim == 3:
        least = covars.min(axis=-1)
        _raise_at(least < 0, "covars must not be negative, got", least)
        return covars
    turned = covars.swapaxes(2, 3)
    slack = COVARIANCE_TOLERANCE * np.abs(covars).max(axis=(2, 3))
    gap = np.abs(covars - turned).max(axis=(2, 3))
    _raise_at(gap > slack, "covars must be symmetric, got entries that differ by", gap)
    covars = (covars + turned) / 2
    least = np.linalg.eigvalsh(covars)[..., 0]
    _raise_at(
        least < -slack,
        "covars must be positive semidefinite, got the eigenvalue",
        least,
    )
    return covars


def check_not_negative(name, stack):
    """Check that the parameters of all states are not negative.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    stack : ndarray of shape (n_models, n_components, n_values)
        The values.
    """
    least = stack.min(axis=-1)
    _raise_at(least < 0, f"{name} must not be negative, got", least)


def _raise_at(wrong, message, values):
    if wrong.any():
        n, state = np.argwhere(wrong)[0]
        raise ValueError(f"{message} {values[n, state]} in model {n}, state {state}.")
