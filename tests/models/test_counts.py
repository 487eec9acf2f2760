import pickle
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skawhmm import HMMBatch, HMMTransformer
from skawhmm.fitting import MarkovChainTransformer
from skawhmm.groups import HMMAligner
from skawhmm.models._counts import Counts


def counts_of_all_paths(x, startprob, transmat, means, variances):
    """Return expected counts, summed over every path of states."""
    n_states, length = len(startprob), len(x)
    states, steps, total = np.zeros(n_states), np.zeros((n_states, n_states)), 0.0
    for path in product(range(n_states), repeat=length):
        weight = startprob[path[0]]
        for t, k in enumerate(path):
            weight *= stats.norm.pdf(x[t], means[k], np.sqrt(variances[k])).prod()
            if t:
                weight *= transmat[path[t - 1], k]
        total += weight
        np.add.at(states, list(path), weight)
        np.add.at(steps, (list(path[:-1]), list(path[1:])), weight)
    return states / total, steps / total


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": "pooled"},
        {"init": "pooled"},
        {"n_mix": 2},
        {"engine": "hmmlearn"},
        {"topology": "left-to-right"},
        {"covariance_type": "spherical"},
    ],
    ids=str,
)
def test_counts_are_those_of_all_paths(options, rng):
    if "engine" in options:
        pytest.importorskip("hmmlearn")
    X = [rng.normal(size=(6, 2)), rng.normal(size=(5, 2)) + 1]
    hmm = HMMTransformer(2, random_state=0, max_iter=3, tol=0.0, **options)
    models = hmm.fit_transform(X)
    for n, x in enumerate(X):
        states, steps = counts_of_all_paths(
            x,
            models.startprobs[n],
            models.transmats[n],
            models.means[n],
            models.covars[n],
        )
        assert_allclose(models.counts.states[n], states, atol=1e-6)
        assert_allclose(models.counts.transitions[n], steps, atol=1e-6)


FITS = {
    "gaussian": {},
    "full": {"covariance_type": "full"},
    "criterion": {"n_components": "bic"},
    "mixture": {"n_mix": 2},
    "pooled prior": {"prior": "pooled"},
    "pooled start": {"init": "pooled"},
    "counts": {"emission": "poisson"},
    "symbols": {"emission": "categorical"},
    "visible": {"emission": "categorical", "prior": 0.5},
}


@pytest.mark.filterwarnings("ignore:1 of 4 sequences have fewer distinct frames")
@pytest.mark.parametrize("name", FITS)
def test_counts_add_up_to_the_frames_and_steps_of_the_data(name, rng):
    lengths = [30, 12, 1, 45]
    kind = FITS[name].get("emission", "gaussian")
    X = [rng.normal(size=(n, 2)) for n in lengths]
    if kind != "gaussian":
        X = [rng.integers(0, 3, n) for n in lengths]
    if kind == "poisson":
        X = [x[:, None] for x in X]
    hmm = HMMTransformer(**{"n_components": 2, "random_state": 0, **FITS[name]})
    if name == "visible":
        hmm = MarkovChainTransformer(prior=0.5)
    models = hmm.fit_transform(X)
    assert_allclose(models.counts.states.sum(axis=1), lengths)
    steps = np.array(lengths) - 1
    assert_allclose(models.counts.transitions.sum(axis=(1, 2)), steps, atol=1e-9)
    # A frame that is not the last one is left, a frame that is not the first entered.
    for axis in (1, 2):
        rest = models.counts.states - models.counts.transitions.sum(axis=axis)
        assert_allclose(rest.sum(axis=1), 1)
        assert (rest > -1e-9).all()
    if hmm.pooled_model_ is not None:
        pooled = hmm.pooled_model_.counts
        assert_allclose(pooled.states.sum(), sum(lengths))
        assert_allclose(pooled.transitions.sum(), steps.sum(), atol=1e-9)


