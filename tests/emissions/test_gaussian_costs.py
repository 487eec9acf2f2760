import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import sqrtm
from scipy.stats import special_ortho_group

import skawhmm.emissions._gaussian_costs as ground_cost
from skawhmm import HMMBatch
from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._gaussian_costs_kernels import vector_spreads

# Both sides of the size where LAPACK takes over from loops over many matrices.
SIZES = [1, 2, 3, 8, ground_cost.MAX_VECTOR_FEATURES, 25, 33]


def squared_wasserstein(mean_a, covar_a, mean_b, covar_b):
    """The textbook formula, by matrix square roots."""
    root = np.real(sqrtm(covar_a))
    cross = np.real(sqrtm(root @ covar_b @ root))
    return np.sum((mean_a - mean_b) ** 2) + np.trace(covar_a + covar_b - 2 * cross)


def between(means, covars, observed=None):
    """Cost from the states of model 0 to those of model 1."""
    costs = (
        Gaussian()
        .like(np.asarray(means), np.asarray(covars), observed=observed)
        .ground_costs()
    )
    return costs.cross(np.array([0]), np.array([1]))[0]


def random_covars(rng, shape, n_features, rank=None):
    roots = rng.normal(size=(*shape, n_features, rank or n_features))
    return roots @ roots.swapaxes(-1, -2)


@pytest.mark.parametrize("n_features", SIZES)
def test_full_covariances_against_matrix_roots(n_features, rng):
    means = rng.normal(size=(2, 3, n_features))
    covars = random_covars(rng, (2, 3), n_features) + 0.1 * np.eye(n_features)
    cost = between(means, covars)
    for i in range(3):
        for j in range(3):
            expected = squared_wasserstein(
                means[0, i], covars[0, i], means[1, j], covars[1, j]
            )
            assert_allclose(cost[i, j], expected, rtol=1e-11)


@pytest.mark.parametrize("n_features", SIZES)
def test_diagonal_covariances_are_a_euclidean_distance(n_features, rng):
    means = rng.normal(size=(2, 3, n_features))
    scales = rng.uniform(0, 2, size=(2, 3, n_features))
    scales[rng.random(scales.shape) < 0.3] = 0
    gaps = means[0][:, None] - means[1], scales[0][:, None] - scales[1]
    expected = np.sum(gaps[0] ** 2 + gaps[1] ** 2, axis=-1)
    assert_allclose(between(means, scales**2), expected, rtol=1e-13)
    full = (scales**2)[..., None] * np.eye(n_features)
    assert_allclose(between(means, full), expected, rtol=1e-11)


