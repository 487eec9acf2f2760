"""Conversion of other libraries' covariances into variances or matrices."""

import numpy as np


def _squared(arrays):
    # Standard deviations of the channels, as in dynamax.
    return arrays["scale_diags"] ** 2


def _spherical(arrays):
    # One standard deviation per state.
    return np.broadcast_to(
        arrays["sphere_scales"][..., None] ** 2, arrays["means"].shape
    )


def _tied(arrays):
    # One matrix for all states.
    shape = *arrays["means"].shape, arrays["means"].shape[-1]
    return np.broadcast_to(arrays["cov"][..., None, :, :], shape)


def _low_rank(arrays):
    # Variances of the channels, and factors that all channels share.
    factors, variances = arrays["cov_low_rank_factors"], arrays["cov_diag_factors"]
    return factors @ factors.swapaxes(-1, -2) + variances[..., None] * np.eye(
        variances.shape[-1]
    )


def _inverted(arrays):
    # Precisions of the channels, or matrices of precisions.
    precisions = arrays["precisions"]
    is_diagonal = precisions.ndim == arrays["means"].ndim
    return 1 / precisions if is_diagonal else np.linalg.inv(precisions)


def _multiplied(arrays):
    # Lower triangular roots.
    return arrays["cholesky"] @ arrays["cholesky"].swapaxes(-1, -2)


# Functions that compute covariances from the arrays with these names.
CONVERSIONS = {
    ("scale_diags",): _squared,
    ("sphere_scales",): _spherical,
    ("cov",): _tied,
    ("cov_diag_factors", "cov_low_rank_factors"): _low_rank,
    ("precisions",): _inverted,
    ("cholesky",): _multiplied,
}
FORMS = tuple(name for names in CONVERSIONS for name in names)


def in_our_form(arrays, where):
    """Return arrays with covariances under the name `covars`.

    Parameters
    ----------
    arrays : dict of ndarray
        Arrays by name; those in `FORMS` define covariances and need `means`.

    where : str
        The model as the caller knows it.

    Returns
    -------
    arrays : dict of ndarray
        The same arrays, without the names in `FORMS`.
    """
    given = {*FORMS} & {*arrays}
    if not given:
        return arrays
    convert = CONVERSIONS.get(tuple(name for name in FORMS if name in given))
    if convert is None or "means" not in arrays or "covars" in arrays:
        raise ValueError(
            f"{where} must hold means and covariances in one form, got "
            f"{sorted(arrays)}."
        )
    numbers = {name: np.asarray(arrays[name], float) for name in (*given, "means")}
    try:
        covars = convert(numbers)
    except (ValueError, np.linalg.LinAlgError) as error:
        shapes = {name: array.shape for name, array in numbers.items()}
        raise ValueError(
            f"{where} must hold {sorted(given)} that fit the means, got the shapes "
            f"{shapes} ({error})."
        ) from error
    kept = {name: array for name, array in arrays.items() if name not in given}
    return {**kept, "covars": covars}
