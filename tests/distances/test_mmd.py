import numpy as np
import pytest
from helpers import random_model
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from skawhmm import (
    HMMBatch,
    HMMKMeans,
    HMMKMedoids,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    PairwiseHMMDistance,
    hmm_distance,
    pairwise_hmm_distances,
)
from skawhmm.datasets import make_hmm_sequences
from skawhmm.distances import MMD, pairwise_hmm_distances_chunked

SYMBOLS = "abc"


def random_batch(rng, n_models, kind, n_features=2):
    """Draw models of unequal sizes with states of some kind."""
    sizes = rng.integers(1, 4, n_models)
    if kind in {"diag", "full"}:
        models = [random_model(rng, size, n_features, kind) for size in sizes]
        return HMMBatch(*zip(*models, strict=True))
    transmats = [rng.dirichlet(np.ones(size), size=size) for size in sizes]
    if kind == "poisson":
        rates = [rng.uniform(0, 9, (size, n_features)) for size in sizes]
        return HMMBatch.from_rates(transmats, rates)
    probs = [rng.dirichlet(np.full(3, 0.5), size=size) for size in sizes]
    return HMMBatch.from_emissionprobs(transmats, probs, symbols=SYMBOLS)


def parts(models, n):
    """Return weights, chain and states of one model, without padding."""
    size = slice(models.n_components[n])
    states = [array[n, size] for array in models.emission.parameters.values()]
    return models.weights[n, size], models.transmats[n, size, size], *states


def full_covariance(covar):
    return np.diag(covar) if covar.ndim == 1 else covar


def state_kernel(mean_a, covar_a, mean_b, covar_b, h):
    """Return the expected kernel of two Gaussians by the textbook formula."""
    total = full_covariance(covar_a) + full_covariance(covar_b)
    gap, unit = mean_a - mean_b, np.eye(len(mean_a))
    quadratic = gap @ np.linalg.inv(h**2 * unit + total) @ gap
    return np.exp(-0.5 * quadratic) / np.sqrt(np.linalg.det(unit + total / h**2))


def literal_product(a, b, order, h):
    """Return the scalar product of two distributions, with a loop over all states."""
    weights_a, chain_a, means_a, covars_a = a
    weights_b, chain_b, means_b, covars_b = b
    kernel = np.array(
        [
            [
                state_kernel(means_a[i], covars_a[i], means_b[k], covars_b[k], h)
                for k in range(len(weights_b))
            ]
            for i in range(len(weights_a))
        ]
    )
    total = 0.0
    for i in range(len(weights_a)):
        for k in range(len(weights_b)):
            first = weights_a[i] * weights_b[k] * kernel[i, k]
            if order == 1:
                total += first
                continue
            for j in range(len(weights_a)):
                for m in range(len(weights_b)):
                    total += first * chain_a[i, j] * chain_b[k, m] * kernel[j, m]
    return total


def literal_distance(a, b, order, h):
    square = (
        literal_product(a, a, order, h)
        + literal_product(b, b, order, h)
        - 2 * literal_product(a, b, order, h)
    )
    return np.sqrt(max(square, 0))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kind", ["diag", "full"])
@pytest.mark.parametrize("n_features", [1, 3, 11])
def test_gaussian_states_against_a_loop(order, kind, n_features, rng):
    models = random_batch(rng, 5, kind, n_features)
    h = 1.7 * np.sqrt(n_features)
    actual = pairwise_hmm_distances(models, metric=MMD(order=order, bandwidth=h))
    expected = [
        [literal_distance(parts(models, i), parts(models, j), order, h)]
        for i in range(5)
        for j in range(5)
    ]
    assert_allclose(actual.ravel(), np.ravel(expected), atol=1e-7)
    assert actual[~np.eye(5, dtype=bool)].min() > 0.01


