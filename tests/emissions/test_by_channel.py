"""States whose channels are of several kinds."""

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers import MIXED_BLOCKS as BLOCKS
from helpers import mixed_frames
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from skawhmm import (
    IAW,
    HMMBatch,
    HMMKMeans,
    HMMTransformer,
    KNeighborsHMMClassifier,
    hmm_barycenter,
    hmm_group_test,
    pairwise_hmm_distances,
)
from skawhmm.emissions import (
    ByChannel,
    Categorical,
    Gamma,
    Gaussian,
    VonMises,
)
from skawhmm.emissions._model import Model
from skawhmm.features import HMMClassDistance
from skawhmm.fitting._em import Rule, Steps
from skawhmm.groups import distance_interval, state_table


@pytest.fixture
def tables(rng):
    """Sequences of two kinds, which differ in the length of steps."""
    y = np.arange(10) % 2
    X = []
    for label in y:
        busy = np.cumsum(rng.random(200) < 0.08) % 2
        X.append(mixed_frames(rng, busy, factor=1 + label))
    return X, y


@pytest.fixture
def models(tables):
    hmm = HMMTransformer(2, emission=ByChannel(BLOCKS), random_state=0)
    return hmm.fit_transform(tables[0])


def test_every_block_finds_its_states(models):
    steps = np.sort(models.emission.block("step").means[::2, :, 0], axis=1)
    assert_allclose(steps.mean(axis=0), [0.9, 6.0], rtol=0.1)
    angles = np.sort(models.emission.block("turn").locations[:, :, 0], axis=1)
    assert_allclose(angles.mean(axis=0), [0, 2], atol=0.1)
    rates = np.sort(models.emission.block("calls").rates[:, :, 0], axis=1)
    assert_allclose(rates.mean(axis=0), [2, 8], rtol=0.1)
    assert models.info["converged"].all()


def test_log_densities_are_sums_over_blocks(models, tables):
    x = models._checked(tables[0][:1])[0]
    chain = models.startprobs[0], models.transmats[0]
    whole = models.emission.densities(0, x, *chain)
    parts = [
        models.emission.block(name).densities(0, x[:, columns].copy(), *chain)
        for name, _, columns in BLOCKS
    ]
    assert_allclose(whole, sum(parts), rtol=1e-12)


def test_log_likelihoods_of_fits_are_those_of_scores(models, tables):
    assert_allclose(
        models.info["log_likelihood"], np.diagonal(models.score(tables[0])), rtol=1e-6
    )


def test_iaw_compares_frames_block_by_block(models):
    D = pairwise_hmm_distances(models[:4], metric=IAW(n_samples=64, debias=True))
    assert_allclose(D, D.T)
    assert_allclose(np.diag(D), 0, atol=1e-9)
    assert (D[np.triu_indices(4, 1)] > 0).all()
    marginal = pairwise_hmm_distances(models[:4], alpha=0)
    sampled = pairwise_hmm_distances(models[:4], metric=IAW(alpha=0, n_samples=64))
    assert (sampled >= marginal - 1e-9).all()
    smooth = IAW(n_samples=32, coupling="sinkhorn")
    assert np.isfinite(pairwise_hmm_distances(models[:2], metric=smooth)).all()


def test_order_of_blocks_and_columns_changes_nothing(tables, models):
    order = [6, 2, 3, 8, 0, 5, 1, 4, 7]
    place = {column: n for n, column in enumerate(order)}
    blocks = [
        (name, family, [place[c] for c in columns]) for name, family, columns in BLOCKS
    ]
    emission = ByChannel(blocks[::-1], scale=models.emission.scale)
    arrays = {
        "transmats": models.transmats,
        "weights": models.weights,
        "startprobs": models.startprobs,
        **models.emission.parameters,
    }
    turned = HMMBatch.from_arrays(arrays, emission=emission)
    X = [x[:, order] for x in tables[0]]
    assert_allclose(turned.score(X), models.score(tables[0]), rtol=1e-12)
    assert_allclose(
        pairwise_hmm_distances(turned), pairwise_hmm_distances(models), atol=1e-12
    )


@pytest.mark.parametrize("kind", ["diag", "full"])
def test_one_gaussian_block_is_the_gaussian_family(rng, kind):
    X = [rng.normal(size=(60, 2)).cumsum(axis=0) for _ in range(6)]
    block = ByChannel([("all", Gaussian(kind), slice(None))])
    ours = HMMTransformer(2, emission=block, random_state=0).fit_transform(X)
    theirs = HMMTransformer(2, emission=Gaussian(kind), random_state=0).fit_transform(X)
    assert_array_equal(ours.emission.parameters["all.means"], theirs.means)
    assert_allclose(
        pairwise_hmm_distances(ours), pairwise_hmm_distances(theirs), atol=1e-12
    )
    assert_allclose(ours.score(X), theirs.score(X), rtol=1e-12)


