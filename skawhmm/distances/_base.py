"""Protocols of distances between models: required and optional members."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from skawhmm.models._batch import HMMBatch


@runtime_checkable
class Distance(Protocol):
    """A distance between models: any object with these three members.

    Pass it as `metric` wherever the name of a distance is accepted. Its attributes are
    its parameters; they also identify matrices on disk. To search over its parameters
    with ``metric__name``, derive it from :class:`sklearn.base.BaseEstimator`.

    Optional members enable further functions: see :class:`AggregatedDistance`,
    :class:`RegisteringDistance` and :class:`LearnedDistance`. An attribute `max_tile`
    limits the number of rows and columns of a block of pairs, which is 128 by default;
    a distance that needs much memory or time per pair has a lower limit.

    Attributes
    ----------
    symmetric : bool
        Whether d(a, b) equals d(b, a). If so, each pair is computed once, ordered by
        the content of its models, and only half of a matrix is computed. It may be an
        attribute or a property.

    Examples
    --------
    The distance between the overall means of two models:

    >>> import numpy as np
    >>> from skawhmm import HMMBatch, pairwise_hmm_distances
    >>> class MeanDistance:
    ...     symmetric = True
    ...
    ...     def prepare(self, models):
    ...         return np.einsum("nk,nkd->nd", models.weights, models.means)
    ...
    ...     def distances(self, prepared, index_a, index_b):
    ...         gap = prepared[index_a] - prepared[index_b]
    ...         return np.linalg.norm(gap, axis=1)
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]],
    ...     means=[[[0.0], [2.0]], [[3.0], [1.0]]],
    ...     covars=[[[1.0], [1.0]], [[1.0], [1.0]]],
    ... )
    >>> pairwise_hmm_distances(models, metric=MeanDistance())
    array([[0., 1.],
           [1., 0.]])
    """

    @property
    def symmetric(self) -> bool:
        """Whether the order of the two models does not matter."""

    def prepare(self, models: HMMBatch, /) -> Any:
        """Return what the other methods need, computed once per model.

        Parameters
        ----------
        models : HMMBatch
            All models that are compared.

        Returns
        -------
        prepared : object
            Anything; the other methods receive it.
        """

    def distances(
        self,
        prepared: Any,
        index_a: NDArray[np.int64],
        index_b: NDArray[np.int64],
        /,
    ) -> NDArray[np.float64]:
        """Return the distance of each pair of models.

        Parameters
        ----------
        prepared : object
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair, as indices into the models of `prepare`.

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
            One number per pair, which must not depend on the other pairs. It may be
            infinite but not NaN.
        """


@runtime_checkable
class AggregatedDistance(Distance, Protocol):
    """A distance that mixes a marginal and a transition component.

    Its value must be ``(1 - alpha) * marginal + alpha * transition``, so that the
    components can be computed once and mixed at any `alpha`.
    :func:`pairwise_hmm_components` needs such a distance.

    Attributes
    ----------
    symmetric : bool
        Whether the order of the two models does not matter.

    alpha : float in [0, 1]
        Weight of the transition component.

    Examples
    --------
    >>> from skawhmm import JAW, KL, MAW
    >>> from skawhmm.distances import AggregatedDistance
    >>> metrics = [MAW(), JAW(), KL()]
    >>> [type(d).__name__ for d in metrics if isinstance(d, AggregatedDistance)]
    ['MAW', 'JAW']
    """

    @property
    def alpha(self) -> float:
        """Weight of the transition component."""

    def components(
        self,
        prepared: Any,
        index_a: NDArray[np.int64],
        index_b: NDArray[np.int64],
        /,
    ) -> NDArray[np.float64]:
        """Return the two components of each pair of models.

        Parameters
        ----------
        prepared : object
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        components : ndarray of shape (n_pairs, 2)
            Marginal and transition component.
        """


@runtime_checkable
class RegisteringDistance(Distance, Protocol):
    """A distance that registers the states of two models.

    :func:`register_states` needs such a distance. The explorer and
    :func:`distance_interval` show its registrations.

    Attributes
    ----------
    symmetric : bool
        Whether the order of the two models does not matter.

    Examples
    --------
    >>> from skawhmm import JAW, KL, MAW
    >>> from skawhmm.distances import RegisteringDistance
    >>> metrics = [MAW(), JAW(), KL()]
    >>> [type(d).__name__ for d in metrics if isinstance(d, RegisteringDistance)]
    ['MAW', 'JAW']
    """

    def registrations(
        self,
        prepared: Any,
        index_a: NDArray[np.int64],
        index_b: NDArray[np.int64],
        /,
    ) -> NDArray[np.float64]:
        """Return the registration of the states of each pair of models.

        Parameters
        ----------
        prepared : object
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        plans : ndarray of shape (n_pairs, n_components, n_components)
            Joint probability of each state of a and each state of b.
        """


@runtime_checkable
class LearnedDistance(Distance, Protocol):
    """A distance with parameters that it learns from reference models, such as a scale.

    Attributes
    ----------
    symmetric : bool
        Whether the order of the two models does not matter.

    Examples
    --------
    >>> from skawhmm import KL, MAW
    >>> from skawhmm.distances import MMD, LearnedDistance
    >>> metrics = [MAW(), KL(), MMD()]
    >>> [type(d).__name__ for d in metrics if isinstance(d, LearnedDistance)]
    ['MMD']
    """

    def fitted_to(self, models: HMMBatch, /) -> Distance:
        """Return a copy of the distance with its parameters learned from `models`.

        Parameters
        ----------
        models : HMMBatch
            The reference models: the training models of an estimator, or the second
            batch of a function.

        Returns
        -------
        metric : Distance
            The distance to use. The value of a pair must not depend on other models.
        """


@runtime_checkable
class BoundedDistance(Distance, Protocol):
    """A distance with a lower bound, which lets an exact search skip models.

    Let R and D be the marginal and the transition component of `MAW` of order `p`, both
    under its optimal registration, D with the `steps` and `rows` of the distance, by
    default those of `MAW`. The distance of two models with Gaussian states must be at
    least ``marginal_weight * R + transition_weight * D``.

    The search is used if `p` is at least 1, `marginal_weight` is positive and all
    features are observed. It needs `symmetric` to be true, and `prepare` to return
    `PreparedModels`, as `prepare_models` does. R is taken between its `margins`, which
    are the state probabilities unless the distance sets others. `transition_weight`
    must be 0 if the distance registers states in another way or sets `margins`.
    """

    @property
    def p(self) -> float:
        """Order of the distance."""

    @property
    def marginal_weight(self) -> float:
        """Weight of the marginal component in the bound."""

    @property
    def transition_weight(self) -> float:
        """Weight of the transition component in the bound."""
