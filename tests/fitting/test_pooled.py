import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMEmbedding, HMMTransformer
from skawhmm.emissions import Gaussian

COVARIANCE_TYPES = ["diag", "full", "spherical", "tied"]
POOLED = [{"init": "pooled"}, {"prior": "pooled"}]


def two_states(rng, n_sequences=8, n_features=1):
    steps = np.repeat([0.0, 4.0], 15)[:, None]
    return [steps + rng.normal(size=(30, n_features)) for _ in range(n_sequences)]


# Sequences of another scale


@pytest.mark.parametrize("options", POOLED)
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize(
    "change",
    [
        lambda x: 1e12 * x,
        lambda x: 1e30 * x,
        lambda x: 1e5 * x,
        lambda x: x + 1e12,
        lambda x: 0 * x + 1e12,
    ],
)
def test_models_do_not_depend_on_a_sequence_of_another_scale(
    options, covariance_type, change, rng
):
    X = two_states(rng, n_features=2)
    hmm = HMMTransformer(2, covariance_type, **options, random_state=0)
    alone = hmm.fit_transform(X[:3] + X[4:])
    X[3] = change(X[3])
    with pytest.warns(UserWarning, match="sequences have values") as caught:
        models = hmm.fit_transform(X)
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 2
    assert "1 of 8 sequences" in texts[0]
    assert "left out of the pooled model; the first is X[3]." in texts[0]
    assert "the first is X[3]. Their models are " in texts[1]
    assert models[[0, 1, 2, 4, 5, 6, 7]] == alone
    assert np.isfinite(models.means).all()


def test_models_of_other_sequences_stay_as_likely_as_on_their_own(rng):
    X = two_states(rng)
    X[3] = 1e12 * X[3]
    own = HMMTransformer(2, random_state=0).fit_transform(X)
    with pytest.warns(UserWarning, match=r"X\[3\]"):
        pooled = HMMTransformer(2, init="pooled", random_state=0).fit_transform(X)
    found = pooled.info["log_likelihood"]
    assert_allclose(found, own.info["log_likelihood"], rtol=0.05)
    # The one that is left out has its own start values.
    assert pooled[3] == own[3]


@pytest.mark.parametrize("options", POOLED)
@pytest.mark.parametrize("factor", [1e-12, 1e-6, 1e6, 1e12])
def test_later_sequence_of_another_scale_is_fitted_on_its_own(factor, options, rng):
    X = two_states(rng)
    hmm = HMMTransformer(2, **options, random_state=0).fit(X[1:])
    later = [X[0], factor * X[0]]
    with pytest.warns(UserWarning, match=r"1 of 2 .* the first is X\[1\]\. .* without"):
        models = hmm.transform(later)
    assert models[0] == hmm.transform(later[:1])
    assert models[1] == HMMTransformer(2, random_state=0).fit_transform(later[1:])


@pytest.mark.parametrize("options", POOLED)
def test_loud_and_quiet_and_still_channels_are_of_one_scale(options, rng):
    X = two_states(rng, n_features=3)
    for n, x in enumerate(X):
        x[:, 0] *= 1000 if n == 0 else 1
        x[:, 1] *= n % 4 == 0
        x[:, 2] = np.where(n == 5, np.nan, x[:, 2] + 1e6 * n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HMMTransformer(2, **options, random_state=0).fit_transform(X)


def test_embeddings_do_not_depend_on_a_sequence_of_another_scale(rng):
    X = two_states(rng)
    alone = HMMEmbedding(2, random_state=0).fit(X[:3] + X[4:])
    with pytest.warns(UserWarning, match=r"left out of the reference models.* X\[3\]"):
        found = HMMEmbedding(2, random_state=0).fit([*X[:3], 1e12 * X[3], *X[4:]])
    assert_array_equal(found.transform(X), alone.transform(X))


# Log likelihoods


@pytest.mark.parametrize("options", [{}, *POOLED])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("reg_covar", [1e-4, 1e-7, 1e-9, 1e-12, 0])
def test_log_likelihood_is_that_of_score(options, covariance_type, reg_covar, rng):
    X = two_states(rng, 4, 2)
    # Collinear channels leave covariances that raw units cannot hold.
    X = [np.column_stack([x, x[:, 0], 1e3 * x[:, 1]]) for x in X]
    hmm = HMMTransformer(
        2,
        emission=Gaussian(covariance_type, reg_covar=reg_covar),
        **options,
        random_state=0,
    )
    models = hmm.fit_transform(X)
    scores = np.diagonal(models.score(X))
    assert_allclose(models.info["log_likelihood"], scores, rtol=1e-9)
    if options:
        total = hmm.pooled_model_.score(X).sum()
        assert_allclose(hmm.pooled_model_.info["log_likelihood"], total, rtol=1e-9)


# Memory


@pytest.mark.filterwarnings("ignore:X was read as:UserWarning")
@pytest.mark.parametrize(
    "options",
    [{}, *POOLED, {"covariance_type": "spherical"}, {"n_mix": 2}],
)
def test_memory_of_diagonal_fits_grows_with_the_number_of_channels(options, rng):
    n_features = 3000
    X = [rng.normal(size=(12, n_features)) for _ in range(3)]
    hmm = HMMTransformer(n_components=2, random_state=0, **options)
    tracemalloc.start()
    models = hmm.fit_transform(X)
    models.score(X)
    models.predict_proba(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Half of a single covariance matrix.
    assert peak < 8 * n_features**2 / 2


# Constant input


@pytest.mark.parametrize("options", POOLED)
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("n_components", [1, 2])
def test_constant_sequences_give_one_state_of_variance_0(
    options, covariance_type, n_components
):
    X = [np.ones((10, 2))] * 3
    hmm = HMMTransformer(n_components, covariance_type, **options, random_state=0)
    models = hmm.fit_transform(X)
    assert isinstance(models, HMMBatch)
    assert_array_equal(models.means, np.ones((3, 1, 2)))
    assert not models.covars.any()
    assert_array_equal(models.info["log_likelihood"], 0)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_collinear_channels_in_other_units_give_finite_models(rng):
    # In the coordinates of one sequence the pooled states are flat but for rounding.
    X = []
    for scale in (1e6, 1e6, 1.0, 1e6, 1e6, 1.0):
        x = rng.normal(size=(int(rng.integers(5, 12)), 1)) * 3
        X.append(np.hstack([x, scale * x]))
    for seed in range(20):
        hmm = HMMTransformer(
            3,
            emission=Gaussian("full", reg_covar=0.0),
            init="pooled",
            random_state=seed,
        )
        models = hmm.fit_transform(X)
        assert np.isfinite(models.means).all()
        assert np.isfinite(models.info["log_likelihood"]).all()
