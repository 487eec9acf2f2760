"""Random models and closed forms that several tests need."""

import numpy as np

from skawhmm import HMMBatch


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
