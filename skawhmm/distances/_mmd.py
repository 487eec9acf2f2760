"""Maximum mean discrepancy between the frame distributions of two models."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skawhmm.models._batch import HMMBatch
from skawhmm.utils._checks import check_choice, check_integer, check_real
from skawhmm.utils._parameters import Parametrized, check_unused


def check_bandwidth(name, value):
    """Return the width of a kernel: a number above 0, or "median"."""
    if isinstance(value, str):
        return check_choice(name, value, ("median",))
    # A kernel of infinite width sees no difference, so the width must be finite.
    return check_real(name, value, 0, np.finfo(float).max, include_low=False)


def check_order(name, value):
    """Return a number of successive frames, 1 or 2."""
    if check_integer(name, value, 1) > 2:
        raise ValueError(f"{name} must be 1 or 2, got {value!r}.")
    return int(value)


class MMD(Parametrized):
    r"""Maximum mean discrepancy of two successive frames, without a registration.

    A model defines a distribution of pairs of successive frames. Two models are
    compared by these distributions only, so the distance does not depend on how a
    mixture is split into states. It is a Euclidean distance in a space of functions: it
    obeys the triangle inequality, and kernels built from it are positive semidefinite.

    Parameters
    ----------
    order : {1, 2}, default=2
        Number of successive frames. With 1, the order of frames is ignored.

    bandwidth : float or "median", default="median"
        Width :math:`h` of the kernel :math:`e^{-\lVert x - y \rVert^2 / 2 h^2}` between
        frames. "median" derives it from the reference models (see Notes). Symbols need
        no kernel and accept only "median".

    Notes
    -----
    *Gaussian states.* The distance is the maximum mean discrepancy under the kernel,
    in closed form for diagonal and full covariances. The kernel between two pairs of
    frames is the product of the kernels between the first and the second frames.

    *"median".* Twice the squared bandwidth is the median of the expected squared
    distance between the frames of two states, over all pairs of states of the
    reference models (of evenly chosen ones, if they have more than 1500 states). The
    reference models are the training models of an estimator, `Y` of
    :func:`pairwise_hmm_distances`, or `X` if there is no `Y`, and both models of
    :func:`hmm_distance`. The distance of a pair thus depends on the reference models
    but not on the rest of the batch; with a number it depends on the pair only.

    *Symbols* are compared by the Hellinger distance, which is at most 1, between the
    distributions of pairs of symbols; costs between symbols are not used. *Counts*
    :math:`x` are compared after :math:`2 \sqrt x`, which makes a Poisson distribution
    close to a Gaussian of variance 1. States with a user-defined cost have no
    distribution.

    *Missing channels.* Two models with different observed channels are compared on the
    channels they have in common; squared distances between frames are multiplied by the
    number of all channels divided by the number of common ones. Kernel matrices need
    not be positive semidefinite then.

    References
    ----------
    A. Gretton, K. M. Borgwardt, M. J. Rasch, B. Schölkopf and A. Smola (2012). "A
    kernel two-sample test." Journal of Machine Learning Research 13, 723-773.

    Examples
    --------
    Two chains with the same states, of which the second changes state more often. A
    single frame does not distinguish them; two frames do:

    >>> from skawhmm import HMMBatch, hmm_distance
    >>> from skawhmm.distances import MMD
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]],
    ...     means=[[[0.0], [5.0]], [[0.0], [5.0]]],
    ...     covars=[[[1.0], [1.0]], [[1.0], [1.0]]],
    ... )
    >>> hmm_distance(models[0], models[1], MMD(order=1))
    0.0
    >>> round(hmm_distance(models[0], models[1], MMD()), 2)
    0.26
    """

    symmetric = True
    _parameter_checks: ClassVar = {"order": check_order, "bandwidth": check_bandwidth}

    # Distributions of pairs of symbols are computed per tile, and may be large.
    max_tile = 64

    def __init__(self, *, order: int = 2, bandwidth: float | str = "median") -> None:
        self.order = order
        self.bandwidth = bandwidth
        self._check_parameters()

    def fitted_to(self, models: HMMBatch) -> "MMD":
        """Return the distance with the bandwidth derived from reference models.

        Parameters
        ----------
        models : HMMBatch
            The reference models.

        Returns
        -------
        metric : MMD
            Its `bandwidth` is a number, unless states emit symbols.
        """
        if not isinstance(self.bandwidth, str) or not models.emission.has_kernel:
            return self
        # The order of the models does not matter.
        models = models[np.argsort(models.keys)]
        median = models.emission.median_gap(models.weights)
        # Without any spread, any bandwidth will do.
        bandwidth = np.sqrt(0.5 * median) if median > 0 else 1.0
        return type(self)(order=self.order, bandwidth=float(bandwidth))

    def prepare(self, models: HMMBatch) -> Any:
        """Return what is computed once for all pairs of `models`.

        Parameters
        ----------
        models : HMMBatch
            The models; they are the reference models if the bandwidth is "median".

        Returns
        -------
        prepared : callable
            For the other method.
        """
        self._check_parameters()
        if not models.emission.has_kernel:
            reason = "for states without a kernel between frames, such as symbols"
            check_unused("bandwidth", self.bandwidth, "median", reason)
        bandwidth = self.fitted_to(models).bandwidth
        masses = np.array(models.weights)
        if self.order == 2:
            masses = masses[:, :, None] * models.transmats
        sizes = np.asarray(models.n_components, np.intp)
        return models.emission.mmd_comparer(masses, sizes, bandwidth)

    def distances(
        self, prepared: Any, index_a: NDArray[np.int64], index_b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the distance of each pair.

        Parameters
        ----------
        prepared : callable
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
            The distances.
        """
        return np.sqrt(prepared(index_a, index_b))
