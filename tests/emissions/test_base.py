"""A family of its own, written here with public names only."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import expon, gamma
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import skawhmm
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
from skawhmm.emissions import Emission, Gaussian, SimpleEmission


class Exponential(SimpleEmission):
    """Waiting times in one or more channels: states with a mean for each."""

    name = "exponential"
    parameter_names = ("scales",)

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

    def cross(self, index_a, index_b):
        gaps = self.scales[index_a][:, :, None] - self.scales[index_b][:, None]
        return 2 * (gaps**2).sum(axis=3)

    def divergences(self, index_a, index_b):
        ratio = self.scales[index_a][:, :, None] / self.scales[index_b][:, None]
        return (ratio - 1 - np.log(ratio)).sum(axis=3)


class Gamma(Exponential):
    """Waiting times with an option: the shape, which all states share."""

    name = "gamma"

    def __init__(self, shape=1.0):
        self.shape = shape

    def check_options(self):
        if self.shape <= 0:
            raise ValueError(f"shape must be positive, got {self.shape}.")

    def log_densities(self, frames, states):
        scales = states[0][:, None] / self.shape
        return gamma.logpdf(frames, self.shape, scale=scales).sum(axis=2)


def given(scales, transmats=((1.0,),), emission=None):
    """Return models with given scales, by the public way."""
    arrays = {"transmats": [transmats], "scales": [scales]}
    return HMMBatch.from_arrays(arrays, emission=emission or Exponential())


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
    return HMMTransformer(2, emission=Exponential(), random_state=0, **params).fit(X)


def test_the_class_is_as_short_as_the_contract_promises():
    import inspect

    assert len(inspect.getsource(Exponential).splitlines()) <= 45


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
        {"n_components": "bic"},
        {"weights": "uniform"},
    ],
)
def test_every_way_of_fitting_knows_the_family(sequences, params):
    X, _ = sequences
    models = fitted(X).set_params(**params).fit_transform(X)
    assert len(models) == len(X)
    assert np.isfinite(models.info["log_likelihood"]).all()


def test_likelihood_of_one_state_is_that_of_scipy(rng):
    models = given([[3.0]])
    x = rng.exponential(3.0, size=(50, 1))
    assert_allclose(models.score([x])[0, 0], expon(scale=3.0).logpdf(x).sum())


def test_samples_decode_to_their_paths(sequences):
    models = given([[0.01], [100.0]], [[0.98, 0.02], [0.02, 0.98]])
    (x,), (path,) = models.sample(200, random_state=0)
    (found,), _ = models.decode([x])
    assert_array_equal(found, path)
    assert_allclose(models.predict_proba([x])[0].sum(axis=1), 1)


def test_distances_worked_by_hand():
    a, b = given([[1.0]]), given([[3.0]])
    assert_allclose(hmm_distance(a, b, alpha=0), np.sqrt(2) * 2)
    rates = [hmm_distance(a, b, KL(method=m)) for m in ("variational", "monte_carlo")]
    # Both directions, averaged: (1/3 - 1 + log 3 + 3 - 1 - log 3) / 2.
    assert_allclose(rates[0], 2 / 3)
    assert_allclose(rates[1], 2 / 3, rtol=0.1)


def test_models_are_saved_classified_and_clustered(sequences, tmp_path):
    X, y = sequences
    models = fitted(X).transform(X)
    models.save(tmp_path / "models.npz")
    loaded = HMMBatch.load(tmp_path / "models.npz", emission=Exponential())
    assert loaded == models
    with pytest.raises(ValueError, match=r"got 'exponential'.*emission="):
        HMMBatch.load(tmp_path / "models.npz")
    with pytest.raises(ValueError, match=r"emission must be of the kind .* got Gamma"):
        HMMBatch.load(tmp_path / "models.npz", emission=Gamma())
    both = pairwise_hmm_distances(models), pairwise_hmm_distances(loaded)
    assert_array_equal(*both)
    assert adjusted_rand_score(y, HMMKMedoids(2).fit(models).labels_) == 1
    assert KNeighborsHMMClassifier(3).fit(models, y).score(models, y) == 1
    mixed = HMMBatch.concatenate([models[:3], models[5:]])
    assert mixed[3].emission.scales == pytest.approx(models[5].emission.scales)


def test_missing_methods_of_a_family_are_explained(sequences):
    models = fitted(sequences[0]).transform(sequences[0])
    with pytest.raises(TypeError, match=r"defines averaged, got .*'exponential'"):
        hmm_barycenter(models)
    with pytest.raises(TypeError, match=r"states have quantiles.*'exponential'"):
        pairwise_hmm_distances(models, metric="iaw")
    with pytest.raises(TypeError, match="have a counterpart in hmmlearn"):
        models.to_hmmlearn(0)
    with pytest.raises(AttributeError, match="'exponential' have no means"):
        _ = models.means


def test_options_are_parameters_as_scikit_learn_knows_them(sequences):
    X, y = sequences
    assert repr(Gamma(2.0)) == "Gamma(shape=2.0)"
    hmm = HMMTransformer(2, emission=Gamma(2.0), random_state=0)
    assert clone(hmm).get_params()["emission__shape"] == 2.0
    knn = Pipeline([("hmm", hmm), ("knn", KNeighborsHMMClassifier(1))])
    search = GridSearchCV(knn, {"hmm__emission__shape": [0.5, 1.0, 4.0]}, cv=2)
    assert search.fit(X, y).best_score_ == 1
    scores = search.cv_results_["param_hmm__emission__shape"]
    assert scores.tolist() == [0.5, 1.0, 4.0]
    hmm.fit(X).set_params(emission__shape=3.0)
    with pytest.raises(ValueError, match="emission__shape must be as it was in fit"):
        hmm.transform(X)
    with pytest.raises(ValueError, match="shape must be positive, got -1"):
        hmm.set_params(emission__shape=-1).fit(X)


def test_models_keep_the_options_of_their_family(sequences):
    X, _ = sequences
    models = HMMTransformer(2, emission=Gamma(2.0), random_state=0).fit_transform(X)
    for found in (
        models[3:],
        copy.deepcopy(models),
        pickle.loads(pickle.dumps(models)),
        HMMBatch.concatenate([models[:2], models[2:]]),
    ):
        assert found.emission.shape == 2.0
        assert clone(found.emission).get_params() == {"shape": 2.0}
    x, one = X[0], given([[3.0]], emission=Gamma(2.0))
    wanted = gamma.logpdf(x, 2.0, scale=1.5).sum()
    assert_allclose(one.score([x])[0, 0], wanted)
    other = given([[3.0]], emission=Gamma(1.0))
    assert one != other
    assert one.keys[0] != other.keys[0]
    with pytest.raises(ValueError, match=r"got Gamma\(shape=2.0\) in batch 0"):
        HMMBatch.concatenate([one, other])


def test_missing_values_are_an_error_unless_a_family_accepts_them(sequences):
    X, _ = sequences
    gappy = [np.where(np.arange(len(X[0])) == 7, np.nan, X[0][:, 0])[:, None]]
    with pytest.raises(ValueError, match=r"Exponential\(\) needs .* got 1 NaN"):
        fitted(X).transform(gappy)
    with pytest.raises(ValueError, match=r"Exponential\(\) needs .* got 1 NaN"):
        given([[3.0]]).score(gappy)


def test_a_template_is_not_changed_by_a_fit(sequences):
    template = Gaussian("spherical", reg_covar=0.5)
    before = dict(vars(template))
    models = HMMTransformer(2, emission=template, random_state=0).fit_transform(
        sequences[0]
    )
    assert vars(template) == before
    short = HMMTransformer(2, "spherical", random_state=0).fit_transform(sequences[0])
    assert models.covariance_type == short.covariance_type == "diag"
    assert models.emission.reg_covar == 0.5
    assert (models.covars.min(axis=(1, 2)) > short.covars.min(axis=(1, 2))).all()


def test_arrays_of_a_family_are_known_by_their_names():
    with pytest.raises(ValueError, match=r"one of \['scales'\], got .*'transmats'"):
        HMMBatch.from_arrays({"transmats": [[1.0]]}, emission=Exponential())
    with pytest.raises(ValueError, match=r"known names.*'periods'"):
        HMMBatch.from_arrays({"transmats": [[1.0]], "periods": [[1.0]]})
    with pytest.raises(TypeError, match=r"emission must .* Exponential\(\)"):
        HMMBatch.from_arrays({"transmats": [[1.0]]}, emission=Exponential)


def test_a_family_without_distances_between_states_cannot_be_made():
    class Nothing(Emission):
        name = "nothing"
        parameter_names = ("values",)

    with pytest.raises(TypeError, match=r"abstract method '?cross"):
        Nothing()


TYPED = """
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skawhmm import HMMTransformer
from skawhmm.emissions import SimpleEmission

