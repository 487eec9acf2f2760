"""Units of several trials in everything that takes sequences."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score

from skawhmm import (
    KL,
    HMMBatch,
    HMMEmbedding,
    HMMKMeans,
    HMMNoveltyDetector,
    HMMTransformer,
    KNeighborsHMMClassifier,
    Trials,
    dynamics_gain,
    make_classifier,
    make_regressor,
    pairwise_hmm_distances,
)
from skawhmm.classification._dynamics import permuted
from skawhmm.features import HMMClassDistance, NGrams
from skawhmm.groups import distance_interval, stability_curve
from skawhmm.plot import HMMMapDisplay, SequenceDisplay
from skawhmm.sequences._trials import unit_frames
from skawhmm.utils._digest import content_digest

HMM = HMMTransformer(2, random_state=0, keep_sequences=True)


def units(n_units=12, *, kind="numbers", seed=0):
    """Units whose trials change state often or rarely, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_units) % 2
    X = []
    for label in y:
        trials = []
        for length in rng.integers(8, 20, 5):
            path = np.cumsum(rng.random(length) < (0.7 if label else 0.1)) % 2
            if kind == "texts":
                trials.append("".join("ab"[k] for k in path))
            elif kind == "counts":
                trials.append(rng.poisson(1 + 6 * path[:, None]))
            else:
                trials.append(4.0 * path[:, None] + rng.normal(size=(length, 2)))
        X.append(Trials(trials))
    return X, y


def flat(X):
    return [recording for x in X for recording in x]


@pytest.mark.parametrize(
    ("emission", "kind"),
    [("gaussian", "numbers"), ("categorical", "texts"), ("poisson", "counts")],
)
def test_embedding_adds_the_statistics_of_trials(emission, kind):
    X, _ = units(kind=kind)
    embedding = HMMEmbedding(
        3, emission=emission, blocks=["transitions"], normalize=False, random_state=0
    )
    vectors = embedding.fit(X).transform(X)
    assert len(vectors) == len(X)
    # References are learned from all recordings.
    each = HMMEmbedding(**embedding.get_params()).fit(flat(X)).transform(flat(X))
    steps = np.array([[len(r) - 1 for r in x] for x in X])
    parts = (each**2).reshape(len(X), 5, -1)
    expected = np.einsum("ut,utv->uv", steps, parts) / steps.sum(axis=1, keepdims=True)
    assert_allclose(vectors**2, expected, atol=1e-12)


@pytest.mark.parametrize("emission", ["gaussian", "categorical"])
def test_embedding_of_one_trial_is_that_of_the_sequence(emission):
    X, _ = units(kind="texts" if emission == "categorical" else "numbers")
    plain = flat(X)
    embedding = HMMEmbedding(3, emission=emission, random_state=0)
    expected = embedding.fit(plain).transform(plain)
    alone = [Trials([x]) for x in plain]
    assert_array_equal(embedding.fit(alone).transform(alone), expected)


def test_n_grams_do_not_cross_boundaries():
    roots = NGrams(order=2, sparse_output=False).fit([Trials(["ab", "ba"]), "abb"])
    names = roots.get_feature_names_out().tolist()
    assert names == ["a|b", "b|a", "b|b"]
    found = roots.transform([Trials(["ab", "b", "ba"]), Trials(["bb", "bb", "ab"])])
    # "ab" and "ba" once each, though "bb" lies across two boundaries of the first.
    assert_allclose(found**2, [[0.5, 0.5, 0], [1 / 3, 0, 2 / 3]])


def test_divergence_on_the_data_is_the_mean_over_all_frames():
    X, _ = units(4)
    models = HMM.fit_transform(X)
    found = pairwise_hmm_distances(models, metric=KL(method="data", symmetric=False))
    # The scores of `KL` start in the state probabilities.
    judges = models._changed(startprobs=models.weights)
    scores = judges.score(X)
    n_frames = [sum(map(len, x)) for x in X]
    own = np.diagonal(scores)[:, None]
    assert_allclose(found, np.maximum(own - scores, 0) / np.array(n_frames)[:, None])


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_classifiers_and_regressors(kind):
    X, y = units(24, kind=kind)
    emission = "categorical" if kind == "texts" else "gaussian"
    classifier = make_classifier(emission, random_state=0)
    assert cross_val_score(classifier, X, y, cv=3).mean() > 0.9
    regressor = make_regressor(emission, random_state=0).fit(X, y.astype(float))
    assert np.corrcoef(regressor.predict(X), y)[0, 1] > 0.9


