from itertools import permutations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMTransformer, hmm_barycenter
from skawhmm.groups import HMMAligner
from skawhmm.groups._alignment import matched_states


def relabelled(models, seed=0):
    """Return the models with the states of each in an order of its own."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(size) for size in models.n_components]
    parts = {
        name: [
            getattr(models, name)[n][order]
            if name != "transmats"
            else models.transmats[n][np.ix_(order, order)]
            for n, order in enumerate(orders)
        ]
        for name in ("transmats", "means", "covars", "weights", "startprobs")
    }
    return HMMBatch(**parts, info=dict(models.info), observed=models.observed)


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
@pytest.mark.parametrize("n_components", [3, [2, 3, 4, 5, 3, 2]])
def test_aligned_models_of_a_relabelled_batch_are_the_same(
    covariance_type, n_components, make_batch
):
    models = make_batch(6, n_components, covariance_type=covariance_type)
    aligner = HMMAligner(reference=models[1]).fit(models)
    one, two = aligner.align(models), aligner.align(relabelled(models))
    for name in ("transmats", "means", "covars", "weights", "startprobs"):
        assert_allclose(getattr(one.models, name), getattr(two.models, name))
    assert_allclose(one.distances, two.distances)
    assert_allclose(one.unmatched_mass, two.unmatched_mass)
    assert_allclose(one.plans.sum(axis=1), one.models.weights)


def test_equally_many_states_are_put_in_order(make_batch):
    # All models are one model up to noise much smaller than the gaps between states.
    base = make_batch(1, 4)
    means = base.means[[0] * 5] + 1e-3 * np.arange(5)[:, None, None]
    models = HMMBatch(base.transmats[[0] * 5], means, base.covars[[0] * 5])
    mixed = relabelled(models, seed=3)
    aligned = HMMAligner(reference=base).fit_transform(mixed)
    for name in ("transmats", "means", "covars", "weights"):
        assert_allclose(getattr(aligned, name), getattr(models, name), atol=1e-12)


@pytest.mark.parametrize(("n_states", "n_targets"), product([1, 2, 3, 4], [1, 2, 3]))
def test_the_matching_is_the_best_of_all(n_states, n_targets, rng):
    cost, weights = rng.random((n_states, n_targets)), rng.dirichlet(np.ones(n_states))
    found = matched_states(cost, weights, np.zeros_like(cost))
    if n_states <= n_targets:
        choices = permutations(range(n_targets), n_states)
    else:
        choices = (
            choice
            for choice in product(range(n_targets), repeat=n_states)
            if len(set(choice)) == n_targets
        )
    best = min(
        choices, key=lambda choice: np.sum(weights * cost[range(n_states), choice])
    )
    assert_array_equal(found, best)


def test_a_state_keeps_its_meaning_where_transport_splits_it():
    # The model is mostly in its first state; transport would give much of it to the
    # second and third state of the reference.
    reference = HMMBatch(
        [np.full((3, 3), 1 / 3)], [[[0.0], [5.0], [10.0]]], [[[1.0]] * 3]
    )
    model = HMMBatch([[[0.9, 0.1], [0.9, 0.1]]], [[[10.0], [0.0]]], [[[1.0]] * 2])
    alignment = HMMAligner(reference=reference).fit(model).align(model)
    assert_allclose(alignment.models.weights, [[0.1, 0, 0.9]])
    assert_allclose(alignment.plans[0], [[0, 0, 0.9], [0.1, 0, 0]])
    assert_allclose(alignment.missing_mass, [1 / 3])
    assert_allclose(alignment.distances, [[0, np.nan, 0]])
    # The state that is missing is that of the reference, and out of reach.
    assert_allclose(alignment.models.means[0, 1], 5)
    assert_allclose(
        alignment.models.transmats[0], [[0.1, 0, 0.9], [0, 1, 0], [0.1, 0, 0.9]]
    )


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_merged_states_keep_mass_flow_and_moments(covariance_type, make_batch):
    models = make_batch(5, 6, covariance_type=covariance_type)
    reference = make_batch(1, 2, covariance_type=covariance_type, seed=9)
    aligned = HMMAligner(reference=reference).fit_transform(models)
    flow = np.einsum("nk,nkl->nl", aligned.weights, aligned.transmats)
    assert_allclose(flow, aligned.weights)
    assert_allclose(aligned.transmats.sum(axis=2), 1)

    def moments(batch):
        covars = batch.emission.full_covars()
        second = covars + batch.means[..., None] * batch.means[..., None, :]
        return (
            np.einsum("nk,nkc->nc", batch.weights, batch.means),
            np.einsum("nk,nkcd->ncd", batch.weights, second),
        )

    first, second = zip(moments(aligned), moments(models), strict=True)
    assert_allclose(*first)
    rows = [0, 1]
    # Diagonal covariances keep the diagonal of the second moments only.
    if covariance_type == "diag":
        second = [matrix[:, rows, rows] for matrix in second]
    assert_allclose(*second)


def test_steps_among_merged_states_are_staying():
    chain = [[0.5, 0.4, 0.1], [0.4, 0.5, 0.1], [0.1, 0.1, 0.8]]
    model = HMMBatch([chain], [[[0.0], [0.2], [9.0]]], [[[1.0]] * 3])
    reference = HMMBatch([[[0.9, 0.1], [0.1, 0.9]]], [[[0.0], [9.0]]], [[[1.0]] * 2])
    aligned = HMMAligner(reference=reference).fit_transform(model)
    assert_allclose(aligned.transmats[0], [[0.9, 0.1], [0.2, 0.8]])
    assert_allclose(aligned.means[0], [[0.1], [9.0]])
    assert_allclose(aligned.covars[0], [[1.01], [1.0]])


def test_far_states_count_as_unmatched():
    reference = HMMBatch([[[0.5, 0.5]] * 2], [[[0.0], [4.0]]], [[[1.0]] * 2])
    model = HMMBatch([[[0.75, 0.25]] * 2], [[[0.0], [9.0]]], [[[1.0]] * 2])
    aligner = HMMAligner(reference=reference).fit(model)
    assert aligner.max_distance_ == 4
    assert_allclose(aligner.unmatched_mass_, [0.25])
    assert_allclose(aligner.missing_mass_, [0.5])
    near = HMMAligner(reference=reference, max_distance=5).fit(model)
    assert_allclose([near.unmatched_mass_, near.missing_mass_], 0)
    assert_allclose(near.align(model).matched_mass, [[0.75, 0.25]])


def test_states_with_equal_emissions_are_distinguished_by_their_chain():
    chain = np.array([[0.9, 0.1, 0.0], [0.3, 0.5, 0.2], [0.0, 0.6, 0.4]])
    order = [2, 0, 1]
    models = HMMBatch(
        [chain, chain[np.ix_(order, order)]], np.zeros((2, 3, 1)), np.ones((2, 3, 1))
    )
    aligned = HMMAligner(reference=models[0]).fit_transform(models)
    assert_allclose(aligned.transmats[1], chain)


def test_references(make_batch):
    models = make_batch(6, [2, 3, 3, 3, 4, 3])
    center = hmm_barycenter(models, n_components=3, random_state=0)[0]
    aligner = HMMAligner(n_components=3, random_state=0).fit(models)
    assert aligner.reference_ == center
    medoid = HMMAligner("medoid", n_components=4).fit(models).reference_
    assert medoid == models[4]
    smaller = HMMAligner("medoid", n_components=2).fit(models).reference_
    assert smaller.means.shape == (1, 2, 2)
    with pytest.raises(ValueError, match="n_components must be the number of states"):
        HMMAligner("medoid", n_components=7).fit(models)
    with pytest.raises(ValueError, match="reference must hold one model, got 6"):
        HMMAligner(models).fit(models)
    with pytest.raises(ValueError, match="reference and X must have the same number"):
        HMMAligner(make_batch(1, n_features=3)).fit(models)


def test_one_model_does_not_depend_on_the_others(make_batch):
    models = make_batch(6, [2, 3, 3, 5, 4, 3], info={"subject": np.arange(6)})
    aligner = HMMAligner("medoid").fit(models)
    whole = aligner.transform(models)
    assert_array_equal(whole.info["subject"], range(6))
    for n in range(6):
        assert aligner.transform(models[n]) == whole[n]
    assert aligner.transform(models[::-1]) == whole[::-1]


def test_missing_channels(make_batch):
    observed = np.array([[True, True, True], [True, True, False], [False, True, True]])
    models = make_batch(3, 3, 3, observed=observed)
    aligned = HMMAligner("medoid").fit_transform(models)
    assert_array_equal(aligned.observed, observed)
    with pytest.raises(ValueError, match="observed the same features"):
        HMMAligner().fit(models)


def test_symbols_and_counts(rng):
    chains = rng.dirichlet(np.ones(3), size=(4, 3))
    probs = rng.dirichlet(np.ones(5), size=(4, 3))
    models = HMMBatch.from_emissionprobs(chains, probs, symbols="abcde")
    turned = HMMBatch.from_emissionprobs(
        chains[:, ::-1, ::-1], probs[:, ::-1], symbols="abcde"
    )
    aligner = HMMAligner("medoid").fit(models)
    one, two = aligner.transform(models), aligner.transform(turned)
    assert_allclose(one.emissionprobs, two.emissionprobs)
    assert_allclose(one.transmats, two.transmats)
    merged = HMMAligner(
        HMMBatch.from_emissionprobs([[[1.0]]], [[[0.2] * 5]], symbols="abcde")
    ).fit_transform(models)
    assert_allclose(
        merged.emissionprobs[:, 0], np.einsum("nj,njs->ns", models.weights, probs)
    )
    aligner = HMMAligner(random_state=0).fit(models)
    one, two = aligner.transform(models), aligner.transform(turned)
    assert_allclose(one.emissionprobs, two.emissionprobs)
    counts = HMMBatch.from_rates(chains, rng.uniform(1, 9, (4, 3, 2)))
    assert HMMAligner(counts[2]).fit_transform(counts)[2] == counts[2]


def test_costs_alone_cannot_be_aligned():
    models = HMMBatch.from_state_costs([[[1.0]]] * 2, [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(TypeError, match="parameters that can be averaged"):
        HMMAligner("medoid").fit(models)


def test_states_that_are_left_for_good_keep_their_way_out():
    # The first state is only a start: it has no stationary weight.
    model = HMMBatch(
        [[[0.0, 1.0], [0.0, 1.0]]],
        [[[0.0], [5.0]]],
        [[[1.0], [1.0]]],
        startprobs=[[1.0, 0.0]],
    )
    aligned = HMMAligner(model).fit_transform(model)
    assert_allclose(aligned.transmats, model.transmats)
    assert_allclose(aligned.startprobs, [[1, 0]])
    assert_allclose(aligned.weights, [[0, 1]])


def test_sequences_are_fitted_first(make_sequences):
    X, _ = make_sequences()
    aligner = HMMAligner(hmm=HMMTransformer(2, random_state=0), random_state=0).fit(X)
    aligned = aligner.transform(X)
    # The states of the generator lie at 0 and 3.
    assert np.abs(aligned.means[..., 0].std(axis=0)).max() < 1
    assert aligner.set_output(transform="pandas") is aligner
