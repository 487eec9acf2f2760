import numpy as np
import pytest
from helpers import make_models
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMRetriever, pairwise_hmm_distances
from skawhmm.distances import JAW, MAW
from skawhmm.monitoring import _references
from skawhmm.monitoring._references import References, mean_vectors


@pytest.mark.parametrize("metric", ["maw", "jaw", "mmd"])
@pytest.mark.parametrize("full", [True, False])
def test_neighbours_are_those_of_a_retriever(rng, metric, full):
    models = make_models(rng, n_models=30, full=full)
    retriever = HMMRetriever(4, metric=metric, algorithm="brute").fit(models[:25])
    metric = retriever._check_ready()
    references = References(retriever.models_, metric)
    for i in range(25, 30):
        window = models[i : i + 1]
        wanted = retriever._nearest(window, 4, metric)
        if references.takes(window):
            for one, two in zip(references.nearest(window, 4), wanted, strict=True):
                assert_array_equal(one, two)
    assert references.takes(window) == (references.prepared is not None)
    assert not references.takes(models[25:27])


def test_windows_of_another_size_are_left_to_the_index(rng):
    models = make_models(rng, n_models=8)
    metric = HMMRetriever(2, metric="jaw").fit(models)._check_ready()
    other = make_models(rng, n_models=1, n_components=4)
    assert References(models, metric).takes(models[:1])
    assert not References(models, metric).takes(other)
    assert np.isfinite(References(models, metric).nearest(models[:1], 2)[0]).all()


@pytest.mark.parametrize("metric", [MAW(0.1), JAW(), JAW(0.3, p=2), MAW(p=0.5)])
@pytest.mark.parametrize("full", [True, False])
def test_bounds_are_below_distances_and_leave_the_neighbours_unchanged(
    rng, monkeypatch, metric, full
):
    models = make_models(rng, n_models=90, full=full)
    # Some are equal to others, so that distances tie.
    references = HMMBatch.concatenate([models[:60], models[:20]])
    retriever = HMMRetriever(4, metric=metric, algorithm="brute").fit(references)
    monkeypatch.setattr(_references, "N_FIRST", 5)
    found = References(retriever.models_, metric)
    n_computed = []
    distances = References._distances

    def counted(self, window, prepared, rows):
        n_computed.append(len(rows))
        return distances(self, window, prepared, rows)

    monkeypatch.setattr(References, "_distances", counted)
    for i in [*range(60, 90), 3]:
        window = models[i : i + 1]
        all_distances = pairwise_hmm_distances(window, references, metric=metric)[0]
        bounds = found._bounds(window, metric.prepare(window))
        assert np.all(bounds <= all_distances)
        wanted = retriever._nearest(window, 4, metric)
        for one, two in zip(found.nearest(window, 4), wanted, strict=True):
            assert_array_equal(one, two)
    # Bounds need p >= 1; they then spare distances.
    assert (sum(n_computed) < 31 * 80) == (metric.p >= 1)


def test_mean_vectors_worked_by_hand():
    # Two states at 0 and 4 with deviations 1 and 3, occupied 3/4 and 1/4 of the time.
    models = HMMBatch([[[0.9, 0.1], [0.3, 0.7]]], [[[0.0], [4.0]]], [[[1.0], [9.0]]])
    points = mean_vectors(models, MAW().prepare(models))
    assert_allclose(points, [[1.0, 1.5]])
