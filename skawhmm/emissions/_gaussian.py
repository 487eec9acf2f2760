"""Gaussian states with diagonal or full covariances."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from skawhmm.emissions._base import Emission
from skawhmm.emissions._checks import check_covariances
from skawhmm.emissions._gaussian_costs import (
    GaussianCosts,
    averaged_roots,
    covariance_roots,
    spectral_parts,
)
from skawhmm.emissions._gaussian_divergences import gaussian_divergences
from skawhmm.emissions._gaussian_em import LEAST_FLOOR, Moments, update_states
from skawhmm.emissions._gaussian_em_kernels import fill_expectations, log_priors
from skawhmm.emissions._gaussian_frames import GaussianFrames
from skawhmm.emissions._gaussian_runs import GaussianEM
from skawhmm.emissions._gaussian_scores import (
    channels_and_mask,
    make_densities,
    packed_sequences,
)
from skawhmm.emissions._gaussian_scores_kernels import (
    chain_densities,
    frame_densities,
    paired_log_likelihoods,
    score_models,
)
from skawhmm.emissions._hmmlearn import gaussian_model
from skawhmm.emissions._mmd import gaussian_mmd_comparer, median_squared_gap
from skawhmm.emissions._model import Expected
from skawhmm.numerics._filtering import filter_frames
from skawhmm.sequences._checks import check_complete, check_no_missing
from skawhmm.utils._checks import LARGEST_VALUE, check_choice, check_real

COVARIANCE_TYPES = ("diag", "full", "spherical", "tied")


class Gaussian(GaussianFrames, Emission):
    """Gaussian states.

    The parameters of a state are its ``means`` and ``covars``: variances, or covariance
    matrices.

    Parameters
    ----------
    covariance_type : {"diag", "full", "spherical", "tied"}, default="diag"
        Form of the covariances. Fitted models are either "diag" or "full": spherical
        covariances are stored as diagonal ones, tied covariances as full ones.

    reg_covar : float, default=1e-4
        Least variance of a state in any direction, as a fraction of the variance of the
        sequence. Channels that do not vary at all keep variance 0.

    See Also
    --------
    skawhmm.models.HMMBatch : Models with given means and covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.emissions import Gaussian
    >>> X = [np.random.default_rng(0).normal(size=(100, 2))]
    >>> hmm = HMMTransformer(2, emission=Gaussian("full", reg_covar=0.01))
    >>> hmm.fit_transform(X)
    HMMBatch(n_models=1, n_components=2, n_features=2, covariance_type='full')
    """

    name = "gaussian"
    support = "line"
    parameter_names = ("means", "covars")
    parameter_axes: ClassVar = {"covars": (2, 3)}
    keeps_sequences = True
    accepts_missing = True
    has_kernel = True

    means: np.ndarray
    covars: np.ndarray

    # Set by `keeping_costs`.
    kept_costs: GaussianCosts | None = None

    def __init__(
        self, covariance_type: str = "diag", *, reg_covar: float = 1e-4
    ) -> None:
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar

    def check_options(self):
        """Raise if an option is wrong."""
        check_choice("covariance_type", self.covariance_type, COVARIANCE_TYPES)
        check_real("reg_covar", self.reg_covar, 0, np.inf)

    @property
    def is_full(self) -> bool:
        """Whether covariances are matrices while they are fitted."""
        return self.covariance_type in {"full", "tied"}

    @property
    def floor(self) -> float:
        """Least variance in any direction after an M step."""
        return max(float(self.reg_covar), LEAST_FLOOR)

    @property
    def pooled_covars(self) -> bool:
        """Whether the M step pools variances: over channels, or over states if full."""
        return self.covariance_type in {"spherical", "tied"}

    def like(self, *parameters, observed=None):
        """Return a family with the same options and other parameters."""
        family = super().like(*parameters, observed=observed)
        family.covariance_type = "diag" if family.covars.ndim == 3 else "full"
        return family

    @property
    def traits(self):
        """What `repr` shows of the family, by name."""
        return {
            "n_features": self.n_features,
            "covariance_type": self.covariance_type,
        }

    @property
    def fingerprint(self):
        """Nothing: the options matter to fits only."""
        return b""

    @classmethod
    def concatenate(cls, families):
        """Return one family with the models of all, which have equally many states."""
        kept = families[0].kept_costs
        if len({family.covariance_type for family in families}) > 1:
            kept = kept if families[0].covariance_type == "full" else None
            families = [
                family.like(
                    family.means, family.full_covars(), observed=family.observed
                )
                for family in families
            ]
            families[0].kept_costs = kept
        both = super().concatenate(families)
        if kept is not None:
            costs = [family.ground_costs() for family in families]
            both.kept_costs = GaussianCosts.concatenate(costs)
        return both

    def full_covars(self) -> np.ndarray:
        """Return the covariances as full matrices."""
        if self.covariance_type == "full":
            return self.covars
        return self.covars[..., None] * np.eye(self.n_features)

    def gaussian(self, purpose):
        """Return the family, because its states are Gaussian."""
        return self

    @classmethod
    def largest_value(cls, name):
        """Return the largest size of a mean, or its square for a covariance."""
        return LARGEST_VALUE**2 if name == "covars" else LARGEST_VALUE

    def from_arrays(self, arrays, is_state):
        """Return the family, or raise unless covariances are positive semidefinite."""
        checked = {**arrays, "covars": check_covariances(arrays["covars"])}
        return super().from_arrays(checked, is_state)

    def check_scorable(self, sequences):
        """Raise if values are missing and covariances are full."""
        if self.covariance_type == "full":
            check_no_missing(sequences, "A density with full covariances")

    def drawn(self, i, path, rng):
        """Draw a checked sequence from model i, given its path of states."""
        noise = rng.standard_normal((len(path), self.n_features))
        if self.covariance_type == "diag":
            noise *= np.sqrt(self.covars[i])[path]
        else:
            noise = np.einsum("tcr,tr->tc", sampling_roots(self.covars[i])[path], noise)
        return self.means[i][path] + noise

    def frames_at(self, i, path, levels):
        """Return the frames of model i at given levels of independent normals."""
        normals = ndtri(levels)
        if self.covariance_type == "diag":
            return self.means[i][path] + np.sqrt(self.covars[i])[path] * normals
        roots = covariance_roots(self.covars[i])[path]
        return self.means[i][path] + np.einsum("tcr,tr->tc", roots, normals)

    # Comparisons of groups.

    def merged(self, weights):
        """Return the family with states that have the moments of mixtures."""
        means = np.einsum("nkj,njc->nkc", weights, self.means)
        gaps = self.means[:, None] - means[:, :, None]
        inner = np.einsum("nkj,nj...->nk...", weights, self.covars)
        if self.covariance_type == "diag":
            between = np.einsum("nkj,nkjc->nkc", weights, gaps**2)
        else:
            between = np.einsum("nkj,nkjc,nkjd->nkcd", weights, gaps, gaps)
        return self.like(means, inner + between, observed=self.observed)

    def described(self, channels):
        """Return means and standard deviations; NaN for channels not observed."""
        variances = self.covars
        if self.covariance_type == "full":
            variances = np.diagonal(variances, axis1=2, axis2=3)
        seen = self.masks()[:, None, :] > 0
        columns = {}
        for name, values in (("mean", self.means), ("sd", np.sqrt(variances))):
            shown = np.where(seen, values, np.nan)
            for k, channel in enumerate(channels):
                columns[f"{name}_{channel}"] = shown[..., k]
        return columns

    # Scores.

    def densities(self, i, x, start, transmat):
        """Return log densities of a checked sequence, given the chain of model i."""
        if self._has_correlated_gaps(x):
            logs, ranks = self.frame_densities(i, x, len(start))
            if np.ptp(ranks, axis=0).any():
                raise ValueError(
                    "X must not have missing values (NaN) if some covariance matrices "
                    f"are singular, as those of model {i} are."
                )
            return logs
        frames, seen = channels_and_mask(x)
        return chain_densities(frames, seen, self._factored, i, start, transmat)

    def _has_correlated_gaps(self, x):
        """Whether values are missing whose channels depend on those observed."""
        return self.covariance_type == "full" and bool(np.isnan(x).any())

    def frame_densities(self, i, x, size):
        """Return log densities that depend on one frame each, to the last bit."""
        logs = np.zeros((size, len(x)))
        ranks = np.zeros(logs.shape, np.intp)
        gaps = np.isnan(x)
        # Frames with gaps are summed in another way, which must not reach the others.
        for rows in missing_patterns(gaps, each=self.covariance_type == "full"):
            family, part = self, x[rows]
            if self.covariance_type == "full" and gaps[rows[0]].any():
                seen = ~gaps[rows[0]]
                family, part = self[i : i + 1]._of_channels(seen), part[:, seen]
            if part.shape[1] > 0:
                frames, mask = channels_and_mask(part)
                place = i if family is self else 0
                found = frame_densities(frames, mask, family._factored, place, size)
                logs[:, rows], ranks[:, rows] = found[0], found[1][:, None]
        return logs, ranks

    def _of_channels(self, seen):
        """Return the family of some channels, given by a mask."""
        covars = self.covars[:, :, seen][..., seen]
        observed = None if self.observed is None else self.observed[:, seen]
        return self.like(self.means[:, :, seen], covars, observed=observed)

    has_moments = True

    def of_channel(self, channel):
        """Return the distributions of one channel, which are diagonal states."""
        chosen = slice(channel, channel + 1)
        variances = self.covars[:, :, chosen]
        if self.covariance_type == "full":
            variances = variances[..., channel]
        return Gaussian().like(self.means[:, :, chosen], variances)

    def moments(self, i, size):
        """Return means and covariances of the states of a model."""
        return self.means[i, :size], self[i : i + 1].full_covars()[0, :size]

    @cached_property
    def _factored(self):
        return make_densities(self)

    def scorer(self, startprobs, transmats, sizes):
        """Return a function that scores a checked sequence under some models."""
        densities = self._factored

        def scores(x, models):
            out = np.empty(len(models))
            if self._has_correlated_gaps(x):
                for n, i in enumerate(models):
                    chain = startprobs[i, : sizes[i]], transmats[i]
                    out[n] = self._gappy_score(i, x, *chain)
                return out
            frames, seen = channels_and_mask(x)
            score_models(
                frames, seen, densities, startprobs, transmats, sizes, models, out
            )
            return out

        return scores

    def _gappy_score(self, i, x, start, transmat):
        """Return the log likelihood of the observed channels under one model."""
        size = len(start)
        logs, ranks = self.frame_densities(i, x, size)
        with np.errstate(divide="ignore"):
            ahead = np.log(start)
        proba, surprise = np.empty((len(x), size)), np.empty(len(x))
        chain = transmat[:size, :size].copy()
        filter_frames(logs, ranks, chain, ahead, proba, surprise)
        return -surprise.sum()

    def pair_scores(self, chains, sequences, pairs):
        """Return the log likelihoods of sequences under chosen models."""
        parts = packed_sequences(sequences), self._factored, *chains
        return [paired_log_likelihoods(*parts, *pair) for pair in pairs]

    # Comparisons of states.

    def ground_costs(self):
        """Return the costs between the states of any two of the models."""
        if self.kept_costs is not None:
            return self.kept_costs
        points = self.points()
        if points is not None:
            return GaussianCosts(points, None, self.masks())
        means, roots = np.array(self.means), covariance_roots(self.covars)
        return GaussianCosts(means, roots, self.masks())

    def points(self):
        """Return means and standard deviations; None if covariances are full."""
        if self.covariance_type == "full":
            return None
        return np.concatenate([self.means, np.sqrt(self.covars)], axis=2)

    def keeping_costs(self) -> "Gaussian":
        """Return the family with its costs prepared, for models compared repeatedly."""
        # A family that is concatenated from this one and others keeps them, so that
        # only the costs of the others are prepared.
        family = self.like(self.means, self.covars, observed=self.observed)
        family.kept_costs = self.ground_costs()
        return family

    def cross(self, index_a, index_b):
        """Return squared distances (n_pairs, n_components, n_components) of states."""
        return self.ground_costs().cross(index_a, index_b)

    def divergences(self, index_a, index_b):
        """Return divergences (n_pairs, n_components, n_components) from a to b."""
        values, vectors, roots = self._spectral
        states = np.array(self.means), roots, values, vectors
        return gaussian_divergences(*states, index_a, index_b)

    def mmd_comparer(self, masses, sizes, bandwidth):
        """Return a function of pairs of models: squared distances."""
        states = self.means, self.covars, self.masks()
        return gaussian_mmd_comparer(*states, masses, sizes, bandwidth)

    def median_gap(self, weights):
        """Return the median squared distance between frames of two states."""
        variances = self.covars
        if self.covariance_type == "full":
            variances = np.diagonal(variances, axis1=2, axis2=3)
        return median_squared_gap(self.means, variances, self.masks(), weights)

    def averaged(self, models, labels, masses):
        """Return states with averages of the means and of the factors of covariances.

        One step of the fixed point of Bures barycentres, written without inverses so
        that singular covariances are legal. Standard deviations of diagonal covariances
        just average.
        """
        old, costs = self.ground_costs(), models.ground_costs()
        points = self.matched_means(old.points, costs.points, labels, masses)
        if old.roots is None:
            means, spreads = np.split(points, 2, axis=2)
            covars = spreads**2
        else:
            roots = averaged_roots(old, costs, labels, masses)
            means, covars = points, roots @ roots.swapaxes(2, 3)
        return self.like(means, covars, observed=self.observed)

    @cached_property
    def _spectral(self):
        return spectral_parts(self.full_covars())

    # Fitting.

    def check_missing(self, sequences, *, is_pooled):
        """Raise if values are missing that a fit needs."""
        if self.is_full:
            reason = f"covariance_type={self.covariance_type!r}"
            check_filled(sequences, reason, is_pooled=is_pooled)

    def expectations(self, data, model, active):
        """Return log likelihoods and expected statistics of some models: the E step."""
        n_active = len(active)
        start, moves, counts, *sums = (
            np.zeros((n_active, *part.shape[1:]))
            for part in (
                model.startprob,
                model.transmat,
                model.startprob,
                model.states[0],
                model.states[0],
                model.states[1],
            )
        )
        values, moments = np.empty(n_active), Moments(*sums)
        fill_expectations(
            data.frames,
            data.seen,
            data.offsets,
            data.firsts,
            model[:2],
            model.states,
            active,
            (start, moves, counts),
            moments,
            values,
        )
        return values, Expected(start, moves, counts, moments)

    def updates(self, expected, rows, model, prior, relevance, active):
        """Change the states of some models in place: the M step."""
        update_states(
            expected.statistics,
            rows,
            model.states,
            prior.states,
            (float(relevance), self.floor, self.pooled_covars),
            active,
        )

    has_compiled_em = True

    def compiled_em(self, data, states, prior):
        """Return the EM steps of the states of several models, without Python."""
        return GaussianEM(data, states, prior, self.floor, self.pooled_covars)

    def updated_states(self, i, sequences, posts, older, counts):
        """Return the most likely states, with older states as that many frames."""
        self.check_scorable(sequences)
        frames, post = np.concatenate(sequences), np.concatenate(posts, axis=1)
        seen = ~np.isnan(frames)
        amounts = post @ seen
        totals = amounts + counts[:, None]
        fresh = np.where(totals > 0, amounts / np.where(totals > 0, totals, 1.0), 0.0)
        known = np.where(amounts > 0, amounts, 1.0)
        means, covars = older.means[i], older.covars[i]
        # About the older means, so that offsets do not take the digits.
        gaps = np.where(seen, frames - means[:, None], 0.0)
        shifts = np.einsum("kt,ktc->kc", post, gaps) / known
        moved = fresh * shifts
        if self.covariance_type == "diag":
            seconds = np.einsum("kt,ktc->kc", post, gaps**2) / known
            covars = covars + fresh * (seconds - covars) - moved**2
            return means + moved, np.maximum(covars, 0.0)
        seconds = np.einsum("kt,ktc,ktd->kcd", post, gaps, gaps) / known[..., None]
        covars = covars + fresh[..., None] * (seconds - covars)
        return means + moved, covars - moved[..., None] * moved[:, None]

    def log_priors(self, model, prior, active):
        """Return the log priors of the states of some models."""
        return log_priors(model.states, prior.states, active)

    # Exchange with hmmlearn.

    def hmmlearn_model(self, i, size):
        """Return a model of hmmlearn with the states of model i, without its chain."""
        return gaussian_model(self.means[i, :size], self.covars[i, :size])


def sampling_roots(covars):
    """Return factors of covariances, with the smallest directions first."""
    return covariance_roots(covars)[..., ::-1]


def missing_patterns(gaps, *, each):
    """Return numbers of frames: those without gaps, and the others.

    With `each`, the others are divided into groups in which the same channels are
    missing.
    """
    gappy = gaps.any(axis=1)
    groups = [np.flatnonzero(~gappy), np.flatnonzero(gappy)]
    if each and gappy.any():
        kinds = np.unique(gaps[gappy], axis=0, return_inverse=True)[1].ravel()
        groups[1:] = [groups[1][kinds == kind] for kind in range(kinds.max() + 1)]
    return [rows for rows in groups if rows.size]


def check_filled(sequences, reason, *, is_pooled):
    """Raise if values are missing: any value if there is a pooled model.

    Without a pooled model, channels without any value are left out.
    """
    if is_pooled:
        check_no_missing(sequences, f"{reason} with a pooled model")
    else:
        check_complete(sequences, reason)
