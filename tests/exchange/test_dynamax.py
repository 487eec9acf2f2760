"""Models fitted by dynamax: judged by the log likelihood of dynamax itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMBatch, as_models

jax = pytest.importorskip("jax", reason="make exchange installs JAX and dynamax")
models = pytest.importorskip("dynamax.hidden_markov_model")
# tfp, which dynamax needs, uses names that JAX and NumPy have deprecated.
pytestmark = pytest.mark.filterwarnings("ignore")
GAUSSIAN = {
    "GaussianHMM": {},
    "DiagonalGaussianHMM": {},
    "SphericalGaussianHMM": {"m_step_num_iters": 5},
    "SharedCovarianceGaussianHMM": {},
    "LowRankGaussianHMM": {"emission_rank": 1, "m_step_num_iters": 5},
}


@pytest.fixture(autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def fitted(model, frames, n_iters=4):
    """Return the parameters after some steps of EM."""
    key = jax.random.PRNGKey(1)
    params, properties = model.initialize(key)
    emissions = jax.numpy.asarray(frames)
    return model.fit_em(
        params, properties, emissions, num_iters=n_iters, verbose=False
    )[0]


def assert_same_scores(model, params, frames, sequence):
    """Compare both libraries, on the way here and on the way back."""
    theirs = float(model.marginal_log_prob(params, jax.numpy.asarray(frames)))
    ours = as_models(params)
    assert_allclose(ours.score([sequence])[0, 0], theirs, rtol=1e-9)
    other, back = ours.to_dynamax()
    again = float(other.marginal_log_prob(back, jax.numpy.asarray(frames)))
    assert_allclose(again, theirs, rtol=1e-9)
    assert_allclose(as_models(back).transmats, ours.transmats, rtol=1e-12)
    return ours


@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian_models_keep_their_likelihood(name, frames):
    model = getattr(models, name)(2, 2, **GAUSSIAN[name])
    ours = assert_same_scores(model, fitted(model, frames), frames, frames)
    is_diagonal = name in {"DiagonalGaussianHMM", "SphericalGaussianHMM"}
    assert ours.covariance_type == ("diag" if is_diagonal else "full")


@pytest.mark.parametrize("name", ["GaussianMixtureHMM", "DiagonalGaussianMixtureHMM"])
def test_mixtures_keep_their_likelihood(name, frames):
    model = getattr(models, name)(2, 2, 2)
    params = fitted(model, frames)
    theirs = float(model.marginal_log_prob(params, jax.numpy.asarray(frames)))
    ours = as_models(params)
    assert ours.n_components[0] == 4
    assert_allclose(ours.score([frames])[0, 0], theirs, rtol=1e-9)


def test_counts_keep_their_likelihood(counts):
    model = models.PoissonHMM(2, 2)
    assert_same_scores(model, fitted(model, counts), counts, counts)


def test_symbols_keep_their_likelihood(symbols):
    model = models.CategoricalHMM(2, 1, 3)
    column = symbols[:, None]
    assert_same_scores(model, fitted(model, column), column, symbols)


def test_marks_keep_their_likelihood(frames):
    marks = (frames > 1).astype(float)
    model = models.BernoulliHMM(2, 2)
    params = fitted(model, marks)
    theirs = float(model.marginal_log_prob(params, jax.numpy.asarray(marks)))
    texts = [["".join(str(int(bit)) for bit in row) for row in marks]]
    assert_allclose(as_models(params).score(texts)[0, 0], theirs, rtol=1e-9)


def test_models_that_were_fitted_together(frames):
    model = models.GaussianHMM(2, 2)
    parts = [fitted(model, part) for part in (frames[:80], frames[80:])]
    stacked = jax.tree_util.tree_map(lambda *leaves: jax.numpy.stack(leaves), *parts)
    assert as_models(stacked) == as_models(parts)
    assert len(as_models([stacked, parts[0]])) == 3


def test_single_precision_is_enough(frames):
    jax.config.update("jax_enable_x64", False)
    model = models.GaussianHMM(3, 2)
    params = fitted(model, frames.astype(np.float32))
    assert params.transitions.transition_matrix.dtype == np.float32
    ours = as_models(params)
    assert_allclose(ours.transmats.sum(axis=2), 1, rtol=1e-12)
    theirs = model.marginal_log_prob(params, jax.numpy.asarray(frames, "float32"))
    assert_allclose(ours.score([frames])[0, 0], float(theirs), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: models.GaussianHMM(2, 2), "parameters of a model of dynamax.*fit_em"),
        (
            lambda: models.CategoricalHMM(2, 2, 3).initialize()[0],
            r"symbols in one channel, got probabilities of shape \(2, 2, 3\)",
        ),
        (
            lambda: models.MultinomialHMM(2, 1, 3, 4).initialize()[0],
            "known kind.*got ParamsMultinomialHMMEmissions.*from_state_costs",
        ),
        (
            lambda: models.LinearRegressionHMM(2, 1, 1).initialize()[0],
            "got ParamsLinearRegressionHMMEmissions",
        ),
        (lambda: models.GammaHMM(2).initialize()[0], "got ParamsGammaHMMEmissions"),
    ],
)
def test_errors_of_models_without_a_counterpart(make, words):
    with pytest.raises(TypeError, match=rf"^models\[0\] must.*{words}"):
        as_models([make()])


def test_models_that_dynamax_cannot_hold():
    singular = HMMBatch([[[1.0]]], [[[0.0]]], [[[0.0]]])
    with pytest.raises(ValueError, match="positive definite for dynamax"):
        singular.to_dynamax()
