import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import sqrtm
from scipy.optimize import linprog

from skawhmm import HMMBatch, HMMKMeans, hmm_barycenter, pairwise_hmm_distances
from skawhmm.cluster._averaging import make_members, squared_costs

TYPES = ["diag", "full"]


def permute_states(models, order):
    return HMMBatch(
        models.transmats[:, order][:, :, order],
        models.means[:, order],
        models.covars[:, order],
        weights=models.weights[:, order],
    )


def distance(a, b):
    return pairwise_hmm_distances(a, b, alpha=0.5, p=2)[0, 0]


@pytest.mark.parametrize("covariance_type", TYPES)
def test_barycenter_of_one_model_many_times_is_the_model(covariance_type, make_batch):
    model = make_batch(n_models=1, covariance_type=covariance_type)
    relabelled = permute_states(model, [2, 0, 1])
    models = HMMBatch.concatenate([model, relabelled, model])
    barycenter, objective = hmm_barycenter(models)
    assert_allclose(objective[-1], 0, atol=1e-15)
    assert_allclose(barycenter.means, model.means)
    assert_allclose(barycenter.covars, model.covars)
    assert_allclose(barycenter.transmats, model.transmats)
    assert_allclose(barycenter.weights, model.weights)


def test_states_that_differ_in_their_transitions_only_are_not_mixed():
    chain = [[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [0.5, 0.0, 0.5]]
    model = HMMBatch([chain], [[[0.0], [0.0], [4.0]]], [np.ones((3, 1))])
    models = HMMBatch.concatenate([model, permute_states(model, [1, 0, 2])])
    assert_allclose(hmm_barycenter(models)[0].transmats[0], chain, atol=1e-12)


def test_midpoint_of_two_gaussians_lies_on_the_bures_geodesic(rng):
    roots = rng.normal(size=(2, 3, 3))
    one, two = roots @ roots.swapaxes(1, 2)
    means = rng.normal(size=(2, 1, 3))
    models = HMMBatch(np.ones((2, 1, 1)), means, np.stack([one, two])[:, None])
    barycenter, _ = hmm_barycenter(models, tol=1e-14, max_iter=1000)
    half = sqrtm(one)
    inverse = np.linalg.inv(half)
    mapping = inverse @ sqrtm(half @ two @ half) @ inverse
    mapping = (np.eye(3) + mapping) / 2
    assert_allclose(barycenter.means[0], means.mean(axis=0))
    assert_allclose(barycenter.covars[0, 0], mapping @ one @ mapping, rtol=1e-5)


def test_many_gaussians_reach_the_fixed_point_of_their_weights(make_batch):
    models = make_batch(12, n_components=1, n_features=3, covariance_type="full")
    fractions = np.arange(1, 13) / 78
    barycenter, _ = hmm_barycenter(models, np.arange(1, 13), tol=1e-14, max_iter=1000)
    half = sqrtm(barycenter.covars[0, 0])
    mean = sum(
        weight * sqrtm(half @ covar @ half)
        for weight, covar in zip(fractions, models.covars[:, 0], strict=True)
    )
    assert_allclose(mean, barycenter.covars[0, 0], atol=1e-6)
    assert_allclose(barycenter.means[0, 0], fractions @ models.means[:, 0])


def test_singular_covariances_are_averaged_on_their_support(make_batch):
    flat = make_batch(5, n_components=2, n_features=2, covariance_type="full")
    covars = np.zeros((5, 2, 3, 3))
    covars[..., :2, :2] = flat.covars
    means = np.concatenate([flat.means, np.zeros((5, 2, 1))], axis=2)
    expected, trace = hmm_barycenter(flat, update_weights=False)
    actual, same = hmm_barycenter(
        HMMBatch(flat.transmats, means, covars), update_weights=False
    )
    assert_allclose(same, trace)
    assert_allclose(actual.covars[..., :2, :2], expected.covars, rtol=1e-6)
    assert_allclose(actual.covars[..., 2, :], 0, atol=1e-12)


@pytest.mark.parametrize("n_components", [None, 2, 5])
@pytest.mark.parametrize("update_weights", [False, True])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_objective_never_rises_and_ends_at_the_value_of_the_average(
    n_components, update_weights, covariance_type, make_batch
):
    models = make_batch(15, [2, 3, 4] * 5, covariance_type=covariance_type)
    fractions = np.linspace(1, 2, 15) / np.linspace(1, 2, 15).sum()
    barycenter, objective = hmm_barycenter(
        models,
        fractions,
        n_components=n_components,
        update_weights=update_weights,
        random_state=0,
    )
    assert barycenter.n_components[0] == (n_components or 4)
    assert (np.diff(objective) <= 0).all()
    assert objective[-1] < 0.97 * objective[0]
    gaps = pairwise_hmm_distances(barycenter, models, alpha=0, p=2)[0]
    assert_allclose(objective[-1], fractions @ gaps**2)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_no_small_change_of_a_state_is_better(covariance_type, make_batch, rng):
    models = make_batch(20, covariance_type=covariance_type)
    best, objective = hmm_barycenter(
        models, update_weights=False, tol=1e-12, max_iter=1000
    )
    for _ in range(20):
        shift = 1e-3 * rng.normal(size=best.means.shape)
        scale = 1 + 1e-3 * rng.uniform(-1, 1)
        other = HMMBatch(
            best.transmats,
            best.means + shift,
            best.covars * scale,
            weights=best.weights,
        )
        gaps = pairwise_hmm_distances(other, models, alpha=0, p=2)
        assert np.mean(gaps**2) > objective[-1]


@pytest.mark.parametrize("update_weights", [False, True])
def test_weights_stay_stationary(update_weights, make_batch):
    models = make_batch(10, [3, 2] * 5)
    barycenter, _ = hmm_barycenter(models, update_weights=update_weights)
    weights, transmat = barycenter.weights[0], barycenter.transmats[0]
    assert_allclose(weights @ transmat, weights, atol=1e-14)
    assert_allclose(transmat.sum(axis=1), 1)
    assert_allclose(barycenter.startprobs.sum(), 1)


def test_updated_weights_are_the_best_ones(make_batch):
    models = make_batch(10, seed=4)
    args = {"n_components": 2, "tol": 1e-9, "random_state": 0}
    barycenter, objective = hmm_barycenter(models, **args)
    _, fixed = hmm_barycenter(models, update_weights=False, **args)
    labels = np.zeros(10, dtype=int)
    cost = squared_costs(make_members(models), barycenter._padded(3), labels)[:, :2]
    # Plans and weights together are a linear programme: rows of each plan sum to the
    # weights, columns to those of the model.
    equal = np.zeros((50, 62))
    one_hot = np.eye(60).reshape(10, 2, 3, 60)
    equal[:20, :60] = one_hot.sum(axis=2).reshape(20, 60)
    equal[20:, :60] = one_hot.sum(axis=1).reshape(30, 60)
    equal[:20, 60:] = -np.tile(np.eye(2), (10, 1))
    wanted = np.concatenate([np.zeros(20), models.weights.ravel()])
    loss = np.concatenate([cost.ravel() / 10, np.zeros(2)])
    least = linprog(loss, A_eq=equal, b_eq=wanted).fun
    assert_allclose(objective[-1], least, rtol=1e-4)
    assert objective[-1] < 0.95 * fixed[-1]


@pytest.mark.parametrize("covariance_type", TYPES)
def test_equivariance_to_moves_and_to_relabelling(covariance_type, make_batch, rng):
    models = make_batch(8, covariance_type=covariance_type)
    plain, trace = hmm_barycenter(models, update_weights=False)
    if covariance_type == "full":
        turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    else:
        turn = np.array([[0.0, -1.0], [1.0, 0.0]])

    def moved(batch):
        means, full = batch.means @ turn.T + 3, batch.emission.full_covars()
        covars = turn @ full @ turn.T
        if covariance_type == "diag":
            covars = covars.diagonal(axis1=2, axis2=3)
        return HMMBatch(batch.transmats, means, covars, weights=batch.weights)

    actual, same = hmm_barycenter(moved(models), update_weights=False)
    assert_allclose(same, trace, rtol=1e-6)
    assert distance(actual, moved(plain)) < 1e-5
    relabelled = HMMBatch.concatenate(
        [permute_states(model, rng.permutation(3)) for model in models]
    )
    actual, same = hmm_barycenter(relabelled, update_weights=False)
    assert_allclose(same, trace, rtol=1e-6)
    assert distance(actual, plain) < 1e-5
    # Prices of degenerate plans are not unique: the path of the weights may differ.
    one, two = (hmm_barycenter(batch)[1][-1] for batch in (models, relabelled))
    assert_allclose(one, two, rtol=0.01)


def test_weight_zero_leaves_a_model_out(make_batch):
    models = make_batch(6)
    fractions = np.array([1, 2, 0, 1, 0, 3.0])
    some, trace = hmm_barycenter(models, fractions)
    rest, same = hmm_barycenter(models[fractions > 0], fractions[fractions > 0])
    assert_allclose(trace, same)
    assert_allclose(some.means, rest.means)
    assert_allclose(some.transmats, rest.transmats)


def test_features_that_no_model_observed_do_not_matter(make_batch):
    models = make_batch(5, n_features=3, covariance_type="full")
    mask = np.tile([True, True, False], (5, 1))
    noisy = HMMBatch(
        models.transmats, models.means, models.covars, observed=mask, info={}
    )
    blank = HMMBatch(
        models.transmats,
        models.means * [1, 1, 0],
        models.covars * np.outer([1, 1, 0], [1, 1, 0]),
        observed=mask,
    )
    one, trace = hmm_barycenter(noisy)
    two, same = hmm_barycenter(blank)
    assert_allclose(trace, same)
    assert one.observed.tolist() == [[True, True, False]]
    assert distance(one, two) < 1e-6


def test_a_chain_that_starts_where_it_never_returns_keeps_start_probabilities():
    chain = [[0.5, 0.5], [0.0, 1.0]]
    models = HMMBatch([chain] * 2, [[[0.0], [1.0]]] * 2, np.ones((2, 2, 1)))
    barycenter, _ = hmm_barycenter(models)
    assert_allclose(barycenter.weights, [[0, 1]])
    assert_allclose(barycenter.startprobs.sum(), 1)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"sample_weight": [1, 2]}, r"one entry per model .4 models.*\(2,\)"),
        ({"sample_weight": [1, -1, 1, 1]}, "sample_weight must be finite, not neg"),
        ({"sample_weight": [0, 0, 0, 0]}, "not all 0"),
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"n_components": 13}, "n_components=13 for 12"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": -1}, "tol must be"),
    ],
)
def test_wrong_arguments(kwargs, message, make_batch):
    with pytest.raises(ValueError, match=message):
        hmm_barycenter(make_batch(), **kwargs)