@pytest.mark.parametrize("order", [1, 2])
def test_kernel_is_the_mean_over_drawn_frames(order, rng):
    drawn = random_batch(rng, 2, "diag", 2)
    shifts = np.array([0.0, 3.0])[:, None, None]
    models = HMMBatch(
        drawn.transmats, drawn.means + shifts, drawn.covars, weights=drawn.weights
    )
    h, n = 1.5, 4000
    frames = []
    for k in range(2):
        weights, chain, means, covars = parts(models, k)
        first = rng.choice(len(weights), n, p=weights)
        second = np.array([rng.choice(len(weights), p=chain[i]) for i in first])
        steps = [first, second][:order]
        drawn = [means[s] + np.sqrt(covars[s]) * rng.normal(size=(n, 2)) for s in steps]
        frames.append(np.hstack(drawn))

    def mean_kernel(x, y):
        squares = (x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T
        return np.exp(-squares / (2 * h**2)).mean()

    a, b = frames
    half = n // 2
    square = mean_kernel(a[:half], a[half:]) + mean_kernel(b[:half], b[half:])
    square -= 2 * mean_kernel(a, b)
    actual = hmm_distance(models[0], models[1], MMD(order=order, bandwidth=h))
    assert_allclose(actual**2, square, atol=0.01)
    assert square > 0.1


@pytest.mark.parametrize("order", [1, 2])
def test_symbols_against_a_loop(order, rng):
    models = random_batch(rng, 5, "categorical")
    distributions = []
    for n in range(5):
        weights, chain, probs = parts(models, n)
        joint = weights @ probs
        if order == 2:
            joint = sum(
                weights[i] * chain[i, j] * np.outer(probs[i], probs[j])
                for i in range(len(weights))
                for j in range(len(weights))
            )
        distributions.append(np.sqrt(joint.ravel()))
    expected = [
        [np.sqrt(max(1 - p @ q, 0)) for q in distributions] for p in distributions
    ]
    actual = pairwise_hmm_distances(
        models, metric="mmd", metric_params={"order": order}
    )
    assert_allclose(actual, expected, atol=1e-7)
    assert_array_equal(np.diag(actual), 0)


def test_counts_are_compared_by_their_roots(rng):
    models = random_batch(rng, 4, "poisson")
    rates = models.rates
    gaussian = HMMBatch(
        models.transmats,
        2 * np.sqrt(rates),
        np.ones(rates.shape),
        weights=models.weights,
    )
    assert_allclose(
        pairwise_hmm_distances(models, metric=MMD(bandwidth=2.0)),
        pairwise_hmm_distances(gaussian, metric=MMD(bandwidth=2.0)),
        atol=1e-7,
    )


def one_state(means, covars):
    ones = np.ones((len(means), 1, 1))
    return HMMBatch(ones, np.reshape(means, (-1, 1, 1)), np.reshape(covars, (-1, 1, 1)))


def test_two_points_by_hand():
    # Without variance the kernel is that of the points: K(a, a) = K(b, b) = 1 and
    # K(a, b) = exp(-2^2 / 2) for h = 1; two frames square it.
    a, b = (one_state([m], [0.0]) for m in (0.0, 2.0))
    for order, product in [(1, np.exp(-2)), (2, np.exp(-4))]:
        actual = hmm_distance(a, b, MMD(order=order, bandwidth=1))
        assert_allclose(actual, np.sqrt(2 - 2 * product))


def test_two_variances_by_hand():
    # k = h / sqrt(h^2 + s + t) with h = 1: 1 / sqrt(1 + 2 * 4) = 1 / 3 for a and a,
    # 1 for b and b, 1 / sqrt(5) for a and b.
    a, b = (one_state([0.0], [v]) for v in (4.0, 0.0))
    expected = np.sqrt(1 / 3 + 1 - 2 / np.sqrt(5))
    assert_allclose(hmm_distance(a, b, MMD(order=1, bandwidth=1)), expected)


def test_two_chains_by_hand():
    # The pairs of states differ by .2 u u^T with u = (1, -1), so that the distance is
    # .2 u^T k u. Squared distances of frames are 2 in a state and 27 between states,
    # their median 14.5 and the squared bandwidth 7.25.
    models = HMMBatch(
        [[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]],
        [[[0.0], [5.0]]] * 2,
        np.ones((2, 2, 1)),
    )
    same = np.sqrt(7.25 / 9.25)
    expected = 0.4 * same * (1 - np.exp(-25 / 18.5))
    assert_allclose(hmm_distance(models[0], models[1], "mmd"), expected)


def test_pairs_of_symbols_by_hand():
    # "abab..." has the pairs ab and ba, "aabb..." all four: their roots overlap by
    # 2 * sqrt(1/2 * 1/4) = 1 / sqrt(2). One symbol does not tell them apart.
    chains = [[[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]]
    models = HMMBatch.from_emissionprobs(chains, [np.eye(2)] * 2, symbols="ab")
    assert hmm_distance(models[0], models[1], MMD(order=1)) == 0
    assert_allclose(
        hmm_distance(models[0], models[1], MMD()), np.sqrt(1 - np.sqrt(0.5))
    )


KINDS = st.sampled_from(["diag", "full", "categorical", "poisson"])
METRICS = st.builds(
    MMD, order=st.sampled_from([1, 2]), bandwidth=st.floats(0.3, 5) | st.just("median")
)


def suited(metric, kind):
    """Return a distance without a bandwidth if states emit symbols."""
    return MMD(order=metric.order) if kind == "categorical" else metric


def test_symbols_have_no_bandwidth(rng):
    models = random_batch(rng, 3, "categorical")
    with pytest.raises(ValueError, match=r"bandwidth must be 'median' .*symbols"):
        pairwise_hmm_distances(models, metric=MMD(bandwidth=2.0))
    assert MMD().fitted_to(models).bandwidth == "median"


@given(seed=st.integers(0, 10**6), kind=KINDS, metric=METRICS)
def test_distance_is_a_metric_of_distributions(seed, kind, metric):
    models = random_batch(np.random.default_rng(seed), 5, kind)
    matrix = pairwise_hmm_distances(models, metric=suited(metric, kind))
    assert_array_equal(matrix, matrix.T)
    assert_array_equal(np.diag(matrix), 0)
    assert (matrix >= 0).all()
    around = matrix[:, :, None] + matrix[None]
    assert (matrix[:, None] <= around + 1e-7).all()


@given(seed=st.integers(0, 10**6), kind=KINDS, metric=METRICS)
def test_kernel_is_positive_semidefinite(seed, kind, metric):
    models = random_batch(np.random.default_rng(seed), 12, kind)
    kernel = PairwiseHMMDistance(suited(metric, kind), output="kernel")
    kernel = kernel.fit_transform(models)
    assert np.linalg.eigvalsh(kernel).min() > -1e-9


@given(seed=st.integers(0, 10**6), kind=KINDS, order=st.sampled_from([1, 2]))
def test_labels_clones_and_empty_states_change_nothing(seed, kind, order):
    rng = np.random.default_rng(seed)
    models = random_batch(rng, 2, kind)
    metric = suited(MMD(order=order, bandwidth=1.3), kind)
    expected = hmm_distance(models[0], models[1], metric)
    weights, chain, *states = parts(models, 0)
    size = len(weights)
    # State 0 is cut in two, which share its mass; a state is added that never occurs.
    place = rng.permutation([*range(size), 0, size])
    share = np.array([0.3, *np.ones(size - 1), 0.7, 0.0])
    owner = np.array([*range(size), 0, 0])
    order_of = np.argsort(place, kind="stable")
    owner, share = owner[order_of], share[order_of]
    cut = HMMBatch._of(
        models.emission,
        [chain[np.ix_(owner, owner)] * share],
        {
            name: [array[owner]]
            for name, array in zip(models.emission.parameters, states, strict=True)
        },
        shared=models.emission.extras,
        weights=[weights[owner] * share],
    )
    assert hmm_distance(cut, models[0], metric) < 1e-6
    assert_allclose(hmm_distance(cut, models[1], metric), expected, atol=1e-6)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["diag", "full"]))
