"""Delay embedding: neighbouring frames as extra channels."""

from functools import partial
from typing import Any, ClassVar

import numpy as np

from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._preprocessing import SequenceTransformer
from skawhmm.utils._checks import check_integer


class Delays(SequenceTransformer):
    r"""Append the `n` frames before and after each frame as extra channels.

    With full covariances, states can then differ in how a signal evolves, such as in
    its frequency: ``Delays -> Framewise(PCA(...)) -> HMMTransformer(covariance_type=
    "full")`` is the time-delay embedded HMM of neuroscience. At the ends of a sequence
    the first or the last frame is repeated.

    Parameters
    ----------
    n : int, default=1
        Number of frames appended from before and from after each frame. The number of
        channels grows by a factor of 2 n + 1.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of a frame; number of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences that have names.

    See Also
    --------
    Deltas : Append time derivatives.
    Framewise : Apply any transformer to the frames, such as PCA.

    References
    ----------
    D. Vidaurre, L. T. Hunt, A. J. Quinn, B. A. E. Hunt, M. J. Brookes, A. C. Nobre and
    M. W. Woolrich (2018). "Spontaneous cortical activity transiently organises into
    frequency specific phase-coupling networks." Nature Communications 9, 2987.

    Examples
    --------
    >>> from skawhmm.sequences import Delays
    >>> Delays(1).fit_transform([[[1.0], [2.0], [4.0]]])
    [array([[1., 1., 2.],
           [1., 2., 4.],
           [2., 4., 4.]])]
    """

    _parameter_checks: ClassVar = {"n": partial(check_integer, low=1)}
    _read_later: ClassVar = frozenset({"n"})

    def __init__(self, n: int = 1) -> None:
        self.n = n

    def _steps(self) -> range:
        # Negating an unsigned NumPy integer gives a large number.
        n = int(self.n)
        return range(-n, n + 1)

    def _names(self, channels: Any) -> list[str]:
        return [
            f"{channel}_{step:+d}" for step in self._steps() for channel in channels
        ]

    def _transform(self, X: Any) -> CheckedSequences:
        steps = np.array(self._steps())
        changed = []
        for x in X:
            places = np.clip(np.arange(len(x))[:, None] + steps, 0, len(x) - 1)
            changed.append(x[places].reshape(len(x), -1))
        return CheckedSequences(changed)