def test_em_never_lowers_the_objective(tables):
    family, X = ByChannel(BLOCKS).learned(tables[0][:3], caller="test")
    data = family.data(X, [0, 3])
    for seed in range(3):
        states = family.random_states(data.frames, 2, np.random.default_rng(seed))
        start = Model(
            np.array([[0.5, 0.5]]),
            np.array([[[0.6, 0.4], [0.3, 0.7]]]),
            tuple(np.array(part)[None] for part in states),
        )
        steps = Steps(family, data, Rule(relevance=5.0), start)
        model = Model(*map(np.array, start[:2]), tuple(map(np.array, start.states)))
        only, values = np.array([0]), []
        for _ in range(10):
            value, expected = steps.expectation(model, only)
            values.append(value[0] + steps.log_priors(model, only)[0])
            steps.maximization(expected, only, model, only)
        assert (np.diff(values) > -1e-6).all()


# Options


def test_columns_may_have_any_form(tables):
    X = [x[:, :4] for x in tables[0]]
    named = [pd.DataFrame(x, columns=[*"abcd"]) for x in X]
    found = []
    for columns, given in (
        ([[0], [1], [2, 3]], X),
        ([0, -3, slice(2, 4)], X),
        ([np.array([0]), np.arange(4) == 1, [False, False, True, True]], X),
        (["a", ["b"], ["c", "d"]], named),
    ):
        names = ("step", Gamma()), ("turn", VonMises()), ("posture", Gaussian())
        blocks = [(*pair, own) for pair, own in zip(names, columns, strict=True)]
        hmm = HMMTransformer(2, emission=ByChannel(blocks), random_state=0)
        found.append(hmm.fit_transform(given))
    for other in found[1:]:
        assert_array_equal(other.transmats, found[0].transmats)


def test_options_of_blocks_are_parameters():
    emission = ByChannel(BLOCKS[:2])
    copy = clone(emission).set_params(step__zero_mass=True, scale=None)
    assert copy.get_params()["step__zero_mass"] is True
    assert emission.get_params()["step__zero_mass"] is False
    assert copy.scale is None
    copy.set_params(turn=Gaussian())
    assert isinstance(copy.get_params()["turn"], Gaussian)
    with pytest.raises(ValueError, match=r"'height'.*\['step', 'turn'\]"):
        copy.set_params(height=Gaussian())


def test_scales_are_learned_given_or_left_out(tables):
    X = [x[:, :2] for x in tables[0]]
    spread = HMMTransformer(2, emission=ByChannel(BLOCKS[:2]), random_state=0)
    learned = spread.fit(X).transform(X[:2])
    assert_allclose(learned.emission.scale["step"], np.concatenate(X)[:, 0].std())
    assert 0.5 < learned.emission.scale["turn"] < 1.8
    assert "scale={'step'" in repr(learned)
    one = {"step": 2.0, "turn": 0.5}
    given = clone(spread).set_params(emission__scale=one).fit_transform(X[:2])
    none = clone(spread).set_params(emission__scale=None).fit_transform(X[:2])
    pair = np.array([0]), np.array([1])
    steps, turns = (none.emission.block(name).cross(*pair) for name in one)
    assert_allclose(given.emission.cross(*pair), steps / 4 + turns * 4)
    assert_allclose(none.emission.cross(*pair), steps + turns)
    with pytest.raises(ValueError, match="same states"):
        HMMBatch.concatenate([given, none])


def test_angles_and_symbols_have_a_spread(rng):
    angles = rng.uniform(-np.pi, np.pi, (3000, 1))
    assert_allclose(VonMises().spread([angles]), np.pi / np.sqrt(6), rtol=0.02)
    codes = rng.integers(0, 4, (3000, 1)).astype(float)
    found = Categorical([0, 1, 2, 3]).spread([codes])
    assert_allclose(found, np.sqrt(0.5 * 0.75), rtol=0.02)


# What works as with Gaussian states


def test_files_and_pickles_keep_models(models, tmp_path):
    path = tmp_path / "models.npz"
    models.save(path)
    loaded = HMMBatch.load(path)
    assert loaded == models
    assert loaded.emission.scale == models.emission.scale
    assert pickle.loads(pickle.dumps(models)) == models
    assert HMMBatch.load(path, emission=models.emission) == models


def test_samples_decode_to_their_paths(models):
    (x, *_), (path, *_) = models.sample(300, random_state=0)
    decoded, _ = models[0].decode([x])
    assert (decoded[0] == path).mean() > 0.97


def test_pipeline_grid_search_clusters_and_groups(tables, models):
    X, y = tables
    steps = Pipeline(
        [
            ("hmm", HMMTransformer(2, emission=ByChannel(BLOCKS), random_state=0)),
            ("knn", KNeighborsHMMClassifier(1)),
        ]
    )
    grid = {"hmm__emission__scale": ["spread", None], "knn__alpha": [0.0, 0.5]}
    search = GridSearchCV(steps, grid, cv=2).fit(X, y)
    assert search.best_score_ >= 0.8
    labels = HMMKMeans(2, random_state=0).fit_predict(models)
    assert {*labels} == {0, 1}
    center, _ = hmm_barycenter(models)
    assert np.isfinite(center.score(X)).all()
    test = hmm_group_test(models, y, n_permutations=19, random_state=0)
    assert 0 < test.pvalue <= 1
    columns = state_table(models)
    assert any("mean_0" in name for name in columns)


