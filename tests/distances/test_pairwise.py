import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import skawhmm.distances._pairwise as pairwise
import skawhmm.distances._tiles as tiles
from skawhmm import (
    HMMBatch,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)
from skawhmm.distances import pairwise_hmm_distances_chunked

KINDS = [("diag", 2), ("diag", 7), ("full", 3), ("full", 26)]


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}")
def models(request, make_batch):
    """Models of one to four states, two of them equal."""
    covariance_type, n_features = request.param
    sizes = [3, 1, 4, 2, 3, 2] if n_features < 20 else [2, 1, 3, 1, 2, 2]
    batch = make_batch(6, sizes, n_features, covariance_type)
    return HMMBatch.concatenate([batch, batch[2:3]])


def both(X, Y=None, **arguments):
    return np.stack(pairwise_hmm_components(X, Y, **arguments), axis=-1)


def test_matrix_is_symmetric_to_the_last_bit(models):
    values = both(models)
    assert_array_equal(values, values.swapaxes(0, 1))
    assert (np.diagonal(values) <= 1e-12).all()
    assert (values[2, 6] <= 1e-12).all()


def test_order_of_a_pair_does_not_matter(models):
    square = pairwise_hmm_distances(models)
    for i, j in ((0, 1), (2, 5), (3, 6), (4, 0)):
        forth = hmm_distance(models[i], models[j])
        assert forth == hmm_distance(models[j], models[i])
        assert forth == square[i, j]
        plan = register_states(models[i], models[j])
        assert_array_equal(plan, register_states(models[j], models[i]).T)


def test_rectangles_are_parts_of_the_square(models):
    square = both(models)
    assert_array_equal(both(models, models), square)
    assert_array_equal(both(models[:3], models[3:]), square[:3, 3:])
    assert_array_equal(both(models[4:], models[1:5]), square[4:, 1:5])
    # Here no model has as many states as the largest of all.
    assert_array_equal(both(models[[1, 3]]), square[np.ix_([1, 3], [1, 3])])


def test_order_of_the_models_does_not_matter(models, rng):
    order = rng.permutation(len(models))
    assert_array_equal(both(models[order]), both(models)[np.ix_(order, order)])


@pytest.mark.parametrize("edge", [1, 3])
def test_tiles_do_not_matter(edge, models, monkeypatch):
    expected = both(models), both(models[:5], models)
    monkeypatch.setattr(pairwise, "MAX_TILE", edge)
    monkeypatch.setattr(tiles, "TILES_A_SIDE", 1)
    assert_array_equal(both(models), expected[0])
    assert_array_equal(both(models[:5], models), expected[1])


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_jobs_do_not_matter(n_jobs, models):
    assert_array_equal(both(models, n_jobs=n_jobs), both(models))


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_back_ends_do_not_matter(backend, make_batch):
    models = make_batch(5, [3, 2, 3, 1, 2], 26, "full")
    expected = both(models)
    with joblib.parallel_config(backend, n_jobs=2):
        assert_array_equal(both(models), expected)


def test_infos_and_masks_of_the_neighbours_do_not_matter(make_batch):
    models = make_batch(6, n_features=4, covariance_type="full")
    expected = both(models)
    part = make_batch(1, n_features=4, covariance_type="full", seed=1)
    masked = HMMBatch(
        part.transmats,
        part.means,
        part.covars,
        observed=[[True, True, False, True]],
    )
    assert_array_equal(both(HMMBatch.concatenate([masked, models]))[1:, 1:], expected)
    named = HMMBatch(
        models.transmats, models.means, models.covars, info={"y": np.arange(6)}
    )
    assert_array_equal(both(named, models), expected)


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_masked_models_are_compared_on_common_features(covariance_type, make_batch):
    models = make_batch(3, n_features=4, covariance_type=covariance_type)
    observed = np.ones((3, 4), dtype=bool)
    observed[0, 1] = observed[2, 3] = False
    parts = models.transmats, models.means, models.covars
    values = both(HMMBatch(*parts, observed=observed))
    kept = [0, 2, 3]
    means, covars = models.means[..., kept], models.covars[..., kept]
    if covariance_type == "full":
        covars = covars[..., kept, :]
    smaller = both(HMMBatch(models.transmats, means, covars))
    assert_allclose(values[0, 1], np.sqrt(4 / 3) * smaller[0, 1], rtol=1e-9)
    assert_array_equal(values, values.swapaxes(0, 1))
    # What stands in a feature that was not observed does not matter.
    spoiled = models.means.copy()
    spoiled[0, :, 1] = 1e3
    other = HMMBatch(models.transmats, spoiled, models.covars, observed=observed)
    assert_allclose(both(other), values, rtol=1e-9, atol=1e-12)


