"""Checks of common parameters of functions and estimators."""

from difflib import get_close_matches
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from skawhmm.utils._numbers import row_blocks

# Largest size of a frame, a mean, a rate or a cost. Squares of it, summed over states,
# channels and frames and multiplied by each other once, stay in the range of float64.
LARGEST_VALUE = 1e100
# Largest count: arrays have no more entries.
LARGEST_INTEGER = 2**63 - 1
# Longest text of an invalid value in an error message.
SHOWN_LENGTH = 200
# Largest finite distance accepted from users; its square is in the range.
LARGEST_DISTANCE = 1e150


def check_real(
    name, value, low, high, *, include_low=True, include_high=True, allow_infinity=False
):
    """Return `value` as a float if it lies between `low` and `high`, else raise.

    Infinite bounds are excluded unless `allow_infinity` is set.
    """
    left = "[" if include_low else "("
    right = "]" if (np.isfinite(high) and include_high) or allow_infinity else ")"
    wanted = f"a number in {left}{low}, {high}{right}"
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be {wanted}, got {shown_value(value)}.")
    try:
        number = float(value)
    except OverflowError:
        # An integer or a fraction beyond the range of floats.
        number = np.nan
    is_end = number == low and not include_low
    is_end |= number == high and not include_high
    is_end |= np.isinf(number) and not allow_infinity
    if not (low <= number <= high) or is_end:
        raise ValueError(f"{name} must be {wanted}, got {shown_value(value)}.")
    return number


def shown_value(value):
    """Return an invalid value as short text for an error message."""
    try:
        text = repr(value)
    except ValueError:
        text = f"<{type(value).__name__} too long to be written>"
    return text if len(text) <= SHOWN_LENGTH else f"{text[: SHOWN_LENGTH - 3]}..."


def check_integer(name, value, low):
    """Return `value` if it is an integer of at least `low`, else raise."""
    wanted = f"{name} must be an integer of at least {low}"
    if not is_integer(value):
        raise TypeError(f"{wanted}, got {shown_value(value)}.")
    if value < low:
        raise ValueError(f"{wanted}, got {shown_value(value)}.")
    if value > LARGEST_INTEGER:
        raise ValueError(f"{wanted} and below 2**63, got {shown_value(value)}.")
    return int(value)


def is_integer(value):
    """Whether a value is a Python or NumPy integer; booleans do not count."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def check_choice(name, value, choices):
    """Return `value` if it is one of `choices`, strings or None, else raise."""
    is_choice = (value is None or isinstance(value, str)) and value in choices
    if not is_choice:
        listed = ", ".join(repr(choice) for choice in choices)
        text = value.lower() if isinstance(value, str) else ""
        near = get_close_matches(text, [*map(str, choices)], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{name} must be one of {listed}, got {shown_value(value)}.{hint}"
        )
    return value


def check_optional(name, value, check):
    """Return None for None, otherwise the result of a check."""
    return None if value is None else check(name, value)


def check_boolean(name, value):
    """Return `value` if it is True or False, else raise."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown_value(value)}.")
    return bool(value)


def check_numbers(name, values, check):
    """Return one number, or several, as a list of results of `check`, else raise."""
    numbers = np.atleast_1d(np.asarray(values, dtype=object)).ravel().tolist()
    if not numbers:
        raise ValueError(f"{name} must hold at least 1 number, got none.")
    return [check(name, number) for number in numbers]


def check_counts(name, values):
    """Return a count, or several, as a list of integers of at least 1, else raise."""
    return check_numbers(name, values, partial(check_integer, low=1))


def check_n_jobs(name, value):
    """Return `value` if joblib accepts it as a number of jobs, else raise."""
    if value is None:
        return None
    wanted = f"{name} must be an integer other than 0, or None"
    if not is_integer(value):
        raise TypeError(f"{wanted}, got {shown_value(value)}.")
    if value == 0 or abs(int(value)) > LARGEST_INTEGER:
        raise ValueError(f"{wanted}, got {shown_value(value)}.")
    return int(value)


def check_verbose(name, value):
    """Raise unless `value` is a valid setting for showing progress."""
    if not isinstance(value, bool | np.bool_):
        check_integer(name, value, 0)


def check_random(name, value):
    """Raise unless `value` is an integer, a RandomState, a Generator or None."""
    wanted = (
        f"{name} must be an integer from 0 to 2**32 - 1, a RandomState, a Generator "
        "or None"
    )
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{wanted}, got {shown_value(value)}.")
    if isinstance(value, np.random.Generator):
        return
    try:
        check_random_state(value)
    except ValueError as error:
        raise ValueError(f"{wanted}, got {shown_value(value)}.") from error


def check_seed(random_state):
    """Return an integer seed: the given one, or one drawn from the random state."""
    check_random("random_state", random_state)
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_float_type(name, value, choices=()):
    """Return a floating-point dtype, one of `choices` if there are any, else raise."""
    wanted = " or ".join(f"numpy.{choice}" for choice in choices)
    wanted = wanted or "a type of floating-point numbers"
    message = f"{name} must be {wanted}, got {value!r}."
    # NumPy reads None as float64.
    if value is None:
        raise TypeError(message)
    try:
        dtype = np.dtype(value)
    except (TypeError, ValueError) as error:
        raise TypeError(message) from error
    allowed = [np.dtype(choice) for choice in choices] or [dtype]
    if dtype.kind != "f" or dtype not in allowed:
        raise ValueError(message)
    return dtype


def check_one_each(X, y, name="y"):
    """Raise unless there is one value per sequence or model."""
    if y is not None and len(X) != len(y):
        raise ValueError(
            f"{name} must hold one value per entry of X, got {len(y)} values for "
            f"{len(X)} entries."
        )


def check_parameters(values, checks):
    """Raise if a parameter fails its check.

    All parameters of estimators and functions are checked this way: `checks` has one
    function per name, which takes the name and the value and raises if it is invalid.
    """
    for name, value in values.items():
        if name in checks:
            checks[name](name, value)


# Checks of parameters that control how the work is done.
WORK_CHECKS = {"n_jobs": check_n_jobs, "verbose": check_verbose}


def check_distances(name, distances, largest=np.inf):
    """Raise if a distance is NaN, or finite and larger than `largest`."""
    for rows in row_blocks(distances):
        block, first = distances[rows], (rows.start, 0)
        check_not_nan(name, block, first)
        bad = (np.abs(block) > largest) & np.isfinite(block)
        if bad.any():
            place = np.argwhere(bad)[0]
            row, column = (int(k) for k in place[:2] + first)
            raise ValueError(
                f"{name} must hold distances of size at most {largest:g}, or infinite "
                f"ones, got {block[tuple(place)]:g} in row {row}, column {column}."
            )


def check_not_nan(name, block, first):
    """Raise if a block of a matrix that begins at `first` holds NaN."""
    bad = np.isnan(block)
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0][:2] + first)
        raise ValueError(
            f"{name} must give one number per pair, got NaN in row {row}, column "
            f"{column}. (Infinite distances are allowed.)"
        )
