"""Objects built like those of ssm, which does not install from PyPI."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import bernoulli, multivariate_normal, norm, poisson

from skawhmm import as_models

LOG_START = np.array([0.3, -0.4])
LOG_MOVES = np.array([[0.0, -2.0], [-1.0, 0.5]])


class StationaryTransitions:
    transition_matrix = np.exp(LOG_MOVES - logsumexp(LOG_MOVES, axis=1, keepdims=True))


class InputDrivenTransitions(StationaryTransitions):
    """As in ssm, it derives from transitions that are the same at all times."""


class GaussianObservations:
    mus = np.array([[0.0, 1.0], [2.0, -1.0]])
    Sigmas = np.array([[[1.0, 0.3], [0.3, 2.0]], [[0.5, 0.0], [0.0, 0.7]]])

    def log_likelihoods(self, x):
        pairs = zip(self.mus, self.Sigmas, strict=True)
        return np.stack([multivariate_normal.logpdf(x, *pair) for pair in pairs], 1)


class DiagonalGaussianObservations:
    mus = np.array([[0.0, 1.0], [2.0, -1.0]])
    sigmasq = np.array([[1.0, 0.3], [0.5, 2.0]])

    def log_likelihoods(self, x):
        return norm.logpdf(x[:, None], self.mus, np.sqrt(self.sigmasq)).sum(axis=2)


class PoissonObservations:
    log_lambdas = np.array([[0.0, 1.0], [1.5, -1.0]])

    def log_likelihoods(self, x):
        return poisson.logpmf(x[:, None], np.exp(self.log_lambdas)).sum(axis=2)


class ExponentialObservations:
    """It has the attribute of counts, and another distribution."""

    log_lambdas = PoissonObservations.log_lambdas


class CategoricalObservations:
    logits = np.array([[[0.0, 1.0, -1.0]], [[2.0, 0.0, 0.5]]])

    def log_likelihoods(self, x):
        rows = self.logits[:, 0]
        return (rows - logsumexp(rows, axis=1, keepdims=True)).T[x]


class BernoulliObservations:
    logit_ps = np.array([[0.0, 1.0], [1.5, -1.0]])

    def log_likelihoods(self, x):
        chances = 1 / (1 + np.exp(-self.logit_ps))
        return bernoulli.logpmf(x[:, None], chances).sum(axis=2)


def model_of(observations, transitions=StationaryTransitions):
    start = np.exp(LOG_START - logsumexp(LOG_START))
    return SimpleNamespace(
        init_state_distn=SimpleNamespace(initial_state_distn=start),
        transitions=transitions(),
        observations=observations(),
    )


def score(model, x):
    """Return the log likelihood by a forward recursion of the test's own."""
    logs = model.observations.log_likelihoods(x)
    forward = np.log(model.init_state_distn.initial_state_distn) + logs[0]
    moves = np.log(model.transitions.transition_matrix)
    for row in logs[1:]:
        forward = logsumexp(forward[:, None] + moves, axis=0) + row
    return logsumexp(forward)


@pytest.mark.parametrize(
    "kind",
    [
        GaussianObservations,
        DiagonalGaussianObservations,
        PoissonObservations,
        CategoricalObservations,
        BernoulliObservations,
    ],
)
def test_models_keep_their_likelihood(kind, rng):
    if kind is CategoricalObservations:
        x = ours = rng.integers(3, size=20)
    elif kind is BernoulliObservations:
        x = rng.integers(2, size=(20, 2))
        ours = ["".join(map(str, row)) for row in x]
    elif kind is PoissonObservations:
        x = ours = rng.poisson(2.0, size=(20, 2))
    else:
        x = ours = rng.normal(size=(20, 2))
    model = model_of(kind)
    assert_allclose(as_models(model).score([ours])[0, 0], score(model, x), rtol=1e-10)


def test_subclasses_of_a_user_are_read():
    class Mine(DiagonalGaussianObservations):
        pass

    assert as_models([model_of(Mine)] * 2).covariance_type == "diag"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: model_of(GaussianObservations, InputDrivenTransitions),
            "same at all times, .*, got InputDrivenTransitions",
        ),
        (
            lambda: model_of(ExponentialObservations),
            "known kind, .*, got ExponentialObservations.*from_state_costs",
        ),
    ],
)
def test_errors_of_models_without_a_counterpart(make, words):
    with pytest.raises(TypeError, match=rf"^models\[1\] must.*{words}"):
        as_models([model_of(GaussianObservations), make()])


def test_symbols_of_several_channels_are_an_error():
    class CategoricalObservations:
        logits = np.zeros((2, 2, 3))

    with pytest.raises(TypeError, match=r"one channel, got logits of shape \(2, 2, 3"):
        as_models(model_of(CategoricalObservations))
