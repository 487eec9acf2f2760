"""IAW: the aggregated distance that registers states by samples."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skawhmm.distances._aggregated import Aggregated
from skawhmm.distances._components import carried_chains, marginal_components
from skawhmm.distances._registration import power_cost
from skawhmm.distances._sampled_registration import (
    independent_draws,
    metric_parts,
    mixture_posteriors,
    ordered_samples,
    quantile_samples,
    stratified_draws,
)
from skawhmm.distances._sampled_registration_kernels import (
    project_registrations,
    sampled_registrations,
    smoothed_registrations,
)
from skawhmm.emissions._gaussian_costs import covariance_roots
from skawhmm.models._batch import HMMBatch
from skawhmm.utils._checks import (
    check_boolean,
    check_choice,
    check_integer,
    check_seed,
)

# Weight of the entropy in a Sinkhorn coupling, as a fraction of the mean cost.
ENTROPY = 0.05

# Iterations of a Sinkhorn coupling, as in the paper.
SINKHORN_ITERATIONS = 300


class IAW(Aggregated):
    """Improved aggregated Wasserstein distance: states registered by samples.

    This is the second distance of the paper. One sample is drawn per model. It depends
    on the content of the model and on `random_state` only, so the distance of a pair
    does not depend on the batch it is in.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.1
        Weight of the transition component in the distance.

    p : float in (0, 2], default=1
        Order of the distance: states and points are compared by the p-th power of their
        distance.

    steps : {"independent", "joint"}, default="independent"
        Whether the two ends of a step are registered independently, as in the paper,
        or together, as in :class:`JAW`.

    rows : {"transport", "hellinger"}, default="transport"
        Whether the rows of two transition matrices are compared by optimal transport
        of the next states, as in the paper, or by the squared Hellinger distance,
        which sees rare transitions and has no unit.

    n_samples : int, default=256
        Points drawn from each model.

    sampling : {"sobol", "iid"}, default="sobol"
        Whether the points are quasi-random, with exact proportions of the states, or
        independent.

    coupling : {"exact", "sinkhorn"}, default="exact"
        Whether two samples are coupled by the cheapest assignment of their points, or
        by the entropic coupling (Sinkhorn's iterations).

    debias : bool, default=False
        Whether to subtract the bias that overlapping states cause even between equal
        models. The distance of a model to itself is then 0.

    random_state : int, RandomState instance, Generator or None, default=0
        Seed of the samples.

    Notes
    -----
    The seed of a sample is derived from the model, including the order of its states.
    Reordering the states changes the sample, so distances change by the sampling error,
    which decreases with `n_samples`. The change is most visible with `debias` and
    models that are nearly equal.

    Examples
    --------
    Overlapping states exchange probability, so even the distance of a model to itself
    is above 0, unless it is debiased:

    >>> from skawhmm import IAW, HMMBatch, hmm_distance
    >>> model = HMMBatch([[[0.5, 0.5], [0.5, 0.5]]], [[[0.0], [2.0]]], [[[1.0], [1.0]]])
    >>> round(hmm_distance(model, model, IAW()), 1)
    0.4
    >>> hmm_distance(model, model, IAW(debias=True))
    0.0
    """

    _parameter_checks: ClassVar = {
        **Aggregated._parameter_checks,
        "n_samples": partial(check_integer, low=1),
        "sampling": partial(check_choice, choices=("sobol", "iid")),
        "coupling": partial(check_choice, choices=("exact", "sinkhorn")),
        "debias": check_boolean,
    }

    def __init__(
        self,
        alpha: float = 0.1,
        p: float = 1,
        *,
        steps: str = "independent",
        rows: str = "transport",
        n_samples: int = 256,
        sampling: str = "sobol",
        coupling: str = "exact",
        debias: bool = False,
        random_state: Any = 0,
    ) -> None:
        super().__init__(alpha, p, steps=steps, rows=rows)
        self.n_samples = n_samples
        self.sampling = sampling
        self.coupling = coupling
        self.debias = debias
        self.random_state = random_state
        self._check_parameters()

    def prepare(self, models: HMMBatch) -> Any:
        """Return what is computed once for all pairs of `models`.

        Parameters
        ----------
        models : HMMBatch
            The models.

        Returns
        -------
        prepared : PreparedModels
            For the other methods.
        """
        sampler = models, check_seed(self.random_state)
        prepared = super().prepare(models)._replace(sampler=sampler)
        if not self.debias:
            return prepared
        own = np.arange(len(models))
        cost = power_cost(prepared.costs.within(own, own), self.p)
        plans = self._plans(prepared, own, own, cost)
        return prepared._replace(
            chains=carried_chains(prepared.transmats, plans, self.steps == "joint"),
            bias=marginal_components(plans, cost, 1.0, np.zeros(len(models))),
        )

    @property
    def marginal_weight(self) -> float:
        """Weight of MAW's marginal component in the lower bound.

        A registration with the right margins costs at least the optimal cost.
        """
        return 0.0 if self.debias else 1 - self.alpha

    def _plans(self, prepared, index_a, index_b, cost):  # noqa: ARG002
        models, seed = prepared.sampler
        used, place = np.unique(np.stack([index_a, index_b]), return_inverse=True)
        row_a, row_b = place.reshape(2, -1)
        chosen = models[used]
        frames, posteriors = self.samples(chosen, seed)
        points, parts = metric_parts(chosen.emission, frames)
        masks = np.ones((len(chosen), points.shape[2]))
        if chosen.observed is not None:
            masks = chosen.emission.masks()
        pairs = masks, row_a, row_b, self.p
        if self.coupling == "exact":
            points, parts, posteriors = ordered_samples(points, parts, posteriors)
            plans = sampled_registrations(points, parts, posteriors, *pairs)
        else:
            plans = smoothed_registrations(
                points, parts, posteriors, *pairs, ENTROPY, SINKHORN_ITERATIONS
            )
        # The theorems of the paper need the state probabilities of both models.
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
            Seed of the samples, together with the content of the models.

        Returns
        -------
        points : ndarray of shape (n_models, n_samples, n_features)
            The samples.

        posteriors : ndarray of shape (n_models, n_samples, n_components)
            Posterior state probabilities of each point under its own model.
        """
        draw = stratified_draws if self.sampling == "sobol" else independent_draws
        states, normals = draw(
            models.weights, self.n_samples, models.n_features, seed, models.keys
        )
        if models.emission.name != "gaussian":
            return quantile_samples(models, states, normals)
        rows = np.arange(len(models))[:, None]
        if models.covariance_type == "diag":
            normals *= np.sqrt(models.covars)[rows, states]
        else:
            roots = covariance_roots(models.covars)
            for n in range(len(models)):
                gathered = roots[n][states[n]]
                normals[n] = np.einsum("sfk,sk->sf", gathered, normals[n])
        points = models.means[rows, states] + normals
        return points, mixture_posteriors(models, points, states)