def test_diagonal_and_full_models_can_be_compared(make_batch):
    diag = make_batch(3, n_features=3)
    full = HMMBatch(diag.transmats, diag.means, diag.covars[..., None] * np.eye(3))
    expected = both(diag)
    off = ~np.eye(3, dtype=bool)
    for values in (both(diag, full), both(full, diag), both(full)):
        assert_allclose(values[off], expected[off], rtol=1e-9)
        assert (values[~off] <= 1e-12).all()


def test_distances_of_one_pair_by_hand():
    # A mean moves by 3, a standard deviation by 4.
    a = HMMBatch([[[1.0]]], [[[0.0, 0.0]]], [[[1.0, 1.0]]])
    b = HMMBatch([[[1.0]]], [[[3.0, 0.0]]], [[[1.0, 25.0]]])
    for p in (0.5, 1, 2):
        assert_allclose(both(a, b, p=p)[0, 0], [5, 0])
    assert isinstance(hmm_distance(a, b), float)


def test_progress_is_shown_on_request(models, capsys):
    quiet = pairwise_hmm_distances(models)
    assert capsys.readouterr() == ("", "")
    loud = pairwise_hmm_distances(models, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "100%" in err
    assert_array_equal(loud, quiet)


class Watched:
    """A distance that notes how often it is asked, and can fail."""

    symmetric = True

    def __init__(self, error=None):
        self.error = error
        self.pairs = []
        self.lock = threading.Lock()

    def prepare(self, models):
        return np.arange(len(models), dtype=float)

    def distances(self, prepared, index_a, index_b):
        with self.lock:
            self.pairs.extend(zip(index_a.tolist(), index_b.tolist(), strict=True))
            if self.error is not None and len(self.pairs) > 20:
                raise self.error
        return np.abs(prepared[index_a] - prepared[index_b])


def test_each_pair_of_a_symmetric_matrix_is_computed_once(make_batch):
    metric = Watched()
    distances = pairwise_hmm_distances(make_batch(40), metric=metric)
    assert_array_equal(distances, abs(np.arange(40)[:, None] - np.arange(40.0)))
    assert len(metric.pairs) == 40 * 41 / 2
    assert len({frozenset(pair) for pair in metric.pairs}) == 40 * 41 / 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_errors_of_a_distance_stop_the_computation(error, make_batch, capsys):
    metric = Watched(error("stop"))
    with pytest.raises(error, match="stop"):
        pairwise_hmm_distances(make_batch(60), metric=metric, verbose=1)
    assert len(metric.pairs) < 60 * 61 / 2


SLOW = """
import signal
import numpy as np
from skawhmm import HMMBatch, pairwise_hmm_distances

# A shell starts jobs in the background with this signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Slow:
    symmetric = True
    # Many tiles: ten seconds of work if nothing stops it.
    max_tile = 8

    def prepare(self, models):
        print("started", flush=True)

    def distances(self, prepared, index_a, index_b):
        import time
        time.sleep(0.3)
        return np.zeros(len(index_a))

models = HMMBatch(np.ones((90, 1, 1)), np.zeros((90, 1, 1)), np.ones((90, 1, 1)))
try:
    pairwise_hmm_distances(models, metric=Slow(), n_jobs=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise on Windows")
def test_ctrl_c_stops_promptly():
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "started\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        begin = time.perf_counter()
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(timeout=10) == 0
        assert time.perf_counter() - begin < 5


def test_memory_stays_near_the_result(make_batch):
    models = make_batch(400, 2, 2, "full")
    pairwise_hmm_distances(models[:2])
    tracemalloc.start()
    distances = pairwise_hmm_distances(models)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < distances.nbytes + 20e6


def test_masks_of_many_models_need_no_matrix(make_batch):
    # 4000 x 4000 common features would take 128 MB.
    observed = np.ones((4000, 2), dtype=bool)
    observed[::2, 0] = False
    observed[1::2, 1] = False
    one = np.ones((4000, 1, 1))
    means = np.zeros((4000, 1, 2))
    tracemalloc.start()
    with pytest.raises(ValueError, match="model 0 of X and model 1 of Y"):
        pairwise_hmm_distances(HMMBatch(one, means, means, observed=observed))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize("call", [pairwise_hmm_distances, pairwise_hmm_components])
def test_bad_models(call, make_batch):
    models = make_batch()
    with pytest.raises(TypeError, match="X must be an HMMBatch, got list"):
        call([models])
    with pytest.raises(TypeError, match="Y must be an HMMBatch, got ndarray"):
        call(models, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="X must hold at least one model, got none"):
        call(models[:0])
    with pytest.raises(ValueError, match="Y must hold at least one model, got none"):
        call(models, models[[]])
    with pytest.raises(ValueError, match=r"number of features, got 2 and 3"):
        call(models, make_batch(n_features=3))


@pytest.mark.parametrize("call", [hmm_distance, register_states])
def test_bad_single_models(call, make_batch):
    models = make_batch()
    with pytest.raises(ValueError, match="a must hold one model, got 4"):
        call(models, models[0])
    with pytest.raises(ValueError, match="b must hold one model, got 2"):
        call(models[0], models[:2])
    with pytest.raises(TypeError, match="b must be an HMMBatch, got int"):
        call(models[0], 1)
    with pytest.raises(ValueError, match="b must hold at least one model"):
        call(models[0], models[:0])
    with pytest.raises(ValueError, match="number of features, got 2 and 3"):
        call(models[0], make_batch(1, n_features=3))


def test_models_without_a_common_feature(make_batch):
    models = make_batch(2)
    parts = models.transmats, models.means, models.covars
    apart = HMMBatch(*parts, observed=[[True, False], [False, True]])
    words = "share an observed feature, got none for model 0 of X and model 1 of Y"
    with pytest.raises(ValueError, match=words):
        pairwise_hmm_distances(apart)


def test_registration_leaves_padding_out(make_batch):
    models = make_batch(3, [2, 4, 3])
    plan = register_states(models[0], models[2])
    assert plan.shape == (2, 3)
    assert_allclose(plan.sum(axis=1), models.weights[0, :2])
    assert_allclose(plan.sum(axis=0), models.weights[2, :3])


def test_registration_keeps_transient_states(make_batch):
    # The last state is never reached, yet it is a state of the model.
    a = HMMBatch([[[1.0, 0.0], [0.5, 0.5]]], [[[0.0], [1.0]]], [[[1.0], [1.0]]])
    assert_array_equal(register_states(a, a), [[1, 0], [0, 0]])


class Broken:
    """A distance that is no number between two of the models."""

    symmetric = True

    def prepare(self, models):
        return models.keys

    def distances(self, prepared, index_a, index_b):
        wrong = {int(prepared[1]), int(prepared[40])}
        pairs = zip(prepared[index_a], prepared[index_b], strict=True)
        return np.array(
            [np.nan if {int(a), int(b)} == wrong else 1.0 for a, b in pairs]
        )


def test_nan_is_an_error_that_names_the_pair(make_batch):
    models = make_batch(n_models=50)
    with pytest.raises(ValueError, match=r"metric must .* NaN in row 1, column 40"):
        pairwise_hmm_distances(models, metric=Broken())


@pytest.mark.parametrize("dtype", [int, "x", complex, "M8[s]", bool, object, None])
def test_dtype_must_be_a_float_type(dtype, make_batch):
    with pytest.raises(
        (TypeError, ValueError), match=r"^dtype must be a type of float"
    ):
        pairwise_hmm_distances(make_batch(2), dtype=dtype)


@pytest.mark.parametrize("out", [3, [[0.0]], b"matrix.npy"])
def test_wrong_out_is_named(out, make_batch):
    with pytest.raises(TypeError, match=r"^out must be None, an array or the name of"):
        pairwise_hmm_distances(make_batch(2), out=out)


def all_chunks(*args, **kwargs):
    return list(pairwise_hmm_distances_chunked(*args, **kwargs))


@pytest.mark.parametrize(
    "function", [pairwise_hmm_distances, pairwise_hmm_components, all_chunks]
)
@pytest.mark.parametrize(("name", "value"), [("n_jobs", 0), ("verbose", "x")])
def test_how_pairs_are_computed_is_checked(function, name, value, make_batch):
    with pytest.raises((TypeError, ValueError), match=rf"^{name} must be"):
        function(make_batch(2), **{name: value})
