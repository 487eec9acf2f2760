"""Kullback-Leibler divergence rates."""

from functools import partial
from operator import ne
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skawhmm.distances._kl_variational import variational_rates
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_kept_sequences
from skawhmm.models._inference import chains, sample_sequences
from skawhmm.sequences._trials import mapped, recordings_of
from skawhmm.utils._checks import (
    check_boolean,
    check_choice,
    check_integer,
    check_optional,
    check_real,
    check_seed,
)
from skawhmm.utils._parameters import Parametrized, Unused

# Steps and states with smaller probabilities are ignored: a chain that returns to a
# state less than once in a million steps counts as having left it.
RAREST = 1e-6


def own_lengths(models):
    """Return the expected sequence length of models that come to an end.

    A chain comes to an end if it leaves some states for good. The expected time in
    these states, divided by their weight, is the length of the sequence.

    Parameters
    ----------
    models : HMMBatch
        The models.

    Returns
    -------
    lengths : ndarray of shape (n_models,)
        Expected time in the states that are left for good over the weight of these
        states; infinite if they have no weight, or if no sequence starts there.
    """
    chain = models.transmats
    reach = (chain >= RAREST) | np.eye(chain.shape[1], dtype=bool)
    for _ in range(chain.shape[1].bit_length()):
        reach = reach @ reach
    left = (reach & ~reach.swapaxes(1, 2)).any(axis=2)
    weight = np.sum(models.weights, axis=1, where=left)
    lengths = np.full(len(models), np.inf)
    ended = np.flatnonzero(weight > RAREST)
    left, starts = left[ended], models.startprobs[ended]
    inside = np.eye(chain.shape[1]) - chain[ended] * left[:, :, None] * left[:, None, :]
    stays = np.linalg.solve(inside, left[..., None].astype(float))[..., 0]
    stay = np.sum(starts * stays, axis=1)
    lengths[ended] = np.where(stay > 0, stay / weight[ended], np.inf)
    return lengths


def log_ratios(own, other):
    """Return the log likelihood ratios of two models on the sequences of the first."""
    apart = (own[0] == -np.inf) | (other[0] == -np.inf) | (other[1] != own[1])
    gaps = np.where(apart, 0.0, own[0]) - np.where(apart, 0.0, other[0])
    return np.where(apart, np.inf, gaps)


def models_on(models, mask):
    """Return models restricted to some of their features.

    Parameters
    ----------
    models : HMMBatch
        The models.

    mask : ndarray of bool of shape (n_features,)
        The features to keep.

    Returns
    -------
    models : HMMBatch
        The marginal models; all remaining features count as observed.
    """
    covars = models.covars[:, :, mask]
    if models.covariance_type == "full":
        covars = covars[..., mask]
    sequences = models.sequences
    if sequences is not None:
        sequences = mapped(lambda x: x[:, mask], sequences)
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
        sequence that each model was fitted to, which the models must keep
        (``HMMTransformer(keep_sequences=True)``).

    n_steps : int, default=2000
        Length of a drawn sequence, or total length of the sequences drawn from a model
        that comes to an end. Longer is more exact and slower. Only for
        ``method="monte_carlo"``.

    symmetric : bool, default=True
        Whether to take the mean of both directions.

    cap : float, default=None
        Upper limit of the distance. Without it, the distance is infinite if one model
        rules out frames that the other produces; kernels and maps need finite values.

    random_state : int, RandomState instance, Generator or None, default=0
        Seed of the drawn sequences. Only for ``method="monte_carlo"``.

    Notes
    -----
    A divergence is never negative, but an estimate from a sequence can be: negative
    estimates are returned as 0.

    A model comes to an end if its chain permanently leaves states that have weight, as
    in a model of a spoken word (``topology="left-to-right"``). One long sequence would
    stay in the last state forever. Instead, several sequences of the model's own length
    are drawn, each from the start probabilities, with `n_steps` frames in total. This
    length is the expected time in the states that are left, divided by their weight. It
    is about the length of the sequence that the model was fitted to, unless the model
    is shrunk to a prior. The variational bound is computed for the same length.

    Models with different observed features are compared on the features they have in
    common; the rate is multiplied by the number of all features divided by the number
    of common ones.

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

    _parameter_checks: ClassVar = {
        "method": partial(check_choice, choices=("monte_carlo", "variational", "data")),
        "n_steps": partial(check_integer, low=1),
        "symmetric": check_boolean,
        "cap": partial(
            check_optional,
            check=partial(check_real, low=0, high=np.inf, allow_infinity=True),
        ),
    }
    _unused: ClassVar = (
        Unused(("n_steps", "random_state"), "method", partial(ne, "monte_carlo")),
    )

    # Sequences are drawn again for each tile, so that they need not all be kept.
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
        self.method = method
        self.n_steps = n_steps
        self.symmetric = symmetric
        self.cap = cap
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
        prepared : object
            For the other method.
        """
        self._check_parameters()
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
        # Divergences are never negative; estimates from a sequence may be.
        return np.clip(rates, 0.0, self.cap)

    def _shared(self, models):
        """Return start probabilities, lengths, and the inputs of the method."""
        lengths, starts = own_lengths(models), models.weights
        if self.method != "data":
            ended = np.isfinite(lengths)[:, None]
            starts = np.where(ended, models.startprobs, starts)
        if self.method == "variational":
            return starts, lengths, models.emission.divergences
        compare = partial(models.emission.pair_scores, chains(models, starts))
        return starts, lengths, compare

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
        models, (starts, lengths, compare), _ = prepared
        if self.method == "variational":
            divergences = compare(index_a, index_b)
            steps = np.where(np.isinf(lengths), 0, np.maximum(np.rint(lengths), 1))
            return variational_rates(
                starts,
                models.transmats,
                divergences,
                index_a,
                index_b,
                steps.astype(np.intp),
            )
        used, row = np.unique(index_a, return_inverse=True)
        totals, n_steps = np.zeros(index_a.size), np.zeros(index_a.size)
        for drawn, sequences in self._drawn(prepared, used):
            place = np.full(used.size, -1)
            place[drawn] = np.arange(drawn.size)
            pairs = np.flatnonzero(place[row] >= 0)
            sequence = place[row[pairs]]
            own, other = compare(
                sequences,
                [(place[drawn], used[drawn]), (sequence, index_b[pairs])],
            )
            totals[pairs] += log_ratios((own[0][sequence], own[1][sequence]), other)
            n_steps[pairs] += np.array([len(x) for x in sequences])[sequence]
        return totals / n_steps

    def _drawn(self, prepared, used):
        """Yield the indices of models with a further sequence, and the sequences."""
        models, (starts, lengths, _), seed = prepared
        if self.method == "data":
            recordings, firsts = recordings_of(models[used].sequences)
            n_trials = np.diff(firsts)
            for n in range(n_trials.max()):
                drawn = np.flatnonzero(n_trials > n)
                yield drawn, [recordings[firsts[i] + n] for i in drawn]
            return
        sizes = np.clip(np.rint(lengths[used]), 1, self.n_steps)
        n_drawn = np.ceil(self.n_steps / sizes)
        for n in range(int(n_drawn.max())):
            drawn = np.flatnonzero(n_drawn > n)
            batch = models[used[drawn]]
            seeds = [(seed, int(key), *([n] if n else [])) for key in batch.keys]
            sequences, _ = sample_sequences(
                batch, sizes[drawn].astype(int), seeds, startprobs=starts[used[drawn]]
            )
            yield drawn, sequences
