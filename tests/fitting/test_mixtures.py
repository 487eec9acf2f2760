import numpy as np
import pytest
from hmmlearn.hmm import GMMHMM
from numpy.testing import assert_allclose

from skawhmm import as_models
from skawhmm.emissions import Gaussian
from skawhmm.emissions._model import Model
from skawhmm.fitting._em import Rule, Steps, model_at, run_em, stacked
from skawhmm.fitting._gaussian_fit import gaussian_data

N_STATES, N_MIX, N_FEATURES = 2, 2, 2


def mixture(rng, covariance_type, x):
    """Start values of hmmlearn's mixture: one frame of every level a Gaussian."""
    model = GMMHMM(
        N_STATES, N_MIX, covariance_type=covariance_type, init_params="", tol=0
    )
    model.startprob_ = rng.dirichlet(np.ones(N_STATES))
    model.transmat_ = rng.dirichlet(5 * np.ones(N_STATES), N_STATES)
    model.weights_ = rng.dirichlet(5 * np.ones(N_MIX), N_STATES)
    model.means_ = x[:4].reshape(N_STATES, N_MIX, N_FEATURES).copy()
    model.covars_ = np.ones((N_STATES, N_MIX, N_FEATURES))
    if covariance_type == "full":
        model.covars_ = model.covars_[..., None] * np.eye(N_FEATURES)
    return model


def after_em(theirs, x, max_iter, tol):
    """Our fit from the same start, each Gaussian a state of its own."""
    split = as_models(theirs)
    states = split.means[0], split.covars[0]
    start = stacked([Model(split.startprobs[0], split.transmats[0], states)])
    data = gaussian_data(x.T.copy(), np.empty(0), np.array([0, len(x)]))
    template = Gaussian(split.covariance_type, reg_covar=0.0)
    runs = run_em(Steps(template, data, Rule(N_MIX, 0.0, max_iter, tol)), start)
    return model_at(runs.model, 0), runs.log_likelihood[0]


@pytest.fixture
def sequence(rng):
    """Two states that turn into each other, each with two levels."""
    states = np.cumsum(rng.random(600) < 0.1) % 2
    levels = np.array([[0, 5], [10, 15]])[states, rng.integers(2, size=600)]
    levels[:4] = 0, 5, 10, 15
    return levels[:, None] + rng.normal(size=(600, N_FEATURES))


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_a_step_is_that_of_hmmlearns_mixture(rng, sequence, covariance_type):
    theirs = mixture(rng, covariance_type, sequence)
    before = theirs.means_.reshape(-1, N_FEATURES).copy()
    ours, _ = after_em(theirs, sequence, 1, 0.0)
    theirs.n_iter = 1
    stepped = as_models(theirs.fit(sequence))
    assert_allclose(ours.startprob, stepped.startprobs[0], atol=1e-12)
    assert_allclose(ours.transmat, stepped.transmats[0], atol=1e-12)
    assert_allclose(ours.states[0], stepped.means[0], atol=1e-12)
    # hmmlearn takes second moments about the means before the step.
    shift = ours.states[0] - before
    if covariance_type == "diag":
        excess = shift**2
    else:
        excess = shift[:, :, None] * shift[:, None, :]
    assert_allclose(ours.states[1] + excess, stepped.covars[0], atol=1e-10)


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_a_fit_ends_where_hmmlearns_mixture_does(rng, sequence, covariance_type):
    theirs = mixture(rng, covariance_type, sequence)
    ours, log_likelihood = after_em(theirs, sequence, 300, 0.0)
    theirs.n_iter = 300
    fitted = as_models(theirs.fit(sequence))
    assert_allclose(log_likelihood, theirs.score(sequence), rtol=1e-8)
    assert_allclose(ours.transmat, fitted.transmats[0], atol=1e-5)
    assert_allclose(ours.states[0], fitted.means[0], atol=1e-5)
    assert_allclose(ours.states[1], fitted.covars[0], atol=1e-5)
