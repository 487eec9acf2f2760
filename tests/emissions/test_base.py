"""A family of its own, written here: the contract is all that the library asks for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import expon
from sklearn.metrics import adjusted_rand_score

from skawhmm import (
    KL,
    HMMBatch,
    HMMKMedoids,
    HMMTransformer,
    KNeighborsHMMClassifier,
    hmm_barycenter,
    hmm_distance,
    pairwise_hmm_distances,
)
from skawhmm.emissions._registry import FAMILIES
from skawhmm.emissions._simple import PlainEmission
from skawhmm.sequences._checks import check_sequences


class Exponential(PlainEmission):
    """Waiting times in one or more channels: states with a mean for each."""

    name = "exponential"
    parameter_names = ("scales",)

    @property
    def n_features(self):
        return self.scales.shape[2]

    @classmethod
    def blank(cls, sequences, options):
        checked = check_sequences(sequences, caller=type(options).__name__)
        return cls(np.zeros((1, 1, checked[0].shape[1]))), checked

    def checked(self, X, caller):
        return check_sequences(X, n_features=self.n_features, caller=caller)

    def drawn(self, i, path, rng):
        return rng.exponential(self.scales[i][path])

    def log_densities(self, frames, states):
        (scales,) = states
        return -np.log(scales).sum(axis=1)[:, None] - (1 / scales) @ frames.T

    def statistics(self, frames, post, states):
        return post @ frames, post.sum(axis=1)

    def update(self, statistics, states, prior, relevance):
        sums, counts = statistics
        totals = (counts + relevance + 1e-9)[:, None]
        return ((sums + relevance * prior[0]) / totals,)

    def log_prior(self, states, prior):
        return -np.sum(np.log(states[0]) + prior[0] / states[0])

    def random_states(self, frames, n_states, rng):
        return (frames.mean(axis=0) * rng.uniform(0.3, 3, (n_states, 1)),)

    def common_states(self, frames):
        return (frames.mean(axis=0, keepdims=True),)

    def varied(self, frames):
        return np.ptp(frames, axis=0).any()

    def n_free(self, frames):
        return frames.shape[1]

    def cross(self, index_a, index_b):
        gaps = self.scales[index_a][:, :, None] - self.scales[index_b][:, None]
        return 2 * (gaps**2).sum(axis=3)

    def divergences(self, index_a, index_b):
        ratio = self.scales[index_a][:, :, None] / self.scales[index_b][:, None]
        return (ratio - 1 - np.log(ratio)).sum(axis=3)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(FAMILIES, "exponential", Exponential)


@pytest.fixture
def sequences():
    """Sequences of two kinds: waiting times of 1 and 20, or of 5 and 8, in turn."""
    rng = np.random.default_rng(0)
    X, y = [], np.arange(12) % 2
    for label in y:
        states = np.cumsum(rng.random(300) < 0.05) % 2
        scales = np.array([[1.0, 20.0], [5.0, 8.0]])[label]
        X.append(rng.exponential(scales[states])[:, None])
    return X, y


def fitted(X, **params):
    return HMMTransformer(2, emission="exponential", random_state=0, **params).fit(X)


def test_the_class_is_as_short_as_the_contract_promises():
    import inspect

    assert len(inspect.getsource(Exponential).splitlines()) <= 60


def test_fits_find_the_states(sequences):
    models = fitted(sequences[0]).transform(sequences[0])
    scales = np.sort(models.emission.scales[::2], axis=1).mean(axis=0)
    assert_allclose(scales.ravel(), [1, 20], rtol=0.1)
    assert models.info["converged"].all()
    assert "exponential" in repr(models)


@pytest.mark.parametrize(
    "params",
    [
        {"prior": "pooled"},
        {"init": "pooled"},
        {"topology": "left-to-right"},
        {"n_components": "bic", "max_components": 3},
        {"weights": "uniform"},
    ],
)
def test_every_way_of_fitting_knows_the_family(sequences, params):
    X, _ = sequences
    models = fitted(X).set_params(**params).fit_transform(X)
    assert len(models) == len(X)
    assert np.isfinite(models.info["log_likelihood"]).all()


def test_likelihood_of_one_state_is_that_of_scipy(rng):
    models = HMMBatch._of(Exponential, [[[1.0]]], {"scales": [[[3.0]]]})
    x = rng.exponential(3.0, size=(50, 1))
    assert_allclose(models.score([x])[0, 0], expon(scale=3.0).logpdf(x).sum())


def test_samples_decode_to_their_paths(sequences):
    models = HMMBatch._of(
        Exponential, [[[0.98, 0.02], [0.02, 0.98]]], {"scales": [[[0.01], [100.0]]]}
    )
    (x,), (path,) = models.sample(200, random_state=0)
    (found,), _ = models.decode([x])
    assert_array_equal(found, path)
    assert_allclose(models.predict_proba([x])[0].sum(axis=1), 1)


def test_distances_worked_by_hand():
    a, b = (
        HMMBatch._of(Exponential, [[[1.0]]], {"scales": [[[s]]]}) for s in (1.0, 3.0)
    )
    assert_allclose(hmm_distance(a, b, alpha=0), np.sqrt(2) * 2)
    rates = [hmm_distance(a, b, KL(method=m)) for m in ("variational", "monte_carlo")]
    # Both directions, averaged: (1/3 - 1 + log 3 + 3 - 1 - log 3) / 2.
    assert_allclose(rates[0], 2 / 3)
    assert_allclose(rates[1], 2 / 3, rtol=0.1)


def test_models_are_saved_classified_and_clustered(sequences, tmp_path):
    X, y = sequences
    models = fitted(X).transform(X)
    models.save(tmp_path / "models.npz")
    loaded = HMMBatch.load(tmp_path / "models.npz")
    assert loaded == models
    both = pairwise_hmm_distances(models), pairwise_hmm_distances(loaded)
    assert_array_equal(*both)
    assert adjusted_rand_score(y, HMMKMedoids(2).fit(models).labels_) == 1
    assert KNeighborsHMMClassifier(3).fit(models, y).score(models, y) == 1
    mixed = HMMBatch.concatenate([models[:3], models[5:]])
    assert mixed[3].emission.scales == pytest.approx(models[5].emission.scales)


def test_what_the_family_lacks_is_said_in_words(sequences):
    models = fitted(sequences[0]).transform(sequences[0])
    with pytest.raises(TypeError, match="Averages need models with Gaussian states"):
        hmm_barycenter(models)
    with pytest.raises(TypeError, match="IAW needs models with Gaussian states"):
        pairwise_hmm_distances(models, metric="iaw")
    with pytest.raises(TypeError, match="have a counterpart in hmmlearn"):
        models.to_hmmlearn(0)
    with pytest.raises(AttributeError, match="'exponential' have no means"):
        _ = models.means
