"""Inputs of extreme size give finite results or an error, never NaN or a crash."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    HMMBatch,
    HMMEmbedding,
    HMMKMeans,
    HMMKMedoids,
    HMMTransformer,
    KNeighborsHMMClassifier,
    hmm_barycenter,
    pairwise_hmm_distances,
)
from skawhmm.cluster._algorithms import medoid_partition

SCALES = [1e-300, 1e-160, 1e-155, 1e-145, 1e-100, 1e30, 9e98]

METRICS = {
    "maw": {},
    "jaw": {},
    "coupling": {},
    "mmd": {},
    "iaw": {"metric_params": {"n_samples": 16}},
    "iaw, debiased": {"metric_params": {"n_samples": 16, "debias": True}},
}


def scaled_models(scale, covariance_type="diag"):
    """Models of which some share states, and some have flat ones."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(5, 3, 2))
    means[1] = means[0]
    covars = rng.random((5, 3, 2))
    covars[2, 0, 0] = 0.0
    if covariance_type == "full":
        roots = rng.normal(size=(5, 3, 2, 2))
        roots[3, 1, :, 1] = 0.0
        covars = roots @ roots.swapaxes(2, 3)
    chains = rng.dirichlet(np.ones(3), (5, 3))
    return HMMBatch(chains, scale * means, scale * covars * scale)


def scaled_sequences(scale):
    """Sequences of which some are shorter than models have parameters."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(3, 25, 8)
    return [scale * (rng.normal(size=(n, 3)) + rng.normal(size=3)) for n in lengths]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
@pytest.mark.parametrize(
    ("metric", "p"),
    [
        (metric, p)
        for metric in METRICS
        for p in ((None,) if metric == "mmd" else (0.5, 1, 2))
    ],
)
def test_distances_have_no_unit(scale, covariance_type, metric, p):
    name, given = metric.partition(",")[0], METRICS[metric]
    distances = pairwise_hmm_distances(
        scaled_models(scale, covariance_type), metric=name, p=p, **given
    )
    assert np.isfinite(distances).all()
    # The sample of IAW is another one at another scale.
    if scale > 1e-140 and name != "iaw":
        expected = pairwise_hmm_distances(
            scaled_models(1.0, covariance_type), metric=name, p=p, **given
        )
        # The bandwidth of MMD follows the scale.
        unit = 1.0 if name == "mmd" else scale
        assert_allclose(distances / unit, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*fewer distinct frames")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("covariance_type", ["diag", "full", "tied", "spherical"])
def test_fits_are_finite(scale, covariance_type):
    models = HMMTransformer(4, covariance_type).fit_transform(scaled_sequences(scale))
    for array in (models.means, models.covars, models.transmats, models.weights):
        assert np.isfinite(array).all()
    assert np.isfinite(models.info["log_likelihood"]).all()


@pytest.mark.filterwarnings("ignore:.*fewer distinct frames")
@pytest.mark.parametrize("scale", SCALES)
def test_estimators_are_finite(scale):
    X, y = scaled_sequences(scale), np.arange(8) % 2
    assert np.isfinite(HMMKMeans(3, random_state=0).fit(X).inertia_)
    embedding = HMMEmbedding(n_components=(2,), random_state=0)
    assert np.isfinite(embedding.fit_transform(X)).all()
    assert set(KNeighborsHMMClassifier(3).fit(X, y).predict(X)) <= {0, 1}
    for covariance_type in ("diag", "full"):
        average, _ = hmm_barycenter(scaled_models(scale, covariance_type))
        assert np.isfinite(average.means).all()
        assert np.isfinite(average.covars).all()


def test_tiny_variances_count_as_zero():
    covars = [[[1e-300, 1e-280]]]
    assert_array_equal(
        HMMBatch([[[1.0]]], [[[0.0, 0.0]]], covars).covars, [[[0, 1e-280]]]
    )
    full = np.diag([1e-300, 1e-280])[None, None]
    batch = HMMBatch([[[1.0]]], [[[0.0, 0.0]]], full)
    assert_array_equal(batch.covars[0, 0], np.diag([0, 1e-280]))


def test_parameters_out_of_range_are_refused(rng):
    chains, ones = np.full((2, 4, 4), 0.25), np.ones((2, 4, 1))
    huge = rng.normal(size=(2, 4, 1)) * 1e160
    with pytest.raises(ValueError, match=r"means must be of size at most 1e\+100, got"):
        HMMBatch(chains, huge, ones)
    with pytest.raises(ValueError, match=r"covars must be of size at most 1e\+200"):
        HMMBatch(chains, ones, ones * 1e201)
    with pytest.raises(ValueError, match=r"rates must be of size at most 1e\+100"):
        HMMBatch.from_rates(chains, ones * 1e101)
    table = 1e101 * (1 - np.eye(2))
    with pytest.raises(ValueError, match=r"symbol_costs must be .* at most 1e\+100"):
        HMMBatch.from_emissionprobs(chains, np.full((2, 4, 2), 0.5), symbol_costs=table)


@pytest.mark.parametrize("value", [1e101, np.inf, np.nan])
@pytest.mark.parametrize("p", [1, 2])
def test_costs_out_of_range_are_refused(value, p):
    models = HMMBatch.from_state_costs(
        np.full((2, 2, 2), 0.5),
        lambda x, y: np.where(x == y, 0.0, value),
        states=[[0.0, 1.0], [2.0, 3.0]],
    )
    with pytest.raises(ValueError, match=r"cost must be finite, .* at most 1e\+100"):
        pairwise_hmm_distances(models, p=p)


def test_files_out_of_range_are_refused(tmp_path):
    path = tmp_path / "models.npz"
    scaled_models(1.0).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    name = next(name for name in arrays if name.startswith("means"))
    arrays[name] = arrays[name] * 1e160
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"means must be of size at most 1e\+100"):
        HMMBatch.load(path)


def test_frames_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"X\[0\] must hold values .* 1e\+100, got 2e"):
        HMMTransformer().fit([np.array([0.0, 2e100])])


def test_precomputed_distances_out_of_range_are_refused(rng):
    X = rng.random((6, 6)) * 1e308
    with pytest.raises(ValueError, match=r"X must hold distances .* 1e\+150, or inf"):
        HMMKMedoids(2, metric="precomputed").fit(X)


@pytest.mark.parametrize("scale", [1e-310, 1e-150, 1.0, 1e150, 1e308])
def test_medoids_have_no_unit(scale):
    distances = np.abs(np.subtract.outer(*2 * [np.array([0, 0.1, 0.2, 0.8, 0.9, 1])]))
    medoids, _ = medoid_partition(scale * distances, 2, 10)
    assert sorted(medoids) == [1, 4]
    distances[0, 3:] = distances[3:, 0] = np.inf
    medoids, _ = medoid_partition(scale * distances, 2, 10)
    assert sorted(medoids) == [1, 4]