@pytest.mark.parametrize("n_features", [2, 5, 24, 30])
def test_commuting_covariances_of_any_rank(n_features, rng):
    axes = special_ortho_group.rvs(n_features, random_state=rng)
    scales = rng.uniform(0.5, 2, size=(2, 3, n_features))
    for k in range(3):
        # Ranks from full down to one.
        scales[:, k, n_features - k * (n_features - 1) // 2 :] = 0
    covars = (axes * (scales**2)[..., None, :]) @ axes.T
    covars = (covars + covars.swapaxes(2, 3)) / 2
    gaps = scales[0][:, None] - scales[1]
    # Eigenvalues that should be zero are of size 1e-16, their roots of 1e-8.
    assert_allclose(
        between(np.zeros((2, 3, n_features)), covars),
        np.sum(gaps**2, axis=-1),
        rtol=1e-6,
    )


@pytest.mark.parametrize("n_features", [1, 2, 6, 24, 30])
@pytest.mark.parametrize("share", [1e-3, 1e-5, 1e-8, 1e-11])
def test_close_states_lose_no_digits(n_features, share, rng):
    covar = random_covars(rng, (), n_features) + np.eye(n_features)
    covars = np.stack([covar, covar * (1 + share) ** 2])[:, None]
    distance = np.sqrt(between(np.zeros((2, 1, n_features)), covars))[0, 0]
    scale = np.sqrt(np.trace(covar))
    assert_allclose(distance, share * scale, rtol=1e-8, atol=3e-15 * scale)


@pytest.mark.parametrize("n_features", [1, 3, 24, 30])
@pytest.mark.parametrize("rank", [1, None])
def test_equal_states_are_at_distance_zero(n_features, rank, rng):
    covars = np.repeat(random_covars(rng, (1, 3), n_features, rank), 2, axis=0)
    means = np.repeat(rng.normal(size=(1, 3, n_features)), 2, axis=0)
    cost = between(means, covars)
    assert_array_equal(np.diagonal(cost), 0)
    assert (cost[~np.eye(3, dtype=bool)] > 0).all()


@pytest.mark.parametrize("n_features", [3, 30])
def test_dirac_states(n_features, rng):
    means = rng.normal(size=(2, 1, n_features))
    covars = random_covars(rng, (2, 1), n_features)
    covars[0] = 0
    expected = np.sum((means[0] - means[1]) ** 2) + np.trace(covars[1, 0])
    assert_allclose(between(means, covars), [[expected]], rtol=1e-13)
    covars[1] = 0
    expected = np.sum((means[0] - means[1]) ** 2)
    assert_allclose(between(means, covars), [[expected]], rtol=1e-13)


@pytest.mark.parametrize("scale", [1e-100, 1e-60, 1e-12, 1e12, 1e60, 1e100])
@pytest.mark.parametrize("n_features", [1, 4, 30])
def test_costs_scale_with_the_data(scale, n_features, rng):
    means = rng.normal(size=(2, 2, n_features))
    covars = random_covars(rng, (2, 2), n_features)
    scaled = between(scale * means, scale**2 * covars)
    assert_allclose(scaled / scale**2, between(means, covars), rtol=1e-10)


@pytest.mark.parametrize("n_features", [4, 24, 26])
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_common_features_only(n_features, covariance_type, rng):
    means = rng.normal(size=(2, 3, n_features))
    covars = random_covars(rng, (2, 3), n_features)
    if covariance_type == "diag":
        covars = np.diagonal(covars, axis1=2, axis2=3)
    observed = np.ones((2, n_features), dtype=bool)
    observed[0, 0] = observed[1, 1] = observed[1, -1] = False
    kept = np.flatnonzero(observed.all(axis=0))
    part = covars[..., kept]
    part = part if covariance_type == "diag" else part[..., kept, :]
    # The features left out may hold anything.
    scale = n_features / kept.size
    cost = between(means, covars, observed)
    assert_allclose(cost, scale * between(means[..., kept], part), rtol=1e-11)


@pytest.mark.parametrize("n_features", [3, 26])
def test_within_costs_use_the_features_of_the_pair(n_features, rng):
    means = rng.normal(size=(2, 3, n_features))
    covars = random_covars(rng, (2, 3), n_features)
    observed = np.ones((2, n_features), dtype=bool)
    observed[1, 0] = False
    costs = Gaussian().like(means, covars, observed=observed).ground_costs()
    both, alone = np.array([0, 0]), np.array([1, 0])
    pair, own = costs.within(both, alone)
    assert_array_equal(np.diagonal(pair), 0)
    assert_array_equal(np.diagonal(own), 0)
    same = (
        np.repeat(means[:1, :, 1:], 2, axis=0),
        np.repeat(covars[:1, :, 1:, 1:], 2, axis=0),
    )
    expected = n_features / (n_features - 1) * between(*same)
    off = ~np.eye(3, dtype=bool)
    assert_allclose(pair[off], expected[off], rtol=1e-11)
    full = np.repeat(means[:1], 2, axis=0), np.repeat(covars[:1], 2, axis=0)
    assert_allclose(own[off], between(*full)[off], rtol=1e-11)


def test_within_without_masks_is_the_cost_of_a_model_to_itself(make_batch):
    models = make_batch(3, covariance_type="full", n_features=4)
    costs = models.emission.ground_costs()
    index = np.array([2, 0, 2])
    within = costs.within(index, np.array([1, 1, 0]))
    cross = costs.cross(index, index)
    assert_array_equal(np.diagonal(within, axis1=1, axis2=2), 0)
    assert_allclose(within, cross, atol=1e-25)


@pytest.mark.parametrize("n_features", [3, 27])
def test_diagonal_and_full_models_in_one_batch(n_features, make_batch):
    diag = make_batch(1, n_features=n_features)
    full = make_batch(1, n_features=n_features, covariance_type="full", seed=1)
    models = HMMBatch.concatenate([diag, full])
    cost = models.emission.ground_costs().cross(np.array([0]), np.array([1]))[0]
    for i in range(3):
        for j in range(3):
            expected = squared_wasserstein(
                diag.means[0, i],
                np.diag(diag.covars[0, i]),
                full.means[0, j],
                full.covars[0, j],
            )
            assert_allclose(cost[i, j], expected, rtol=1e-10)


@pytest.mark.parametrize("n_features", [2, 24, 25])
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_a_pair_does_not_depend_on_neighbouring_pairs(
    n_features, covariance_type, make_batch
):
    models = make_batch(6, 4, n_features, covariance_type)
    costs = models.emission.ground_costs()
    index_a, index_b = (index.ravel() for index in np.indices((6, 6)))
    together = costs.cross(index_a, index_b)
    for n in range(0, 36, 5):
        alone = costs.cross(index_a[n : n + 1], index_b[n : n + 1])
        assert_array_equal(alone[0], together[n])
    order = np.random.default_rng(0).permutation(36)
    assert_array_equal(costs.cross(index_a[order], index_b[order]), together[order])


@pytest.mark.parametrize("n_features", [2, 25])
def test_cost_is_symmetric(n_features, make_batch):
    costs = make_batch(2, 4, n_features, "full").emission.ground_costs()
    zero, one = np.array([0]), np.array([1])
    assert_allclose(costs.cross(zero, one)[0], costs.cross(one, zero)[0].T, rtol=1e-12)


def turned(rng, values):
    """Matrices of given singular values."""
    left, right = np.linalg.qr(rng.normal(size=(2, *values.shape, values.shape[1])))[0]
    return (left * values[:, None]) @ right


def in_blocks(rng, n, coupling):
    matrices = rng.normal(size=(60, n, n))
    matrices[:, : n // 2, n // 2 :] *= coupling
    matrices[:, n // 2 :, : n // 2] *= coupling
    return matrices


# What iterations for singular values stumble over: none, few, equal, nearly equal, of
# many sizes, and matrices that fall apart or nearly do.
MATRICES = {
    "any": lambda rng, n: rng.normal(size=(60, n, n)),
    "zero": lambda _, n: np.zeros((60, n, n)),
    "one value": lambda rng, n: turned(rng, rng.random((60, n)) * (np.arange(n) < 1)),
    "two values": lambda rng, n: turned(rng, rng.random((60, n)) * (np.arange(n) < 2)),
    "diagonal": lambda rng, n: rng.random((60, n, 1)) * np.eye(n),
    "equal": lambda rng, n: turned(rng, np.ones((60, n))),
    "nearly equal": lambda rng, n: turned(rng, 1 + 1e-8 * rng.normal(size=(60, n))),
    "pairs": lambda rng, n: turned(rng, rng.random((60, n))[:, np.arange(n) // 2]),
    "many sizes": lambda rng, n: turned(rng, 10.0 ** rng.uniform(-20, 0, (60, n))),
    "graded": lambda rng, n: (
        10.0 ** rng.uniform(-12, 0, (60, n, 1))
        * rng.normal(size=(60, n, n))
        * 10.0 ** rng.uniform(-12, 0, (60, 1, n))
    ),
    "blocks": lambda rng, n: in_blocks(rng, n, 0.0),
    "nearly blocks": lambda rng, n: in_blocks(rng, n, 1e-9),
    "whole": lambda rng, n: rng.integers(-1, 2, (60, n, n)) + 0.0,
}


@pytest.mark.parametrize("n_features", [1, 2, 3, 5, 8, 17, 24])
@pytest.mark.parametrize("kind", MATRICES)
def test_covariance_terms_against_singular_values(kind, n_features, rng):
    # The factor of the other state is the unit matrix.
    matrices = MATRICES[kind](rng, n_features)
    n_pairs = len(matrices)
    units = np.broadcast_to(np.eye(n_features), matrices.shape)
    roots = np.concatenate([matrices, units])[:, None]
    index = np.arange(n_pairs), n_pairs + np.arange(n_pairs)
    spread, traces = np.full((2, n_pairs, 1, 1), np.nan)
    masks = np.ones((2 * n_pairs, n_features))
    vector_spreads(roots, masks, *index, *index, spread, traces)
    values = np.linalg.svd(matrices, compute_uv=False)
    expected = np.sum(values**2, axis=1) + n_features
    assert_allclose(traces.ravel(), expected, rtol=1e-13)
    error = spread.ravel() - (expected - 2 * values.sum(axis=1))
    assert np.abs(error / expected).max() < 3e-15


@pytest.mark.parametrize("n_features", [3, 8])
def test_terms_that_were_not_found_are_left_to_lapack(
    n_features, make_batch, monkeypatch
):
    costs = make_batch(4, 3, n_features, "full").emission.ground_costs()
    index = np.arange(4), np.array([1, 2, 3, 0])
    expected = costs.cross(*index)

    def lossy(*arguments):
        vector_spreads(*arguments)
        arguments[-2][1:, ::2] = np.nan

    monkeypatch.setattr(ground_cost, "vector_spreads", lossy)
    assert_allclose(costs.cross(*index), expected, rtol=1e-12)


@pytest.mark.parametrize("n_features", [2, 25])
def test_memory_stays_bounded_where_all_states_are_close(n_features, monkeypatch):
    # Models with one common covariance: each cell needs the refinement.
    sizes = []
    residuals = ground_cost._residuals

    def watched(roots_a, roots_b):
        sizes.append(len(roots_a))
        return residuals(roots_a, roots_b)

    monkeypatch.setattr(ground_cost, "_residuals", watched)
    means = np.zeros((20, 2, n_features))
    covars = np.broadcast_to(np.eye(n_features), (20, 2, n_features, n_features))
    index_a, index_b = (index.ravel() for index in np.indices((20, 20)))
    cost = Gaussian().like(means, covars).ground_costs().cross(index_a, index_b)
    assert_array_equal(cost, 0)
    assert sum(sizes) == cost.size
    assert max(sizes) <= ground_cost.LAPACK_BATCH