def test_missing_values_of_a_block_are_skipped(tables):
    X = [x.copy() for x in tables[0]]
    X[0][::3, 0] = np.nan
    X[1][::4, [1, 4, 5, 6]] = np.nan
    hmm = HMMTransformer(2, emission=ByChannel(BLOCKS), random_state=0)
    found = hmm.fit_transform(X)
    steps = np.sort(found.emission.block("step").means[0, :, 0])
    assert_allclose(steps, [0.9, 6.0], rtol=0.25)
    assert np.isfinite(pairwise_hmm_distances(found)).all()


def test_a_constant_block_does_no_harm(tables):
    X = [x.copy() for x in tables[0]]
    for x in X:
        x[:, 0], x[:, 2], x[:, 4], x[:, 5] = 2.0, 7.0, 1.0, 0.0
    hmm = HMMTransformer(2, emission=ByChannel(BLOCKS), random_state=0)
    found = hmm.fit_transform(X)
    assert found.emission.scale["step"] == 1.0
    assert_allclose(found.emission.block("step").means, 2.0)
    assert np.isfinite(pairwise_hmm_distances(found)).all()


@pytest.mark.parametrize("params", [{"init": "pooled"}, {"prior": "pooled"}])
def test_sequences_that_do_not_vary_share_a_pooled_model(tables, params):
    X = [np.repeat(x[:1], 20, axis=0) for x in tables[0][:4]]
    hmm = HMMTransformer(2, emission=ByChannel(BLOCKS), random_state=0, **params)
    found = hmm.fit_transform(X)
    scores = np.diagonal(found.score(X))
    assert_allclose(found.info["log_likelihood"], scores, rtol=1e-9)
    noise = found.emission.block("noise")
    sizes = np.abs(noise.locations).max()
    assert (noise.scales >= 1e-6 * np.abs(noise.locations).min()).all()
    assert (noise.scales <= 10 * sizes).all()


@pytest.mark.parametrize("emission", [ByChannel(BLOCKS), "gaussian"])
def test_log_likelihoods_count_states_that_were_cut_off(tables, emission):
    X = [x[:12] for x in tables[0]]
    hmm = HMMTransformer(
        4, emission=emission, init="pooled", max_iter=0, random_state=0
    )
    found = hmm.fit_transform(X)
    # Some states of the pooled model have no frame in a short sequence.
    assert (found.weights == 0).any()
    scores = np.diagonal(found.score(X))
    assert_allclose(found.info["log_likelihood"], scores, rtol=1e-12)


def test_prior_makes_short_sequences_usable(tables):
    X = [x[:12] for x in tables[0]]
    hmm = HMMTransformer(
        2, emission=ByChannel(BLOCKS), prior="pooled", random_state=0, relevance=10
    )
    found = hmm.fit_transform(X)
    assert np.isfinite(found.info["log_likelihood"]).all()
    pooled = hmm.pooled_model_.emission.block("step").means
    assert (np.abs(found.emission.block("step").means / pooled - 1) < 0.8).all()


def test_errors_name_the_block(tables):
    X = [x.copy() for x in tables[0]]
    X[1][3, 0] = -1.0
    hmm = HMMTransformer(2, emission=ByChannel(BLOCKS))
    with pytest.raises(ValueError, match=r"Block 'step': X\[1\].*negative.*-1"):
        hmm.fit(X)
    X[1][3, 0] = 1.0
    X[2][:, 1] = np.nan
    with pytest.raises(ValueError, match=r"Block 'turn': X\[2\].*NaN"):
        hmm.fit(X)
    X[2][:, 1], X[0][:, 3] = 0.0, np.nan
    with pytest.raises(ValueError, match=r"Block 'posture': X\[0\].*NaN in channel 3"):
        hmm.fit_transform(X)


def test_unknown_blocks_are_named(models):
    with pytest.raises(ValueError, match="'speed'"):
        models.emission.block("speed")


def test_models_of_classes_have_the_scales_of_all_sequences(tables):
    X, y = tables
    hmm = HMMTransformer(2, emission=ByChannel(BLOCKS), random_state=0)
    features = HMMClassDistance(hmm=hmm).fit(X, y)
    scales = features.hmms_[0].transform(X).emission.scale
    assert features.models_[0].emission.scale == scales
    assert_array_equal(features.transform(X).argmin(axis=1), y)


def test_refits_keep_the_scales_of_their_models(tables, models):
    hmm = HMMTransformer(2, emission=ByChannel(BLOCKS), random_state=0)
    found = distance_interval(
        models[0], models[1], hmm=hmm, n_resamples=3, random_state=0
    )
    assert 0 < found.low <= found.high
