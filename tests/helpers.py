"""Random models, closed forms and small classes that several tests need."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from skawhmm import HMMBatch


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


def jointly_carried(forth, transmat, back):
    """Carry a chain to other states by one map of states, read off the formula."""
    moved = np.zeros((len(forth), len(forth)))
    for i, k, j, after in np.ndindex(*moved.shape, *transmat.shape):
        if after != j:
            moved[i, k] += forth[i, j] * transmat[j, after] * back[after, k]
        elif i == k:
            moved[i, k] += forth[i, j] * transmat[j, j]
    return moved


def squared_hellinger(row, other, _=None):
    """Return half the squared distance between the roots of two laws."""
    return np.sum((np.sqrt(row) - np.sqrt(other)) ** 2) / 2


def gaussian_kl(mean_a, covar_a, mean_b, covar_b):
    """Return the divergence of two Gaussians in closed form."""
    gap = mean_b - mean_a
    inverse = np.linalg.inv(covar_b)
    log_dets = np.linalg.slogdet(covar_b)[1] - np.linalg.slogdet(covar_a)[1]
    spread = np.trace(inverse @ covar_a) - len(gap)
    return 0.5 * (spread + gap @ inverse @ gap + log_dets)


def case_models(case, **arguments):
    """Return the two models of a frozen case."""
    return HMMBatch(
        [case["T1"], case["T2"]],
        [case["mu1"], case["mu2"]],
        [case["Sigma1"], case["Sigma2"]],
        **arguments,
    )


def case_weights(case):
    """Return the state probabilities of the two models of a frozen case."""
    return [case["pi1"], case["pi2"]]