Array = NDArray[Any]
States = tuple[Array, ...]


class Exponential(SimpleEmission):
    name = "exponential"
    parameter_names = ("scales",)
    scales: Array

    def log_densities(self, frames: Array, states: States) -> Array:
        return -np.log(states[0]) - frames.T / states[0]

    def statistics(self, frames: Array, post: Array, states: States) -> States:
        return post @ frames, post.sum(axis=1, keepdims=True)

    def update(
        self, statistics: States, states: States, prior: States, relevance: float
    ) -> States:
        return (statistics[0] / statistics[1],)

    def log_prior(self, states: States, prior: States) -> float:
        return 0.0

    def random_states(
        self, frames: Array, n_states: int, rng: np.random.Generator
    ) -> States:
        return (frames.mean() * rng.uniform(0.3, 3, (n_states, 1)),)

    def common_states(self, frames: Array) -> States:
        return (frames.mean(axis=0, keepdims=True),)

    def cross(self, index_a: Array, index_b: Array) -> Array:
        return (self.scales[index_a] - self.scales[index_b].swapaxes(1, 2)) ** 2


HMMTransformer(2, emission=Exponential())
"""
CROSS = TYPED[TYPED.index("    def cross") : TYPED.index("\n\nHMM")]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ((), None),
        ((CROSS, ""), 'abstract attribute "cross"'),
        (("index_a: Array, index_b: Array", "index: Array"), '"cross" incompatible'),
        (
            ("-> float:\n        return 0.0", "-> str:\n        return ''"),
            '"log_prior"',
        ),
        (("emission=Exponential()", "emission=Exponential"), '"emission"'),
    ],
)
def test_mypy_checks_a_family_of_a_user(change, complaint, tmp_path):
    pytest.importorskip("mypy")
    source = TYPED.replace(*change) if change else TYPED
    assert (source == TYPED) == (not change)
    (tmp_path / "family.py").write_text(source)
    settings = "[mypy]\nfollow_imports = silent\nignore_missing_imports = True\n"
    (tmp_path / "mypy.ini").write_text(settings)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=mypy.ini"]
    found = subprocess.run(
        [*command, f"--cache-dir={tmp_path}", "family.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(skawhmm.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == (complaint is not None), found.stdout + found.stderr
    assert (complaint or "Success") in found.stdout
