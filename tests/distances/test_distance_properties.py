"""What every distance promises of single pairs, whatever else is in the batch."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import (
    IAW,
    JAW,
    KL,
    MAW,
    HMMBatch,
    TransitionCoupling,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.distances import MMD
from skawhmm.models._inference import sample_sequences

DISTANCES = {
    "maw": MAW(0.3),
    "maw-hellinger": MAW(0.3, 2, rows="hellinger"),
    "jaw": JAW(),
    "jaw-hellinger": JAW(rows="hellinger"),
    "iaw": IAW(0.3, n_samples=24),
    "iaw-joint": IAW(0.3, n_samples=24, steps="joint", debias=True),
    "iaw-iid": IAW(0.3, 2, n_samples=24, sampling="iid"),
    "iaw-debias": IAW(0.3, 1.5, n_samples=24, debias=True),
    "kl": KL(n_steps=40),
    "kl-one-way": KL(n_steps=40, symmetric=False),
    "kl-variational": KL(method="variational"),
    "kl-data": KL(method="data"),
    "coupling": TransitionCoupling(),
    "mmd": MMD(bandwidth=2.0),
    "mmd-single": MMD(order=1, bandwidth=0.5),
}


@pytest.fixture(params=DISTANCES)
def distance(request):
    return DISTANCES[request.param]


@pytest.fixture(params=["diag", "full", "masked"])
def models(request, make_batch):
    observed, kind = None, request.param
    if kind == "masked":
        observed = np.random.default_rng(0).random((20, 3)) > 0.3
        observed[:, 0] = True
        kind = "diag"
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 5, 20)
    # More than one tile a side, and one model that pads all others.
    sizes[7] = 12
    batch = make_batch(20, sizes, 3, kind, seed=2, observed=observed)
    sequences, _ = sample_sequences(batch, 15, [(n,) for n in range(20)])
    return batch._changed(sequences=sequences)


@pytest.fixture
def matrix(models, distance):
    return pairwise_hmm_distances(models, metric=distance)


def alone(models, n):
    """One model without the padding that its batch gave it."""
    size = slice(models.n_components[n])
    return HMMBatch(
        [models.transmats[n, size, size]],
        [models.means[n, size]],
        [models.covars[n, size]],
        weights=[models.weights[n, size]],
        startprobs=[models.startprobs[n, size]],
        observed=None if models.observed is None else models.observed[[n]],
        sequences=[models.sequences[n]],
    )


def test_batch_does_not_matter(models, distance, matrix):
    for i, j in [(0, 1), (3, 19), (7, 2), (18, 17), (5, 5)]:
        a, b = alone(models, i), alone(models, j)
        assert hmm_distance(a, b, distance) == matrix[i, j]


def test_order_and_tiles_do_not_matter(models, distance, matrix, rng):
    order = rng.permutation(20)
    moved = pairwise_hmm_distances(models[order], metric=distance)
    assert_array_equal(moved, matrix[order][:, order])
    part = pairwise_hmm_distances(models[3:6], models[5:19], metric=distance)
    assert_array_equal(part, matrix[3:6, 5:19])


def test_jobs_do_not_matter(models, distance, matrix):
    assert_array_equal(
        pairwise_hmm_distances(models, metric=distance, n_jobs=2), matrix
    )


def test_values_are_numbers_and_symmetric_if_promised(models, distance, matrix):
    assert not np.isnan(matrix).any()
    assert np.isfinite(matrix).all()
    assert np.array_equal(matrix, matrix.T) == distance.symmetric
    if not isinstance(distance, KL) or distance.method == "variational":
        assert matrix.min() >= 0


def test_batch_does_not_matter_to_the_entropic_coupling(make_batch):
    models = make_batch(3, [2, 3, 12])
    metric = IAW(0.3, n_samples=10, coupling="sinkhorn")
    matrix = pairwise_hmm_distances(models, metric=metric)
    sizes = [slice(n) for n in models.n_components[:2]]
    a, b = (
        HMMBatch(
            [models.transmats[n, size, size]],
            [models.means[n, size]],
            [models.covars[n, size]],
        )
        for n, size in enumerate(sizes)
    )
    assert hmm_distance(a, b, metric) == hmm_distance(b, a, metric) == matrix[0, 1]


def test_components_do_not_depend_on_alpha(make_batch):
    models = make_batch(3)
    one, two = (
        pairwise_hmm_components(models, metric=IAW(alpha, n_samples=24))
        for alpha in (0, 0.9)
    )
    assert_array_equal(one, two)


class MeanDistance:
    """The example of the user guide: the distance of the overall means."""

    symmetric = True
    max_tile = 2

    def prepare(self, models):
        return np.einsum("nk,nkd->nd", models.weights, models.means)

    def distances(self, prepared, index_a, index_b):
        assert index_a.size <= 4
        return np.linalg.norm(prepared[index_a] - prepared[index_b], axis=1)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_distance_of_the_user_is_used_like_ours(n_jobs, make_batch):
    models = make_batch(5)
    means = np.einsum("nk,nkd->nd", models.weights, models.means)
    expected = np.linalg.norm(means[:, None] - means, axis=2)
    actual = pairwise_hmm_distances(models, metric=MeanDistance(), n_jobs=n_jobs)
    assert_array_equal(actual, expected)
    assert hmm_distance(models[1], models[4], MeanDistance()) == expected[1, 4]
    with pytest.raises(TypeError, match="must have a marginal and a transition"):
        pairwise_hmm_components(models, metric=MeanDistance())


@pytest.mark.parametrize("metric", ["maw", "jaw"])
@pytest.mark.parametrize("moves", [0.0, 1e-301])
def test_states_that_hardly_change_may_be_renamed(rng, metric, moves):
    # In one dimension many plans have the least cost, and next states add nothing.
    n_models, size = 6, 4
    chains = np.tile(np.eye(size), (n_models, 1, 1)) + moves * rng.random(
        (n_models, size, size)
    )
    means = rng.normal(size=(n_models, size, 1))
    weights = rng.dirichlet(np.ones(size), n_models)

    def distances(order):
        models = HMMBatch(
            chains[:, order][:, :, order],
            means[:, order],
            np.ones_like(means),
            weights=weights[:, order],
        )
        return pairwise_hmm_distances(models, metric=metric, alpha=0.5)

    straight = distances(np.arange(size))
    assert straight.max() > 0.1
    for _ in range(5):
        gap = np.abs(distances(rng.permutation(size)) - straight).max()
        assert gap < 1e-12
