"""Missing values in columns of objects and among strings."""

import numpy as np

# Marks a missing symbol among strings.
MISSING = ""


def is_missing(value):
    """Whether a value is None, NaN or NA."""
    # Only NaN differs from itself; a comparison with NA is NA.
    return value is None or type(value).__name__ == "NAType" or value != value  # noqa: PLR0124


def string_array(values):
    """Return strings as an array, missing values as `MISSING`."""
    return np.array([MISSING if is_missing(v) else v for v in values], dtype=str)
