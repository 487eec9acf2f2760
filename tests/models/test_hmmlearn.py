"""Models of hmmlearn: judged by the scores of hmmlearn itself."""

import numpy as np
import pytest
from hmmlearn.hmm import (
    GMMHMM,
    CategoricalHMM,
    GaussianHMM,
    MultinomialHMM,
    PoissonHMM,
)
from hmmlearn.vhmm import VariationalCategoricalHMM, VariationalGaussianHMM
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import as_models

COVARIANCE_TYPES = ["spherical", "diag", "full", "tied"]


def hmmlearn_covars(rng, covariance_type, *shape):
    """Covariances in the form in which hmmlearn takes them."""
    if covariance_type == "spherical":
        return rng.uniform(0.5, 2, size=shape)
    if covariance_type == "diag":
        return rng.uniform(0.5, 2, size=(*shape, 2))
    roots = rng.normal(size=(*shape, 2, 2))
    return roots @ roots.swapaxes(-1, -2) + 0.5 * np.eye(2)


def gaussian_hmm(rng, covariance_type, size=3):
    model = GaussianHMM(size, covariance_type)
    model.startprob_ = rng.dirichlet(np.ones(size))
    model.transmat_ = rng.dirichlet(np.ones(size), size=size)
    model.means_ = rng.normal(size=(size, 2))
    shape = () if covariance_type == "tied" else (size,)
    model.covars_ = hmmlearn_covars(rng, covariance_type, *shape)
    return model


def mixture_hmm(rng, covariance_type, size=2, n_mix=3):
    model = GMMHMM(size, n_mix, covariance_type=covariance_type)
    model.n_features = 2
    model.startprob_ = rng.dirichlet(np.ones(size))
    model.transmat_ = rng.dirichlet(np.ones(size), size=size)
    model.weights_ = rng.dirichlet(np.ones(n_mix), size=size)
    model.means_ = rng.normal(size=(size, n_mix, 2))
    shape = (size,) if covariance_type == "tied" else (size, n_mix)
    model.covars_ = hmmlearn_covars(rng, covariance_type, *shape)
    return model


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("make", [gaussian_hmm, mixture_hmm])
def test_models_of_hmmlearn_keep_their_likelihood(make, covariance_type, rng):
    for _ in range(3):
        theirs = make(rng, covariance_type)
        ours = as_models(theirs)
        full = covariance_type in {"full", "tied"}
        assert ours.covariance_type == ("full" if full else "diag")
        x = rng.normal(size=(15, 2))
        assert_allclose(ours.score([x])[0, 0], theirs.score(x), rtol=1e-10)
        assert_allclose(ours.weights @ ours.transmats[0], ours.weights, atol=1e-14)


def test_a_mixture_becomes_states(rng):
    theirs = mixture_hmm(rng, "diag")
    ours = as_models([theirs])
    assert_array_equal(ours.n_components, [6])
    for i, r, j, s in np.ndindex(2, 3, 2, 3):
        assert_allclose(
            ours.transmats[0, 3 * i + r, 3 * j + s],
            theirs.transmat_[i, j] * theirs.weights_[j, s],
        )
    fractions = ours.weights[0].reshape(2, 3)
    assert_allclose(fractions, fractions.sum(axis=1, keepdims=True) * theirs.weights_)


def test_models_of_hmmlearn_of_several_types(rng):
    theirs = [gaussian_hmm(rng, "diag"), mixture_hmm(rng, "full")]
    ours = as_models(theirs)
    assert_array_equal(ours.n_components, [3, 6])
    assert ours.covariance_type == "full"
    x = rng.normal(size=(9, 2))
    for n, model in enumerate(theirs):
        assert_allclose(ours[n].score([x])[0, 0], model.score(x), rtol=1e-10)
    as_array = np.array([None, None])
    as_array[:] = theirs
    assert as_models(as_array) == ours
    given = as_models(theirs[:1], weights=[[0.2, 0.3, 0.5]])
    assert_array_equal(given.weights, [[0.2, 0.3, 0.5]])


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_fitted_variational_model(covariance_type, make_sequences):
    X, _ = make_sequences(4)
    theirs = VariationalGaussianHMM(2, covariance_type=covariance_type, random_state=0)
    theirs.fit(np.concatenate(X), [len(x) for x in X])
    ours = as_models(theirs)
    assert_array_equal(ours.means[0], theirs.means_posterior_)
    assert_allclose(ours.transmats[0], theirs.transmat_)
    matrices = ours.covars[0]
    if ours.covariance_type == "diag":
        matrices = matrices[..., None] * np.eye(2)
    # Within a state the data are of unit variance.
    assert_allclose(matrices, np.broadcast_to(np.eye(2), (2, 2, 2)), atol=0.8)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("n_features", [1, 2, 5])