def test_models_must_have_observed_the_same_features(make_batch):
    models = make_batch(2, observed=np.array([[True, True], [True, False]]))
    with pytest.raises(ValueError, match="same features, got others in model 1"):
        hmm_barycenter(models)


def sticky_models(sizes, noise, seed):
    """Models that stay in each state with 0.9, with weights and states of their own."""
    rng = np.random.default_rng(seed)
    transmats, means, covars, weights = [], [], [], []
    for size in sizes:
        transmats.append(
            0.9 * np.eye(size) + 0.1 * (1 - np.eye(size)) / max(size - 1, 1)
        )
        means.append(
            np.linspace(0, 6, size)[:, None] + noise * rng.normal(size=(size, 2))
        )
        covars.append(rng.uniform(0.5, 1.5, (size, 2)))
        weights.append(rng.dirichlet(np.full(size, 20)))
    return HMMBatch(transmats, means, covars, weights=weights)


@pytest.mark.parametrize("sizes", [[3] * 12, [2, 3, 4] * 4, [2, 5] * 3])
@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("update_weights", [True, False])
def test_average_of_chains_that_stay_stays(sizes, noise, update_weights):
    models = sticky_models(sizes, noise, seed=len(sizes))
    barycenter, _ = hmm_barycenter(
        models, update_weights=update_weights, random_state=0
    )
    stays = np.diagonal(barycenter.transmats[0])
    # Never less, since what stays in a state of a model stays in the average. Little
    # more: a step to a state that partly belongs to the same state of the average.
    assert stays.min() >= 0.9 - 1e-12
    assert barycenter.weights[0] @ stays < 0.92


