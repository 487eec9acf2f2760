"""Windows of arrays for kernels that numba compiles."""

import numpy as np
from numba import njit

from skawhmm.utils._compile import KERNEL


@njit(**KERNEL)
def window(array, first, last):
    """Columns of an array, copied so that its rows lie one after the other."""
    part = np.empty((array.shape[0], last - first))
    for c in range(array.shape[0]):
        for t in range(last - first):
            part[c, t] = array[c, first + t]
    return part
