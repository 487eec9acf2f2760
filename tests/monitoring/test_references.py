import numpy as np
import pytest
from helpers import make_models
from numpy.testing import assert_array_equal

from skawhmm import HMMRetriever
from skawhmm.monitoring._references import References


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