def test_distance_follows_translation_rotation_and_scale(seed, kind):
    rng = np.random.default_rng(seed)
    models = random_batch(rng, 3, kind)
    weights = models.weights
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    covars = models.emission.full_covars()
    turned = HMMBatch(
        models.transmats,
        3 * models.means @ turn.T + [5.0, -2.0],
        9 * turn @ covars @ turn.T,
        weights=weights,
    )
    assert_allclose(
        pairwise_hmm_distances(turned, metric=MMD(bandwidth=3.0)),
        pairwise_hmm_distances(models, metric=MMD(bandwidth=1.0)),
        atol=1e-6,
    )
    assert_allclose(
        MMD().fitted_to(turned).bandwidth, 3 * MMD().fitted_to(models).bandwidth
    )


def test_order_one_ignores_the_chain_and_order_two_does_not(make_batch):
    models = make_batch(2, 3)
    other = HMMBatch(
        np.full((2, 3, 3), 1 / 3), models.means, models.covars, weights=models.weights
    )
    assert hmm_distance(models[0], other[0], MMD(order=1)) == 0
    assert hmm_distance(models[0], other[0], MMD(order=2)) > 0.05


# Missing channels


@pytest.mark.parametrize("kind", ["diag", "full"])
@pytest.mark.parametrize("order", [1, 2])
def test_missing_channels_leave_the_common_ones(kind, order, make_batch):
    observed = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1]], bool)
    models = make_batch(3, [2, 3, 2], 4, kind, observed=observed)
    actual = pairwise_hmm_distances(models, metric=MMD(order=order, bandwidth=2.0))
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        common = observed[i] & observed[j]
        covars = models.covars[:, :, common]
        if kind == "full":
            covars = covars[..., common]
        part = HMMBatch(
            models.transmats, models.means[:, :, common], covars, weights=models.weights
        )
        # Frames are scaled up by sqrt(4 / n_common), or the kernel made narrower.
        metric = MMD(order=order, bandwidth=2.0 * np.sqrt(common.sum() / 4))
        assert_allclose(actual[i, j], hmm_distance(part[i], part[j], metric), rtol=1e-7)


