"""Kullback-Leibler divergence rates."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skawhmm.distances._kl_variational import variational_rates
from skawhmm.distances._parameters import Parametrized
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_kept_sequences
from skawhmm.models._inference import chains, sample_sequences
from skawhmm.utils._checks import (
    check_boolean,
    check_choice,
    check_integer,
    check_real,
    check_seed,
)
from skawhmm.utils._parameters import Unused


def divergence_rates(own, other, lengths):
    """Rates at which the first model is likelier than the second on its own sequence.

    Parameters
    ----------
    own, other : tuple of ndarray of shape (n_pairs,)
        Scores and ranks from `paired_log_likelihoods`.

    lengths : ndarray of shape (n_pairs,)
        Lengths of the sequences.

    Returns
    -------
    rates : ndarray of shape (n_pairs,)
        Differences of log likelihood per frame; infinite, never NaN, if one of the
        models cannot emit the sequence.
    """
    apart = (own[0] == -np.inf) | (other[0] == -np.inf) | (other[1] != own[1])
    gaps = np.where(apart, 0.0, own[0]) - np.where(apart, 0.0, other[0])
    return np.where(apart, np.inf, gaps / lengths)


def models_on(models, mask):
    """Return models of some of their features only.

    Parameters
    ----------
    models : HMMBatch
        The models.

    mask : ndarray of bool of shape (n_features,)
        The features to keep.

    Returns
    -------
    models : HMMBatch
        The marginal models, which observed all features that are left.
    """
    covars = models.covars[:, :, mask]
    if models.covariance_type == "full":
        covars = covars[..., mask]
    sequences = models.sequences
    if sequences is not None:
        sequences = [sequence[:, mask] for sequence in sequences]
    return HMMBatch(
        models.transmats,
        models.means[:, :, mask],
        covars,
        weights=models.weights,
        startprobs=models.startprobs,
        sequences=sequences,
    )


class KL(Parametrized):
    """Kullback-Leibler divergence rate, the baseline of the paper.

    Parameters
    ----------
    method : {"monte_carlo", "variational", "data"}, default="monte_carlo"
        How the rate is computed: from a sequence drawn from each model; by the upper
        bound of Hershey, Olsen and Rennie, which needs no random numbers; or from the
        sequence that each model was fitted to, which the models must carry
        (``HMMTransformer(keep_sequences=True)``).

    n_steps : int, default=2000
        Length of a drawn sequence; the longer, the more exact and the slower. Only for
        ``method="monte_carlo"``.

    symmetric : bool, default=True
        Whether to take the mean of both directions.

    cap : float, default=None
        Upper limit of the distance. Without it two models are infinitely far apart if
        one rules out what the other produces; kernels and maps need finite values.

    random_state : int, RandomState instance or None, default=0
        Seed of the drawn sequences. Only for ``method="monte_carlo"``.

    Notes
    -----
    Models that observed different features are compared on the features that both
    observed; the rate is multiplied by the number of all features over the number of
    common ones.

    Examples
    --------
    The rate of two Gaussians in closed form, and from 2000 random frames:

    >>> from skawhmm import KL, HMMBatch, hmm_distance
    >>> models = HMMBatch(
    ...     transmats=[[[1.0]], [[1.0]]],
    ...     means=[[[0.0]], [[2.0]]],
    ...     covars=[[[1.0]], [[1.0]]],
    ... )
    >>> round(hmm_distance(models[0], models[1], KL(method="variational")), 2)
    2.0
    >>> round(hmm_distance(models[0], models[1], KL()), 1)
    2.0
    """

    _unused: ClassVar = (
        Unused(("n_steps", "random_state"), "method", lambda m: m != "monte_carlo"),
    )

    # Sequences are drawn anew for each tile, so that they need not all be kept.
    max_tile = 64

    def __init__(
        self,
        *,
        method: str = "monte_carlo",
        n_steps: int = 2000,
        symmetric: bool = True,
        cap: float | None = None,
        random_state: Any = 0,
    ) -> None:
        methods = ("monte_carlo", "variational", "data")
        self.method = check_choice("method", method, methods)
        self.n_steps = check_integer("n_steps", n_steps, 1)
        self.symmetric = check_boolean("symmetric", symmetric)
        self.cap = (
            None
            if cap is None
            else check_real("cap", cap, 0, np.inf, allow_infinity=True)
        )
        self.random_state = random_state
        self._check_effects()

    def prepare(self, models: HMMBatch) -> Any:
        """Return what the pairs of `models` share.

        Parameters
        ----------
        models : HMMBatch
            The models.

        Returns
        -------
        prepared : object
            For the other method.
        """
        if self.method == "data":
            check_kept_sequences(models)
        seed = check_seed(self.random_state)
        masked = models.observed is not None
        return models, None if masked else self._shared(models), seed

    def distances(
        self, prepared: Any, index_a: NDArray[np.int64], index_b: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the divergence of each pair.

        Parameters
        ----------
        prepared : object
            From `prepare`.

        index_a, index_b : ndarray of int of shape (n_pairs,)
            The models of each pair.

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
            Divergences of a from b, or the means of both directions.
        """
        models, shared, seed = prepared
        if shared is None:
            rates = self._masked_rates(models, seed, index_a, index_b)
        else:
            rates = self._rates(prepared, index_a, index_b)
        return rates if self.cap is None else np.minimum(rates, self.cap)

    def _shared(self, models):
        """Return what scores sequences, or the divergences between states."""
        if self.method == "variational":
            return models.emission.divergences
        _, transmats, sizes = chains(models, None)
        return models.emission.pair_scorer(np.array(models.weights), transmats, sizes)

    def _masked_rates(self, models, seed, index_a, index_b):
        """Rates on the features that both models of a pair observed."""
        masks = models.emission.masks() > 0
        common, group = np.unique(
            masks[index_a] & masks[index_b], axis=0, return_inverse=True
        )
        rates = np.empty(index_a.size)
        for n, mask in enumerate(common):
            pairs = np.flatnonzero(group == n)
            used, place = np.unique(
                np.stack([index_a[pairs], index_b[pairs]]), return_inverse=True
            )
            part = models_on(models[used], mask)
            prepared = part, self._shared(part), seed
            scale = mask.size / np.count_nonzero(mask)
            rates[pairs] = scale * self._rates(prepared, *place.reshape(2, -1))
        return rates

    def _rates(self, prepared, index_a, index_b):
        rates = self._directed_rates(prepared, index_a, index_b)
        if not self.symmetric:
            return rates
        return 0.5 * (rates + self._directed_rates(prepared, index_b, index_a))

    def _directed_rates(self, prepared, index_a, index_b):
        models, shared, seed = prepared
        if self.method == "variational":
            divergences = shared(index_a, index_b)
            chain = models.weights, models.transmats
            return variational_rates(*chain, divergences, index_a, index_b)
        used, row = np.unique(index_a, return_inverse=True)
        sequences = self._sequences(models[used], seed)
        lengths = np.array([len(sequence) for sequence in sequences])
        order = np.arange(used.size)
        own, other = shared(sequences, [(order, used), (row, index_b)])
        own = own[0][row], own[1][row]
        return divergence_rates(own, other, lengths[row])

    def _sequences(self, models, seed):
        if self.method == "data":
            return models.sequences
        seeds = [(seed, int(key)) for key in models.keys]
        return sample_sequences(models, self.n_steps, seeds, startprobs=models.weights)[
            0
        ]