def test_estimators_that_compare_models_take_units():
    X, y = units(16)
    assert (
        KNeighborsHMMClassifier(1, hmm=HMM).fit(X[:12], y[:12]).score(X[12:], y[12:])
        == 1
    )
    labels = HMMKMeans(2, hmm=HMM, random_state=0).fit(X).labels_
    assert len(labels) == 16
    detector = HMMNoveltyDetector(1, hmm=HMM, false_alarm_rate=0.2).fit(X[::2])
    assert len(detector.predict(X[1::2])) == 8
    # A training unit is recognised by its recordings.
    assert_allclose(detector.pvalues(X[:1]), detector.pvalues()[:1])
    features = HMMClassDistance(hmm=HMM, groups=[[0], [0, 1]]).fit(X, y).transform(X)
    assert features.shape == (16, 4)


def test_gain_is_that_of_the_order_of_all_frames_of_a_unit():
    X, y = units(24)
    gain = dynamics_gain(X, y, n_permutations=2, cv=3, random_state=0)
    assert gain.gain > 0.2
    words, y = units(24, kind="texts")
    assert dynamics_gain(words, y, n_permutations=2, cv=3, random_state=0).gain > 0.1
    unit = [X[0]]
    (again,) = permuted(unit, 0, 1)
    assert [len(trial) for trial in again] == [len(trial) for trial in X[0]]
    before, after = unit_frames([X[0], again])
    assert_array_equal(np.sort(before, axis=0), np.sort(after, axis=0))
    assert not np.array_equal(before, after)
    with pytest.raises(ValueError, match="at least 2 frames"):
        dynamics_gain([Trials([x[:1] for x in unit]) for unit in X], y)


def test_intervals_resample_trials():
    X, _ = units(2)
    models = HMM.fit_transform(X)
    bare = HMMTransformer(2, random_state=0).fit_transform(X)
    options = {"n_resamples": 20, "random_state": 0}
    found = [
        distance_interval(batch[0], batch[1], method=method, **options)
        for batch, method in (
            (models, "parametric"),
            (models, "block"),
            (bare, "parametric"),
        )
    ]
    for interval in found:
        assert interval.low < interval.high
        assert len({*interval.replicates}) == 20
    with pytest.raises(ValueError, match=r"block_length.*several trials"):
        distance_interval(models[0], models[1], method="block", block_length=3)


def test_resampled_trials_are_trials_of_the_unit():
    X, _ = units(2)
    seen = []

    class Recording(HMMTransformer):
        def fit_transform(self, X, y=None):
            seen.append(X)
            return super().fit_transform(X, y)

    models = HMM.fit_transform(X)
    distance_interval(
        models[0],
        models[1],
        method="block",
        n_resamples=5,
        hmm=Recording(2, random_state=0),
        random_state=0,
    )
    assert [len(drawn) for drawn in seen] == [5, 5]
    for x, drawn in zip(X, seen, strict=True):
        own = {recording.tobytes() for recording in x}
        for trials in drawn:
            assert len(trials) == 5
            assert {recording.tobytes() for recording in trials} <= own


def test_stability_of_units():
    X, _ = units(6)
    curve = stability_curve(X, n_components=(1, 2), random_state=0)
    assert curve.halves.shape == (2, 6)
    assert_allclose(curve.restarts[0], 1)


def test_pictures_of_units():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = units(6)
    models = HMM.fit_transform(X)
    with pytest.raises(TypeError, match="Trials of 5"):
        SequenceDisplay.from_model(models[0])
    with pytest.raises(TypeError, match="Trials of 5"):
        SequenceDisplay.from_model(models[0], X[0])
    display = SequenceDisplay.from_model(models[0], X[0].recordings[2])
    assert len(display.path) == len(X[0].recordings[2])
    plt.close("all")
    assert HMMMapDisplay.from_models(models, y=y) is not None
    plt.close("all")


def test_content_of_trials_is_known():
    X, _ = units(2)
    again, _ = units(2)
    assert content_digest(X[0]) == content_digest(again[0])
    assert content_digest(X[0]) != content_digest(X[1])
    both = Trials([np.concatenate(X[0].recordings)])
    assert content_digest(both) != content_digest(X[0])


def test_carried_trials_are_saved_as_models_are(tmp_path):
    models = HMM.fit_transform(units(3)[0])
    models.save(tmp_path / "models.npz")
    again = HMMBatch.load(tmp_path / "models.npz")
    assert_array_equal(again.info["n_trials"], 5)
    assert again.sequences is None


def test_messages_inside_estimators_name_unit_and_trial():
    X, y = units(4)
    X[2] = Trials([*X[2].recordings[:3], np.full((2, 2), np.inf)])
    for estimator in (HMMEmbedding(2), make_classifier(), KNeighborsHMMClassifier(1)):
        with pytest.raises(ValueError, match=re.escape("trial 3 of X[2]")):
            estimator.fit(X, y)
