"""Aggregated Wasserstein distances: a marginal and a transition component, mixed."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skawhmm.distances._components import (
    carried_chains,
    marginal_components,
    transition_components,
)
from skawhmm.distances._prepared import prepare_models
from skawhmm.distances._registration import optimal_registrations, power_cost
from skawhmm.distances._sampled_registration import (
    independent_draws,
    mixture_posteriors,
    smoothed_registrations,
    stratified_draws,
)
from skawhmm.distances._sampled_registration_kernels import (
    project_registrations,
    sampled_registrations,
)
from skawhmm.emissions._gaussian_costs import covariance_roots
from skawhmm.models._batch import HMMBatch
from skawhmm.utils._checks import check_choice, check_integer, check_real, check_seed


def mixed(components, alpha):
    """Return the distance that the two components make at `alpha`.

    Parameters
    ----------
    components : ndarray of shape (..., 2)
        Marginal and transition component.

    alpha : float
        Share of the transition component.

    Returns
    -------
    distances : ndarray of shape (...)
        The mixture.
    """
    return (1 - alpha) * components[..., 0] + alpha * components[..., 1]


class Aggregated(ABC):
    """What distances made of a marginal and a transition component have in common.

    A subclass says how states are registered.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Share of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance: states are compared by the p-th power of their
        2-Wasserstein distance.
    """

    symmetric = True

    def __init__(self, alpha: float = 0.1, p: float = 1) -> None:
        self.alpha = check_real("alpha", alpha, 0, 1)
        self.p = check_real("p", p, 0, 2, include_low=False)

    def prepare(self, models: HMMBatch) -> Any:
        """Return what the pairs of `models` share.

        Parameters
        ----------
        models : HMMBatch
            The models.

        Returns
        -------
        prepared : PreparedModels
            For the other methods.
        """
        return prepare_models(models)

    def components(
        self, prepared: Any, index_a: NDArray[np.int64], index_b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the two components of each pair.

        Parameters
        ----------
        prepared : PreparedModels
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        components : ndarray of shape (n_pairs, 2)
            Marginal and transition component.
        """
        costs = prepared.costs
        cost = power_cost(costs.cross(index_a, index_b), self.p)
        plans = self._plans(prepared, index_a, index_b, cost)
        within_a = power_cost(costs.within(index_a, index_b), self.p)
        within_b = power_cost(costs.within(index_b, index_a), self.p)
        bias = 0.5 * (prepared.bias[index_a] + prepared.bias[index_b])
        marginal = marginal_components(plans, cost, self.p, bias)
        transition = transition_components(
            prepared.weights,
            prepared.transmats,
            prepared.chains,
            index_a,
            index_b,
            plans,
            within_a,
            within_b,
            self.p,
        )
        return np.stack([marginal, transition], axis=1)

    def distances(
        self, prepared: Any, index_a: NDArray[np.int64], index_b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the distance of each pair.

        Parameters
        ----------
        prepared : PreparedModels
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
            The components mixed at `alpha`.
        """
        return mixed(self.components(prepared, index_a, index_b), self.alpha)

    @property
    def marginal_share(self) -> float:
        """Share of MAW's marginal component that the distance is never below."""
        return 1 - self.alpha

    @property
    def transition_share(self) -> float:
        """Share of MAW's transition component that is on top of it."""
        return 0.0

    @abstractmethod
    def _plans(self, prepared, index_a, index_b, cost):
        """Return the registration of the states of each pair, given their cost."""

    def registrations(
        self, prepared: Any, index_a: NDArray[np.int64], index_b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the registration of the states of each pair.

        Parameters
        ----------
        prepared : PreparedModels
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        plans : ndarray of shape (n_pairs, n_components, n_components)
            Shares of probability that states have in common.
        """
        cost = power_cost(prepared.costs.cross(index_a, index_b), self.p)
        return self._plans(prepared, index_a, index_b, cost)


class MAW(Aggregated):
    """Minimized aggregated Wasserstein distance: states registered by transport.

    The paper's first distance. It is exact and needs no sample: microseconds a pair.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Share of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance: states are compared by the p-th power of their
        2-Wasserstein distance.

    Examples
    --------
    A distance of your own needs three members and works wherever a name does:

    >>> import numpy as np
    >>> from skawhmm import pairwise_hmm_distances
    >>> from skawhmm.datasets import make_seed_models
    >>> from skawhmm import HMMBatch
    >>> class MeanDistance:
    ...     symmetric = True
    ...
    ...     def prepare(self, models):
    ...         return np.einsum("nk,nkd->nd", models.weights, models.means)
    ...
    ...     def distances(self, prepared, index_a, index_b):
    ...         gap = prepared[index_a] - prepared[index_b]
    ...         return np.linalg.norm(gap, axis=1)
    >>> models = HMMBatch(**make_seed_models(n_models=4, random_state=0))
    >>> pairwise_hmm_distances(models, metric=MeanDistance()).shape
    (4, 4)
    """

    @property
    def transition_share(self) -> float:
        """Share of the transition component under the best registration."""
        return self.alpha

    def _plans(self, prepared, index_a, index_b, cost):
        return optimal_registrations(
            prepared.weights, prepared.transmats, index_a, index_b, cost
        )


class IAW(Aggregated):
    """Improved aggregated Wasserstein distance: states registered by samples.

    The paper's second distance. Each model draws one sample, which depends on its
    content and `random_state` alone, so the distance of a pair does not depend on the
    batch it is in.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Share of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance.

    n_samples : int, default=256
        Points drawn from each model.

    sampling : {"sobol", "iid"}, default="sobol"
        Quasi-random points with every state in its exact share, or independent ones.

    coupling : {"exact", "sinkhorn"}, default="exact"
        Cheapest assignment of the points, or the entropic one of POT.

    project : bool, default=True
        Whether to scale the registration to the state probabilities of both models, as
        the paper's theorems require.

    debias : bool, default=False
        Whether to take off what overlapping states add even between equal models: the
        distance of a model to itself is then 0.

    reg : float, default=0.05
        Strength of the entropy as a share of the mean cost, for
        ``coupling="sinkhorn"``.

    random_state : int, RandomState instance or None, default=0
        What the samples are derived from.
    """

    def __init__(
        self,
        alpha: float = 0.1,
        p: float = 1,
        *,
        n_samples: int = 256,
        sampling: str = "sobol",
        coupling: str = "exact",
        project: bool = True,
        debias: bool = False,
        reg: float = 0.05,
        random_state: Any = 0,
    ) -> None:
        super().__init__(alpha, p)
        self.n_samples = check_integer("n_samples", n_samples, 1)
        self.sampling = check_choice("sampling", sampling, ("sobol", "iid"))
        self.coupling = check_choice("coupling", coupling, ("exact", "sinkhorn"))
        self.project = project
        self.debias = debias
        self.reg = check_real("reg", reg, 0, np.inf, include_low=False)
        self.random_state = random_state

    def prepare(self, models: HMMBatch) -> Any:
        """Return what the pairs of `models` share.

        Parameters
        ----------
        models : HMMBatch
            The models.

        Returns
        -------
        prepared : PreparedModels
            For the other methods.
        """
        models.emission.gaussian("IAW needs")
        sampler = models, check_seed(self.random_state)
        prepared = super().prepare(models)._replace(sampler=sampler)
        if not self.debias:
            return prepared
        own = np.arange(len(models))
        cost = power_cost(prepared.costs.within(own, own), self.p)
        plans = self._plans(prepared, own, own, cost)
        return prepared._replace(
            chains=carried_chains(models.transmats, plans),
            bias=marginal_components(plans, cost, 1.0, np.zeros(len(models))),
        )

    @property
    def marginal_share(self) -> float:
        """Share of MAW's marginal component that the distance is never below.

        A registration with the right margins costs at least what the best one does.
        """
        return 1 - self.alpha if self.project and not self.debias else 0.0

    def _plans(self, prepared, index_a, index_b, cost):  # noqa: ARG002
        models, seed = prepared.sampler
        used, place = np.unique(np.stack([index_a, index_b]), return_inverse=True)
        row_a, row_b = place.reshape(2, -1)
        chosen = models[used]
        points, posteriors = self.samples(chosen, seed)
        args = points, posteriors, chosen.emission.masks(), row_a, row_b, self.p
        if self.coupling == "exact":
            plans = sampled_registrations(*args)
        else:
            plans = smoothed_registrations(*args, self.reg)
        if self.project:
            project_registrations(plans, prepared.weights, index_a, index_b)
        return plans

    def samples(
        self, models: HMMBatch, seed: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw the sample of each model.

        Parameters
        ----------
        models : HMMBatch
            The models.

        seed : int
            What to derive the samples from, beside the content of the models.

        Returns
        -------
        points : ndarray of shape (n_models, n_samples, n_features)
            The samples.

        posteriors : ndarray of shape (n_models, n_samples, n_components)
            Probabilities of the states of its own model at each point.
        """
        draw = stratified_draws if self.sampling == "sobol" else independent_draws
        states, normals = draw(
            models.weights, self.n_samples, models.n_features, seed, models.keys
        )
        rows = np.arange(len(models))[:, None]
        if models.covariance_type == "diag":
            normals *= np.sqrt(models.covars)[rows, states]
        else:
            roots = covariance_roots(models.covars)
            for n in range(len(models)):
                gathered = roots[n][states[n]]
                normals[n] = np.einsum("sfk,sk->sf", gathered, normals[n])
        points = models.means[rows, states] + normals
        return points, mixture_posteriors(models, points)