def test_median_of_missing_channels_uses_the_common_ones(make_batch):
    full = make_batch(6, 2, 3)
    doubled = HMMBatch(
        full.transmats,
        np.concatenate([full.means, full.means], axis=2),
        np.concatenate([full.covars, full.covars], axis=2),
        observed=np.array([[1] * 6, [1, 1, 1, 0, 0, 0]] * 3, bool),
    )
    # A copy of each channel doubles squared distances, whether it was seen or not.
    assert_allclose(
        MMD().fitted_to(doubled).bandwidth,
        np.sqrt(2) * MMD().fitted_to(full).bandwidth,
    )


# The bandwidth


def test_median_by_hand():
    # States at 0 and 3 without variance: squared distances 0, 0, 9, 9 of all pairs,
    # median 4.5. At 0, 3 and 4: 0 three times, 1, 9 and 16 twice each, median 1.
    assert_allclose(
        MMD().fitted_to(one_state([0.0, 3.0], [0.0, 0.0])).bandwidth, np.sqrt(4.5 / 2)
    )
    three = one_state([0.0, 3.0, 4.0], [0.0] * 3)
    assert_allclose(MMD().fitted_to(three).bandwidth, np.sqrt(1 / 2))
    # The variance of a state counts twice between it and itself.
    assert_allclose(MMD().fitted_to(one_state([7.0], [5.0])).bandwidth, np.sqrt(5))
    assert MMD().fitted_to(one_state([7.0], [0.0])).bandwidth == 1
    assert MMD(bandwidth=3).fitted_to(three).bandwidth == 3


def test_median_is_taken_from_the_reference_models(make_batch):
    models = make_batch(12)
    train, new = models[:8], models[8:]
    number = MMD().fitted_to(train)
    expected = pairwise_hmm_distances(new, train, metric=number)
    assert_array_equal(pairwise_hmm_distances(new, train, metric="mmd"), expected)
    chunks = pairwise_hmm_distances_chunked(new, train, "mmd", max_memory=1e-4)
    assert_array_equal(np.vstack([rows for _, rows in chunks]), expected)
    step = PairwiseHMMDistance("mmd").fit(train)
    assert_array_equal(step.transform(new), expected)
    assert_array_equal(step.transform(new[1:2]), expected[1:2])
    assert_array_equal(
        step.fit_transform(train), pairwise_hmm_distances(train, metric=number)
    )
    retriever = HMMRetriever(8, metric="mmd").fit(train)
    assert_array_equal(
        retriever.kneighbors(new)[0], np.sort(expected, axis=1, kind="stable")
    )
    assert hmm_distance(models[0], models[9], "mmd") == hmm_distance(
        models[9], models[0], MMD().fitted_to(models[[9, 0]])
    )


