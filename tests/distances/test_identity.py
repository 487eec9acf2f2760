"""Registration by index, of models that share their states."""

import numpy as np
import ot
import pytest
from helpers import random_model, squared_hellinger
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    JAW,
    MAW,
    HMMBatch,
    HMMRetriever,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)
from skawhmm.fitting import MarkovChainTransformer

seeds = st.integers(0, 2**32 - 1)
distances = st.builds(
    JAW,
    alpha=st.just(0.4),
    p=st.sampled_from([1, 1.5, 2]),
    rows=st.sampled_from(["transport", "hellinger"]),
    registration=st.just("identity"),
)


def random_batch(seed, n_models=2, n_components=3):
    rng = np.random.default_rng(seed)
    models = [random_model(rng, n_components, 2, "diag") for _ in range(n_models)]
    return HMMBatch(*zip(*models, strict=True))


@given(seeds, distances)
def test_rows_are_compared_index_by_index(seed, distance):
    models = random_batch(seed)
    _, transition = pairwise_hmm_components(models, metric=distance)
    total = 0.0
    for n in range(2):
        points = np.hstack([models.means[n], np.sqrt(models.covars[n])])
        cost = ot.dist(points, points, "euclidean") ** distance.p
        for i in range(3):
            rows = models.transmats[n, i], models.transmats[1 - n, i]
            if distance.rows == "hellinger":
                gap = squared_hellinger(*rows)
            else:
                gap = ot.emd2(*rows, cost)
            total += models.weights[n, i] * gap
    assert_allclose(transition[0, 1], total ** (1 / distance.p), rtol=1e-9)


@given(seeds, distances)
def test_marginal_component_matches_transport(seed, distance):
    models = random_batch(seed)
    marginal, _ = pairwise_hmm_components(models, metric=distance)
    expected, _ = pairwise_hmm_components(models, metric=MAW(p=distance.p))
    assert_array_equal(marginal, expected)


@given(seeds, distances)
def test_common_relabelling_does_not_matter(seed, distance):
    models = random_batch(seed)
    expected = hmm_distance(models[0], models[1], distance)
    params = {"rows": distance.rows, "registration": "identity"}
    # Their steps differ, which has no effect here.
    maw = MAW(distance.alpha, distance.p, **params)
    assert_allclose(hmm_distance(models[0], models[1], maw), expected, rtol=1e-12)
    assert hmm_distance(models[1], models[0], distance) == expected
    order = [2, 0, 1]
    moved = HMMBatch(
        models.transmats[:, order][:, :, order],
        models.means[:, order],
        models.covars[:, order],
    )
    assert_allclose(hmm_distance(moved[0], moved[1], distance), expected, rtol=1e-9)


@pytest.mark.parametrize(("kind", "steps"), [(MAW, "joint"), (JAW, "independent")])
def test_steps_without_effect_are_rejected(kind, steps):
    with pytest.raises(ValueError, match=r"steps must be .*registration='identity'"):
        kind(steps=steps, registration="identity")


def test_equal_rows_have_no_distance_whatever_their_weights():
    # Stays of .9 in both, with other weights: nothing is blurred.
    rows = [[0.9, 0.1], [0.1, 0.9]]
    models = HMMBatch.from_emissionprobs(
        [rows, rows], [np.eye(2)] * 2, weights=[[0.5, 0.5], [0.8, 0.2]]
    )
    marginal, transition = pairwise_hmm_components(
        models, metric="maw", metric_params={"registration": "identity"}
    )
    assert_allclose(marginal[0, 1], 0.3)
    assert transition[0, 1] == 0
    _, blurred = pairwise_hmm_components(models, metric="maw")
    assert blurred[0, 1] > 0.1


def test_rows_of_two_texts_by_hand():
    # Total variation of the rows: 1/2 for "a" (a a b against a b a b), 0 for "b".
    models = HMMBatch.from_emissionprobs(
        [[[0.5, 0.5], [1, 0]], [[0, 1], [1, 0]]],
        [np.eye(2)] * 2,
        weights=[[0.6, 0.4], [0.5, 0.5]],
    )
    _, transition = pairwise_hmm_components(models, metric=MAW(registration="identity"))
    assert_allclose(transition[0, 1], 0.6 * 0.5 + 0.5 * 0.5)


def test_steps_to_states_without_weight_count():
    # Rows of "a": (0, 1) against (1/2, 1/2), although the second never is in "b".
    models = HMMBatch.from_emissionprobs(
        [[[0, 1], [1, 0]], [[0.5, 0.5], [1, 0]]],
        [np.eye(2)] * 2,
        weights=[[0.5, 0.5], [1, 0]],
    )
    _, transition = pairwise_hmm_components(models, metric=MAW(registration="identity"))
    assert_allclose(transition[0, 1], 0.5 * 0.5 + 1 * 0.5)


def test_registration_is_the_diagonal():
    models = random_batch(0)
    plan = register_states(
        models[0], models[1], "maw", metric_params={"registration": "identity"}
    )
    assert_allclose(plan, np.diag(models.weights.mean(axis=0)))


def test_texts_with_one_alphabet():
    X = ["aabbaabb", "abababab", "aabbaab", "babababa"]
    hmm = MarkovChainTransformer(prior="pooled")
    models = hmm.fit_transform(X)
    metric = JAW(1.0, rows="hellinger", registration="identity")
    near = pairwise_hmm_distances(models, metric=metric) + 9 * np.eye(4)
    assert near.argmin(axis=1).tolist() == [2, 3, 0, 1]


def test_search_by_index_rejects_pruning_and_finds_the_nearest(make_batch):
    models = make_batch(40)
    search = HMMRetriever(
        2, metric="jaw", metric_params={"registration": "identity"}, algorithm="pruned"
    )
    with pytest.raises(ValueError, match="pruned"):
        search.fit(models)
    search.set_params(algorithm="auto").fit(models)
    matrix = pairwise_hmm_distances(models, metric=JAW(registration="identity"))
    matrix[np.diag_indices(40)] = np.inf
    assert_array_equal(search.kneighbors()[1][:, 0], matrix.argmin(axis=1))


@pytest.mark.parametrize("kind", [MAW, JAW])
def test_wrong_registrations(kind, make_batch):
    with pytest.raises(
        ValueError, match="registration must be one of 'transport', 'id"
    ):
        kind(registration="number")
    metric = kind(registration="identity")
    with pytest.raises(
        ValueError,
        match="registration='identity' needs models with the same number of states, "
        "got 2 and 3",
    ):
        pairwise_hmm_distances(make_batch(3, [2, 2, 3]), metric=metric)
    retriever = HMMRetriever(1, metric=metric).fit(make_batch(3, 2))
    with pytest.raises(ValueError, match="the same number of states"):
        retriever.kneighbors(make_batch(3, 3))
