import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    MAW,
    HMMBatch,
    HMMKMeans,
    HMMKMedoids,
    KNeighborsHMMClassifier,
    TransitionCoupling,
    hmm_barycenter,
    pairwise_hmm_distances,
)

SIZES = [3, 2, 3, 1, 3, 2]


def euclidean(x, y):
    return np.linalg.norm(x - y, axis=1)


@pytest.fixture
def gaussian(make_batch):
    """Models of unequal sizes whose states are points: variance 0."""
    models = make_batch(len(SIZES), SIZES)
    points = 0 * models.covars
    return HMMBatch(models.transmats, models.means, points, weights=models.weights)


@pytest.fixture
def called(gaussian):
    return HMMBatch.from_state_costs(
        chains_of(gaussian), euclidean, states=states_of(gaussian)
    )


def chains_of(models):
    sizes = zip(models.transmats, SIZES, strict=True)
    return [chain[:size, :size] for chain, size in sizes]


def states_of(models):
    return [means[:size] for means, size in zip(models.means, SIZES, strict=True)]


@pytest.mark.parametrize("kind", [partial(MAW, 0.4), TransitionCoupling])
@pytest.mark.parametrize("p", [1, 2])
def test_distances_are_those_of_a_family_with_the_same_costs(kind, p, gaussian, called):
    metric = kind(p=p)
    expected = pairwise_hmm_distances(gaussian, metric=metric)
    actual = pairwise_hmm_distances(called, metric=metric)
    assert_allclose(actual, expected, atol=1e-12)
    points = np.concatenate(states_of(gaussian))
    table = np.linalg.norm(points[:, None] - points, axis=2)
    looked_up = HMMBatch.from_state_costs(chains_of(gaussian), table)
    actual = pairwise_hmm_distances(looked_up, metric=metric)
    assert_allclose(actual, expected, atol=1e-12)


def test_states_may_share_an_entry_of_the_table():
    chain = [[0.9, 0.1], [0.1, 0.9]]
    table = [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]
    models = HMMBatch.from_state_costs(
        [chain] * 3, table, states=[[0, 1], [1, 0], [0, 2]]
    )
    distances = pairwise_hmm_distances(models, alpha=0)
    assert_allclose(distances[0], [0, 0, 1.5])


def test_padding_is_never_passed_to_the_cost(gaussian):
    def positive(x, y):
        assert (x > 0).all()
        assert (y > 0).all()
        return np.abs(np.log(x) - np.log(y))

    states = [np.exp(state[:, 0]) for state in states_of(gaussian)]
    models = HMMBatch.from_state_costs(chains_of(gaussian), positive, states=states)
    assert pairwise_hmm_distances(models[:2], models[3]).shape == (2, 1)


def test_result_is_an_ordinary_batch(called):
    again = pickle.loads(pickle.dumps(called))
    assert again == called
    assert HMMBatch.concatenate([called[:2], called[2:]]) == called
    assert called[0] != called[2]
    assert len(set(called.keys.tolist())) == len(called)
    assert "n_models=6, n_components=1..3" in repr(called)


def test_estimators_take_it(called):
    y = np.array(list("aabbab"))
    classifier = KNeighborsHMMClassifier(n_neighbors=1).fit(called, y)
    assert_array_equal(classifier.predict(called), y)
    medoids = HMMKMedoids(n_clusters=2).fit(called)
    assert_array_equal(medoids.predict(called), medoids.labels_)
    assert medoids.cluster_centers_ == called[medoids.medoid_indices_]


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("kl", "needs models whose states have a density, got .* 'custom'"),
        ("iaw", "states have quantiles, got .* 'custom'"),
    ],
)
def test_operations_that_need_densities_raise(metric, words, called):
    with pytest.raises(TypeError, match=words):
        pairwise_hmm_distances(called, metric=metric)


def test_operations_that_need_averages_or_files_raise(called, tmp_path):
    with pytest.raises(TypeError, match=r"defines averaged, got .*'custom'"):
        hmm_barycenter(called)
    with pytest.raises(TypeError, match=r"defines averaged, got .*'custom'"):
        HMMKMeans(2).fit(called)
    with pytest.raises(TypeError, match="cannot be saved, got states of kind 'custom'"):
        called.save(tmp_path / "models.npz")
    with pytest.raises(TypeError, match="have a counterpart in hmmlearn, got states"):
        called.to_hmmlearn(0)


def test_families_do_not_mix(called, gaussian):
    with pytest.raises(TypeError, match="one kind of states, got custom and gaussian"):
        HMMBatch.concatenate([called, gaussian])
    other = HMMBatch.from_state_costs(
        chains_of(gaussian),
        lambda x, y: 2 * euclidean(x, y),
        states=states_of(gaussian),
    )
    assert other != called
    with pytest.raises(ValueError, match=r"same cost between states.*batch 1"):
        HMMBatch.concatenate([called, other])


CHAIN = [[[0.5, 0.5], [0.5, 0.5]]]


@pytest.mark.parametrize(
    ("cost", "states", "message"),
    [
        (euclidean, None, "states must be given with a callable"),
        (euclidean, [[[0.0], [1.0], [2.0]]], r"one entry per state.*\[3\].*\[2\]"),
        (euclidean, [[[0.0], [np.nan]]], "states must be finite.*model 0"),
        (euclidean, [["a", "b"]], "states must be numeric"),
        ([[0, 1, 2], [1, 0, 2]], None, r"square array.*\(2, 3\)"),
        ([[0, 1], [2, 0]], None, "cost must be symmetric.*differ by 1"),
        ([[0, 1], [1, 3]], None, "0 between a state and itself, got 3.0 for state 1"),
        ([[0, -1], [-1, 0]], None, "not negative and .*, got -1"),
        (
            [[0, np.nan], [np.nan, 0]],
            None,
            "finite, not negative and at most 1e\\+100, got nan",
        ),
        ([[0.0]], None, "numbers from 0 to 0.*got 0 to 1"),
        ([[0, 1], [1, 0]], [[0.5, 1]], "number of each state.*float64"),
    ],
)
def test_wrong_arguments(cost, states, message):
    with pytest.raises(ValueError, match=message):
        HMMBatch.from_state_costs(CHAIN, cost, states=states)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda *_: 1.0, "one distance per pair of states"),
        (lambda x, _: np.full(len(x), -1.0), "not negative and .*, got -1.0"),
    ],
)
def test_wrong_results_of_a_callable(cost, message):
    models = HMMBatch.from_state_costs(CHAIN, cost, states=[[0.0, 1.0]])
    with pytest.raises(ValueError, match=message):
        pairwise_hmm_distances(models)