def test_median_does_not_depend_on_the_order_of_models(make_batch, rng):
    # So many that only some of them are looked at.
    models = make_batch(700)
    order = rng.permutation(700)
    moved = models[order]
    assert MMD().fitted_to(moved).bandwidth == MMD().fitted_to(models).bandwidth


@pytest.mark.parametrize("kind", [HMMKMeans, HMMKMedoids])
def test_clusterers_keep_the_bandwidth_of_training(kind, make_batch):
    models = make_batch(12)
    params = {"random_state": 0} if kind is HMMKMeans else {}
    clusterer = kind(3, metric="mmd", **params).fit(models)
    number = MMD().fitted_to(models)
    assert_array_equal(
        clusterer.transform(models),
        pairwise_hmm_distances(models, clusterer.cluster_centers_, metric=number),
    )
    assert_array_equal(clusterer.predict(models), clusterer.labels_)


def test_median_of_many_states_takes_some_of_them(make_batch):
    models = make_batch(700)
    few = MMD().fitted_to(models).bandwidth
    gaps = models.means.reshape(-1, 2)
    spreads = models.covars.reshape(-1, 2).sum(axis=1)
    squares = ((gaps[:, None] - gaps) ** 2).sum(axis=2) + spreads[:, None] + spreads
    assert_allclose(few, np.sqrt(np.median(squares) / 2), rtol=0.05)


def test_bandwidth_in_a_grid_search():
    X, y = make_hmm_sequences(40, differ_in="transitions", random_state=0)
    models = HMMTransformer(3, random_state=0).fit_transform(X)
    kernel = PairwiseHMMDistance("mmd", output="kernel")
    pipe = make_pipeline(kernel, SVC(kernel="precomputed", C=10))
    settings = [{"bandwidth": h} for h in (1e9, 0.5, 1.0, "median")]
    grid = {"pairwisehmmdistance__metric_params": settings}
    search = GridSearchCV(pipe, grid, cv=4).fit(models, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[1:].min() > 0.8 > scores[0]


def test_neighbours_by_distributions_of_symbols():
    X = ["ababababab", "abababab", "aabbaabbaabb", "bbaabbaabb"]
    hmm = HMMTransformer(2, emission="categorical", random_state=0)
    knn = KNeighborsHMMClassifier(1, metric="mmd", hmm=hmm).fit(X, [0, 0, 1, 1])
    assert knn.predict(["babababa", "aabbaabb"]).tolist() == [0, 1]
    assert clone(knn).get_params()["metric"] == "mmd"


# Errors


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ({"bandwidth": 0}, ValueError, "bandwidth must be a number in"),
        ({"bandwidth": -1.0}, ValueError, "bandwidth must be a number"),
        ({"bandwidth": np.nan}, ValueError, "bandwidth must be a number"),
        ({"bandwidth": np.inf}, ValueError, "bandwidth must be a number"),
        ({"bandwidth": None}, TypeError, "bandwidth must be a number"),
        ({"bandwidth": "mean"}, ValueError, "bandwidth must be one of 'median'"),
        ({"order": 3}, ValueError, "order must be 1 or 2, got 3"),
        ({"order": 0}, ValueError, "order must be an integer of at least 1, got 0"),
        ({"order": "2"}, TypeError, "order must be an integer"),
    ],
)
def test_wrong_parameters(params, error, text, make_batch):
    with pytest.raises(error, match=text):
        MMD(**params)
    with pytest.raises(error, match=text):
        PairwiseHMMDistance("mmd", metric_params=params).fit(make_batch(2))


def test_states_without_a_distribution_are_rejected():
    models = HMMBatch.from_state_costs(np.ones((2, 1, 1)), np.zeros((2, 2)))
    with pytest.raises(TypeError, match="got states of kind"):
        pairwise_hmm_distances(models, metric="mmd")