def test_transitions_of_an_average_by_hand():
    # The second model has twice the weight in state 0, so a part of its state 0 belongs
    # to state 1 of the average, whose weights are those of the first.
    models = HMMBatch(
        [[[0.9, 0.1], [0.1, 0.9]], [[0.95, 0.05], [0.1, 0.9]]],
        [[[0.0], [3.0]], [[0.0], [3.0]]],
        np.ones((2, 2, 1)),
    )
    fractions = [1 - 1e-9, 1e-9]
    first, _ = hmm_barycenter(models, fractions, update_weights=False)
    assert_allclose(first.transmats[0], models.transmats[0], atol=1e-8)
    barycenter, _ = hmm_barycenter(models, update_weights=False, max_iter=1)
    assert_allclose(barycenter.weights[0], [0.5, 0.5])
    # The second chain on these states: row 0 is its own; a third of state 1 is in state
    # 0 of the model, two thirds are in state 1, from where 0.1 goes to state 0 of the
    # model, 3/4 of which is state 0.
    back = 2 / 3 * 0.1 * 3 / 4
    second = np.array([[0.95, 0.05], [back, 1 - back]])
    assert_allclose(barycenter.transmats[0], (models.transmats[0] + second) / 2)


def test_clusters_of_chains_that_stay():
    models = HMMBatch.concatenate(
        [sticky_models([3, 2] * 4, 0.3, 0), sticky_models([3, 4] * 4, 0.3, 1)]
    )
    centers = HMMKMeans(2, random_state=0).fit(models).cluster_centers_
    stays = centers.transmats.diagonal(axis1=1, axis2=2)
    assert stays[centers.weights > 0].min() >= 0.9 - 1e-12
    assert np.all((centers.weights * stays).sum(axis=1) < 0.93)
