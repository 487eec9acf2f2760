"""Random models, closed forms and small classes that several tests need."""

from itertools import pairwise, product

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator, TransformerMixin

from skawhmm import HMMBatch
from skawhmm.emissions import (
    Bernoulli,
    Categorical,
    Gamma,
    Gaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
    VonMises,
)

MIXED_BLOCKS = [
    ("step", Gamma(), [0]),
    ("turn", VonMises(), [1]),
    ("posture", Gaussian("full"), [2, 3]),
    ("mode", Categorical([0, 1, 2]), [4]),
    ("flag", Bernoulli(), [5]),
    ("count", NegativeBinomial(), [6]),
    ("noise", StudentT(), [7]),
    ("calls", Poisson(), [8]),
]


class Moments(TransformerMixin, BaseEstimator):
    """A cheap view: powers of the frames, averaged."""

    def __init__(self, power=1, factor=1.0):
        self.power = power
        self.factor = factor

    def fit(self, X, y=None):
        assert y is None, "views must not see the classes"
        self.n_features_ = X[0].shape[1]
        return self

    def transform(self, X):
        return self.factor * np.array([(x**self.power).mean(axis=0) for x in X])


def random_model(rng, n_components, n_features, covariance_type):
    """Draw the arrays of one model, its states in general position."""
    transmat = rng.dirichlet(np.ones(n_components), size=n_components)
    means = rng.normal(size=(n_components, n_features))
    if covariance_type == "diag":
        return transmat, means, rng.uniform(0.1, 2, size=(n_components, n_features))
    roots = rng.normal(size=(n_components, n_features, n_features))
    return transmat, means, roots @ roots.swapaxes(1, 2)


def tied_model(rng, n_components):
    """Draw a model with states and rows from small grids, so that many are equal."""
    size, kind = n_components, rng.choice(["cycle", "grid", "map", "twins"])
    stay = rng.choice([0, 0.25, 0.5, 0.9])
    if kind == "cycle":
        transmat = np.roll(np.eye(size), 1, axis=1)
    elif kind == "map":
        transmat = np.eye(size)[rng.permutation(size)]
    else:
        transmat = rng.integers(0, 3, (size, size)) + np.eye(size)
        if kind == "twins":
            transmat[:] = transmat[0]
    transmat = stay * np.eye(size) + (1 - stay) * transmat
    transmat /= transmat.sum(axis=1, keepdims=True)
    levels = rng.integers(0, rng.integers(1, 4), (size, 2)) * [1.0, rng.integers(2)]
    spreads = rng.choice([1.0, 1.0, 2.25], (size, 1)) * np.ones(2)
    weights = rng.integers(1, 1 + rng.integers(1, 4), size) + 0.0
    if rng.random() < 0.2:
        weights[0] = rng.choice([0, 1e-3, 1e-5])
    weights = weights / weights.sum() if weights.sum() > 0 else np.ones(size) / size
    return transmat, levels, spreads, weights


def reordered(model, order):
    """Return the arrays of a model with its states in another order."""
    transmat, *arrays = model
    return transmat[np.ix_(order, order)], *(array[order] for array in arrays)


def cloned(model, state, fraction):
    """Split a state into two equal ones; the new, last one gets part of its weight."""
    order = [*range(len(model[0])), state]
    transmat, *arrays, weights = (np.array(array) for array in reordered(model, order))
    for masses in (*transmat, weights):
        masses[-1], masses[state] = (
            fraction * masses[state],
            (1 - fraction) * masses[state],
        )
    return transmat, *arrays, weights


def tied_batch(*models):
    """Return models from the arrays of `tied_model`."""
    transmats, means, covars, weights = zip(*models, strict=True)
    return HMMBatch(transmats, means, covars, weights=weights)


def jointly_carried(forth, transmat, back):
    """Transfer a chain to other states by one map of states, as in the formula."""
    moved = np.zeros((len(forth), len(forth)))
    for i, k, j, after in np.ndindex(*moved.shape, *transmat.shape):
        if after != j:
            moved[i, k] += forth[i, j] * transmat[j, after] * back[after, k]
        elif i == k:
            moved[i, k] += forth[i, j] * transmat[j, j]
    return moved


def squared_hellinger(row, other, _=None):
    """Return half the squared distance between the roots of two distributions."""
    return np.sum((np.sqrt(row) - np.sqrt(other)) ** 2) / 2


def gaussian_kl(mean_a, covar_a, mean_b, covar_b):
    """Return the divergence of two Gaussians in closed form."""
    gap = mean_b - mean_a
    inverse = np.linalg.inv(covar_b)
    log_dets = np.linalg.slogdet(covar_b)[1] - np.linalg.slogdet(covar_a)[1]
    spread = np.trace(inverse @ covar_a) - len(gap)
    return 0.5 * (spread + gap @ inverse @ gap + log_dets)


def case_models(case, **arguments):
    """Return the two models of a stored case."""
    return HMMBatch(
        [case["T1"], case["T2"]],
        [case["mu1"], case["mu2"]],
        [case["Sigma1"], case["Sigma2"]],
        **arguments,
    )


def case_weights(case):
    """Return the state probabilities of the two models of a stored case."""
    return [case["pi1"], case["pi2"]]


def make_models(rng, n_models=3, n_components=3, n_features=2, full=True):
    transmats = rng.dirichlet(np.ones(n_components), (n_models, n_components))
    means = rng.normal(size=(n_models, n_components, n_features))
    if full:
        roots = rng.normal(size=(n_models, n_components, n_features, n_features))
        covars = roots @ roots.swapaxes(2, 3) + 0.1 * np.eye(n_features)
    else:
        covars = rng.uniform(0.5, 2, size=means.shape)
    startprobs = rng.dirichlet(np.ones(n_components), n_models)
    return HMMBatch(transmats, means, covars, startprobs=startprobs)


def log_densities(model, x):
    covars = model.covars[0]
    if covars.ndim == 2:
        covars = covars[..., None] * np.eye(x.shape[1])
    parts = zip(model.means[0], covars, strict=True)
    return np.array([multivariate_normal(m, c).logpdf(x) for m, c in parts]).reshape(
        -1, len(x)
    )


def all_paths(logs, startprob, transmat):
    """Every path and its log probability together with the frames."""
    n_components, n_timesteps = logs.shape
    paths = np.array(list(product(range(n_components), repeat=n_timesteps)))
    with np.errstate(divide="ignore"):
        scores = np.log(startprob)[paths[:, 0]]
        for t in range(n_timesteps):
            scores = scores + logs[paths[:, t], t]
        for s, t in pairwise(range(n_timesteps)):
            scores = scores + np.log(transmat)[paths[:, s], paths[:, t]]
    return paths, scores


def mixed_frames(rng, busy, factor=1.0):
    """Draw frames of the nine channels of `MIXED_BLOCKS`, given the state of each."""
    n_timesteps = len(busy)
    return np.column_stack(
        [
            rng.gamma(3, np.where(busy, 2.0 * factor, 0.3)),
            rng.vonmises(np.where(busy, 2.0, 0.0), np.where(busy, 4.0, 1.0)),
            rng.normal(3 * busy),
            rng.normal(-busy),
            rng.integers(0, 3, n_timesteps) * busy,
            rng.random(n_timesteps) < np.where(busy, 0.8, 0.1),
            rng.poisson(rng.gamma(3, np.where(busy, 5.0, 1.0))),
            5 * busy + rng.standard_t(4, n_timesteps),
            rng.poisson(np.where(busy, 8.0, 2.0)),
        ]
    )