@pytest.mark.parametrize("make", [GaussianHMM, GMMHMM])
def test_fitted_models_of_hmmlearn(make, covariance_type, n_features, make_sequences):
    X, _ = make_sequences(4, n_features=n_features)
    theirs = [
        make(size, covariance_type=covariance_type, random_state=0).fit(x)
        for size, x in zip((2, 3, 2, 1), X, strict=True)
    ]
    ours = as_models(theirs, info={"name": list("abcd")})
    assert ours.info["name"].tolist() == list("abcd")
    for n, (x, model) in enumerate(zip(X, theirs, strict=True)):
        assert_allclose(ours[n].score([x])[0, 0], model.score(x), rtol=1e-9)
        assert_allclose(ours[n].score([x])[0, 0], model.score(x), rtol=1e-9)


def test_a_state_of_hmmlearn_without_transitions():
    x = np.array([0, 0.1, 0.05, -0.1, 0.02, 0.04, 9.0])[:, None]
    theirs = GaussianHMM(2, random_state=0).fit(x)
    assert not theirs.transmat_.any(axis=1).all()
    ours = as_models(theirs)
    assert_allclose(ours.transmats[0], [[5 / 6, 1 / 6], [0.5, 0.5]])
    # hmmlearn itself refuses to score with a row of zeros.
    assert np.isfinite(ours.score([x])).all()


def test_models_of_hmmlearn_from_an_iterable(rng):
    theirs = [gaussian_hmm(rng, "diag") for _ in range(2)]
    ours = as_models(theirs)
    assert as_models(model for model in theirs) == ours
    assert as_models(dict(enumerate(theirs)).values()) == ours


def test_models_that_emit_symbols_and_counts(rng):
    symbols = rng.integers(3, size=(80, 1))
    theirs = CategoricalHMM(2, random_state=0).fit(symbols)
    ours = as_models(theirs)
    assert_allclose(ours.score([symbols[:, 0]])[0, 0], theirs.score(symbols))
    variational = VariationalCategoricalHMM(2, random_state=0).fit(symbols)
    ours = as_models(variational)
    assert_allclose(ours.emissionprobs[0], variational.emissionprob_)
    counts = rng.poisson([[1.0, 5.0]], size=(80, 2))
    theirs = PoissonHMM(2, random_state=0).fit(counts)
    assert_allclose(as_models(theirs).score([counts])[0, 0], theirs.score(counts))


@pytest.mark.filterwarnings("ignore")
def test_one_trial_of_a_multinomial_model_is_a_symbol(rng):
    symbols = rng.integers(3, size=60)
    theirs = MultinomialHMM(2, n_trials=1, random_state=0).fit(
        np.eye(3, dtype=int)[symbols]
    )
    score = theirs.score(np.eye(3, dtype=int)[symbols])
    assert_allclose(as_models(theirs).score([symbols])[0, 0], score, rtol=1e-9)
    theirs.n_trials = 5
    with pytest.raises(TypeError, match=r"MultinomialHMM with n_trials=5"):
        as_models([theirs])


def test_a_subclass_of_a_user_is_read(rng):
    class Mine(GaussianHMM):
        pass

    theirs = Mine(2, random_state=0).fit(rng.normal(size=(50, 2)))
    assert as_models(theirs).n_components.tolist() == [2]