def test_counts_of_texts_are_plain_numbers():
    hmm = MarkovChainTransformer(prior="pooled")
    counts = hmm.fit_transform(["banana", "ab"]).counts
    assert_array_equal(counts.states, [[3, 1, 2], [1, 1, 0]])
    assert_array_equal(counts.transitions[0], [[0, 0, 2], [1, 0, 0], [2, 0, 0]])
    assert_array_equal(counts.transitions[1], [[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    assert_array_equal(hmm.pooled_model_.counts.states, [[4, 2, 2]])


def test_constant_sequences_have_counts():
    X = [np.ones((7, 2)), np.ones((4, 2))]
    counts = HMMTransformer(1, prior="pooled").fit_transform(X).counts
    assert_array_equal(counts.states[:, 0], [7, 4])
    assert_array_equal(counts.transitions[:, 0, 0], [6, 3])
    hmm = HMMTransformer(1, init="pooled").fit(X)
    assert hmm.pooled_model_.counts.transitions == 9


@pytest.fixture
def fitted(rng):
    X = [rng.normal(size=(n, 1)) + 5 * rng.integers(0, 2, (n, 1)) for n in (20, 30, 25)]
    return HMMTransformer(2, random_state=0).fit_transform(X)


def test_counts_follow_indexing_pickling_and_files(fitted, tmp_path):
    assert_array_equal(fitted[[2, 0]].counts.states, fitted.counts.states[[2, 0]])
    assert_array_equal(fitted[1].counts.transitions, fitted.counts.transitions[1:2])
    fitted.save(tmp_path / "models.npz")
    for again in (
        HMMBatch.load(tmp_path / "models.npz"),
        pickle.loads(pickle.dumps(fitted)),
    ):
        assert again == fitted
        assert_array_equal(again.counts.states, fitted.counts.states)
        assert_array_equal(again.counts.transitions, fitted.counts.transitions)
    assert fitted != fitted._changed(counts=None)
    assert fitted != fitted._changed(counts=fitted[[1, 0, 2]].counts)


def test_counts_are_read_only(fitted):
    with pytest.raises(ValueError, match="read-only"):
        fitted.counts.states[0, 0] = 1
    with pytest.raises(AttributeError):
        fitted.counts = None


def test_counts_are_padded_when_batches_are_concatenated(fitted, rng):
    larger = HMMTransformer(3, random_state=0).fit_transform([rng.normal(size=(40, 1))])
    both = HMMBatch.concatenate([fitted, larger])
    assert_array_equal(both.counts.states[:3, :2], fitted.counts.states)
    assert_array_equal(both.counts.states[:3, 2], 0)
    assert_array_equal(both.counts.transitions[3], larger.counts.transitions[0])
    given = HMMBatch(fitted.transmats, fitted.means, fitted.covars, info=fitted.info)
    assert given.counts is None
    assert HMMBatch.concatenate([fitted, given]).counts is None


def test_counts_follow_states_that_are_aligned(fitted):
    permuted = HMMBatch(
        fitted.transmats[:, ::-1, ::-1], fitted.means[:, ::-1], fitted.covars[:, ::-1]
    )
    counts = Counts(
        fitted.counts.states[:, ::-1], fitted.counts.transitions[:, ::-1, ::-1]
    )
    aligner = HMMAligner(fitted[0]).fit(fitted)
    wanted = aligner.transform(fitted)
    found = aligner.transform(permuted._changed(counts=counts))
    assert_allclose(found.counts.states, wanted.counts.states)
    assert_allclose(found.counts.transitions, wanted.counts.transitions)
    assert_allclose(wanted.counts.states[0], fitted.counts.states[0])
    assert aligner.transform(permuted).counts is None


def test_counts_of_states_that_become_one_are_added():
    models = HMMBatch(
        [[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]],
        [[[0.0], [0.2], [9.0]]],
        np.ones((1, 3, 1)),
    )
    steps = np.array([[[3.0, 2.0, 0.0], [0.0, 4.0, 1.0], [1.0, 0.0, 5.0]]])
    models = models._changed(counts=Counts(np.array([[5.0, 6.0, 6.0]]), steps))
    reference = HMMBatch(
        [[[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]],
        [[[0.1], [9.0], [50.0]]],
        np.ones((1, 3, 1)),
    )
    pair = HMMBatch([[[0.9, 0.1], [0.1, 0.9]]], [[[0.1], [9.0]]], np.ones((1, 2, 1)))
    found = HMMAligner(pair).fit(models).transform(models).counts
    assert_array_equal(found.states, [[11, 6]])
    assert_array_equal(found.transitions, [[[9, 1], [1, 5]]])
    found = HMMAligner(reference).fit(models[0]).transform(models).counts
    assert found.states.sum() == 17
    assert found.transitions.sum() == 16


@pytest.mark.parametrize("change", ["shape", "negative", "text"])
def test_damaged_counts_are_refused(change, fitted, tmp_path):
    path = tmp_path / "models.npz"
    fitted.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    states = arrays["counts.states"]
    arrays["counts.states"] = {
        "shape": states[:, :1],
        "negative": -states,
        "text": states.astype(str),
    }[change]
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"must hold counts.*damaged"):
        HMMBatch.load(path)


def test_counts_of_models_given_one_by_one_are_those_of_a_batch(rng):
    sizes = [2, 1, 3]
    states = [rng.random(n) for n in sizes]
    transitions = [rng.random((n, n)) for n in sizes]
    stacked = Counts.stacked(states, transitions)
    pairs = zip(states, transitions, strict=True)
    joined = Counts.concatenate([Counts(a[None], b[None]) for a, b in pairs])
    assert_array_equal(stacked.states, joined.states)
    assert_array_equal(stacked.transitions, joined.transitions)
    assert stacked.transitions[1].sum() == transitions[1].item()
