import itertools
import pickle

import numpy as np
import ot
import pytest
from hmmlearn.hmm import CategoricalHMM
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import (
    IAW,
    KL,
    HMMBatch,
    HMMEmbedding,
    HMMKMedoids,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    KNeighborsHMMClassifierCV,
    PairwiseHMMDistance,
    as_models,
    hmm_distance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)
from skawhmm.features import HMMClassDistance
from skawhmm.sequences import Deltas

SIZES = (3, 2, 1, 3)
seeds = st.integers(0, 10**6)

# Total variation, a sum of absolute values that is at most 1, lets several
# registrations cost the same; these distances do not depend on which of them is taken.
NO_CHOICE = [{"alpha": 0}, {"alpha": 0, "p": 2}, {"metric": "coupling"}]


def distances_between(rng, n_symbols):
    points = rng.normal(size=(n_symbols, 2))
    return np.linalg.norm(points[:, None] - points, axis=2)


def random_models(rng, sizes=SIZES, n_symbols=4, *, sparse=0.0, **kw):
    rows = [rng.dirichlet(np.ones(n_symbols), m) for m in sizes]
    for row in rows:
        row[:, 1:] *= rng.random((len(row), n_symbols - 1)) >= sparse
    return HMMBatch.from_emissionprobs(
        [rng.dirichlet(np.ones(m), m) for m in sizes],
        [row / row.sum(axis=1, keepdims=True) for row in rows],
        **kw,
    )


def path_terms(models, n, codes):
    """Yield every path of states of model n with its joint probability."""
    size = models.n_components[n]
    start, chain = models.startprobs[n], models.transmats[n]
    emit = models.emissionprobs[n]
    for path in itertools.product(range(size), repeat=len(codes)):
        value = start[path[0]]
        for i, j in itertools.pairwise(path):
            value *= chain[i, j]
        yield (
            path,
            value * np.prod([emit[k, s] for k, s in zip(path, codes, strict=True)]),
        )


@given(seeds, st.sampled_from(["equal", "metric", "any"]))
def test_ground_costs_are_those_of_exact_transport(seed, kind):
    rng = np.random.default_rng(seed)
    costs = {"equal": None, "metric": distances_between(rng, 5)}.get(kind)
    if kind == "any":
        costs = np.triu(rng.exponential(size=(5, 5)), 1)
        costs += costs.T
    models = random_models(rng, n_symbols=5, sparse=0.3, symbol_costs=costs)
    judge = 1 - np.eye(5) if kind == "equal" else costs
    index_a, index_b = np.array([0, 1]), np.array([3, 2])
    actual = models.emission.ground_costs().cross(index_a, index_b)
    for n, (a, b) in enumerate(zip(index_a, index_b, strict=True)):
        for i, j in itertools.product(range(SIZES[a]), range(SIZES[b])):
            rows = models.emissionprobs[a, i], models.emissionprobs[b, j]
            expected = ot.emd2(*(row / row.sum() for row in rows), judge)
            assert_allclose(np.sqrt(actual[n, i, j]), expected, atol=1e-12)


@given(seeds)
def test_total_variation_is_transport_where_all_symbols_are_equally_far(seed):
    rng = np.random.default_rng(seed)
    models = random_models(rng, sparse=0.3)
    same = HMMBatch.from_emissionprobs(
        models.transmats,
        models.emissionprobs,
        weights=models.weights,
        symbol_costs=1 - np.eye(4),
    )
    for params in NO_CHOICE:
        assert_allclose(
            pairwise_hmm_distances(models, **params),
            pairwise_hmm_distances(same, **params),
            atol=1e-12,
        )


@pytest.mark.parametrize(("p", "expected"), [(1, 1.2), (2, 1.2)])
def test_a_case_by_hand(p, expected):
    # Symbols on a line, a step apart.
    line = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    x = HMMBatch.from_emissionprobs(
        [[[1.0]]], [[[0.9, 0.1, 0.0]]], symbols="abc", symbol_costs=line
    )
    y = HMMBatch.from_emissionprobs(
        [[[1.0]]], [[[0.2, 0.3, 0.5]]], symbols="abc", symbol_costs=line
    )
    # Cumulated: .9, 1 against .2, .5; the gaps are .7 and .5.
    assert_allclose(hmm_distance(x, y, alpha=0, p=p), expected)
    apart = HMMBatch.concatenate([x, y])
    plain = HMMBatch.from_emissionprobs(apart.transmats, apart.emissionprobs)
    assert_allclose(hmm_distance(plain[0], plain[1], alpha=0, p=p), 0.7)


@pytest.mark.parametrize("metric", ["maw", "coupling", KL(n_steps=50)])
@given(seeds)
def test_names_and_order_of_states_change_nothing(metric, seed):
    rng = np.random.default_rng(seed)
    costs = distances_between(rng, 4)
    models = random_models(rng, symbol_costs=costs)
    expected = pairwise_hmm_distances(models, metric=metric)
    assert_array_equal(expected, expected.T)
    assert_array_equal(expected.diagonal(), 0)
    assert (expected >= 0).all() or isinstance(metric, KL)
    order = [3, 0, 2, 1]
    shuffled = pairwise_hmm_distances(models[order], metric=metric, n_jobs=2)
    assert_array_equal(shuffled, expected[np.ix_(order, order)])
    if isinstance(metric, KL):
        return
    turn, symbols = rng.permutation(3), rng.permutation(4)
    other = HMMBatch.from_emissionprobs(
        models.transmats[[0, 3]][:, turn][:, :, turn],
        models.emissionprobs[[0, 3]][:, turn][:, :, symbols],
        symbol_costs=costs[symbols][:, symbols],
    )
    # At alpha = 0 for the reason given above NO_CHOICE.
    params = {"metric": metric} | ({"alpha": 0} if metric == "maw" else {})
    actual = pairwise_hmm_distances(other, **params)[0, 1]
    wanted = pairwise_hmm_distances(models[[0, 3]], **params)[0, 1]
    assert_allclose(actual, wanted, atol=1e-10)


@given(seeds)
def test_split_states_change_nothing(seed):
    rng = np.random.default_rng(seed)
    models = random_models(rng)
    chain, rows, weights = (
        array[0] for array in (models.transmats, models.emissionprobs, models.weights)
    )
    twice, shares = [0, 0, 1, 2], np.array([0.3, 0.7, 1, 1])
    split = HMMBatch.from_emissionprobs(
        [chain[twice][:, twice] * shares],
        [rows[twice]],
        weights=[weights[twice] * shares],
    )
    # As with Gaussian states, how MAW registers twins shows in its transitions.
    for params in NO_CHOICE:
        expected = [hmm_distance(models[0], x, **params) for x in models]
        actual = [hmm_distance(split, x, **params) for x in models]
        assert_allclose(actual, expected, atol=1e-7)


@given(seeds)
def test_the_marginal_component_is_a_metric(seed):
    rng = np.random.default_rng(seed)
    models = random_models(rng, symbol_costs=distances_between(rng, 4))
    marginal, _ = pairwise_hmm_components(models)
    through = marginal[:, :, None] + marginal[None]
    assert (marginal[:, None] <= through + 1e-12).all()
    coupled = pairwise_hmm_distances(
        models, metric="coupling", metric_params={"gamma": 0}
    )
    assert_allclose(coupled, marginal, atol=1e-12)


@given(seeds)
def test_inference_sums_over_all_paths(seed):
    rng = np.random.default_rng(seed)
    models = random_models(rng, sparse=0.2)
    codes = rng.integers(4, size=(2, 5))
    scores = models.score(list(codes))
    for n in range(len(models)):
        for k, x in enumerate(codes):
            terms = list(path_terms(models, n, x))
            total = sum(value for _, value in terms)
            with np.errstate(divide="ignore"):
                assert_allclose(scores[k, n], np.log(total), rtol=1e-10)
            if total == 0:
                continue
            paths, values = models[n].decode([x])
            best = max(value for _, value in terms)
            assert_allclose(values[0], np.log(best), rtol=1e-10)
            found = next(v for path, v in terms if path == tuple(paths[0]))
            assert_allclose(found, best)
            post = np.zeros((5, models.n_components[n]))
            for path, value in terms:
                post[np.arange(5), list(path)] += value / total
            assert_allclose(models[n].predict_proba([x])[0], post, atol=1e-10)


def test_symbols_that_were_not_observed_are_summed_over(rng):
    models = random_models(rng)
    x = np.array([1, np.nan, 3])
    filled = [[1, s, 3] for s in range(4)]
    expected = np.logaddexp.reduce(models.score(filled), axis=0)
    assert_allclose(models.score([x])[0], expected)


def test_samples_follow_the_models(rng):
    models = random_models(rng, symbols="abcd")
    sequences, paths = models.sample(20_000, random_state=0)
    for n, (x, path) in enumerate(zip(sequences, paths, strict=True)):
        assert x.shape == (20_000, 1)
        for k in range(SIZES[n]):
            shares = np.mean(x[path == k] == models.symbols, axis=0)
            rounding = 3 / np.sqrt(np.sum(path == k))
            assert_allclose(shares, models.emissionprobs[n, k], atol=rounding)
    again, _ = models[[2, 0]].sample(20_000, random_state=0)
    assert_array_equal(again[1], sequences[0])
    own = models.score([x[:500] for x in sequences])
    assert_array_equal(own[:2].argmax(axis=1), [0, 1])


def test_a_symbol_of_probability_0_is_never_drawn():
    never = HMMBatch.from_emissionprobs([[[1.0]]], [[[0.0, 0.5, 0.0, 0.5, 0.0]]])
    drawn = never.sample(5000, random_state=0)[0][0]
    assert_array_equal(np.unique(drawn), [1, 3])


@pytest.mark.parametrize("method", ["variational", "monte_carlo"])
def test_divergence_of_single_states(rng, method):
    models = random_models(rng, (1, 1))
    a, b = models.emissionprobs[:, 0]
    expected = np.sum(a * np.log(a / b))
    steps = {"n_steps": 50_000} if method == "monte_carlo" else {}
    metric = KL(method=method, symmetric=False, **steps)
    tolerance = 1e-9 if method == "variational" else 0.03
    actual = hmm_distance(models[0], models[1], metric=metric)
    assert_allclose(actual, expected, atol=tolerance)


@given(seeds)
def test_the_variational_bound_is_above_the_rate(seed):
    models = random_models(np.random.default_rng(seed), (2, 3))
    bound = pairwise_hmm_distances(models, metric=KL(method="variational"))
    rate = pairwise_hmm_distances(models, metric=KL(n_steps=4000))
    assert bound[0, 1] > rate[0, 1] - 0.05
    assert bound[0, 0] == 0


def test_divergence_of_models_that_never_emit_a_symbol():
    models = HMMBatch.from_emissionprobs(
        [[[1.0]]] * 2, [[[0.5, 0.5, 0.0]], [[0.0, 0.5, 0.5]]]
    )
    for method in ("variational", "monte_carlo"):
        metric = KL(method=method)
        assert pairwise_hmm_distances(models, metric=metric)[0, 1] == np.inf


def test_divergence_on_the_data():
    hmm = HMMTransformer(2, emission="categorical", keep_sequences=True, random_state=0)
    models = hmm.fit_transform(["abababababab", "aabbaabbaabb", "abbaabbaabba"])
    distances = pairwise_hmm_distances(models, metric=KL(method="data", cap=50))
    assert (distances[0, 1:] > distances[1, 2]).all()


@pytest.mark.parametrize("symbols", [None, "abcd", ["north", "east", "south", "west"]])
@pytest.mark.parametrize("with_costs", [False, True])
def test_result_is_an_ordinary_batch(rng, tmp_path, symbols, with_costs):
    costs = distances_between(rng, 4) if with_costs else None
    models = random_models(
        rng, symbols=symbols, symbol_costs=costs, info={"y": [1, 2, 3, 4]}
    )
    models.save(tmp_path / "models.npz")
    assert HMMBatch.load(tmp_path / "models.npz") == models
    assert pickle.loads(pickle.dumps(models)) == models
    assert HMMBatch.concatenate([models[:2], models[2:]]) == models
    assert_array_equal(models.n_components, SIZES)
    assert_array_equal(models[[1, 3]].info["y"], [2, 4])
    assert repr(models) == (
        "HMMBatch(n_models=4, n_components=1..3, emission='categorical', n_symbols=4)"
    )
    assert len(set(models.keys.tolist())) == 4
    with pytest.raises(ValueError, match="read-only"):
        models.emissionprobs[0] = 0
    assert register_states(models[0], models[1]).shape == (3, 2)


def test_other_alphabets_and_costs_do_not_mix(rng):
    models = random_models(rng, symbols="abcd")
    renamed = random_models(rng, symbols="abce")
    dear = random_models(rng, symbols="abcd", symbol_costs=distances_between(rng, 4))
    assert models != renamed
    assert (
        models[0].keys
        != HMMBatch.from_emissionprobs(
            models[0].transmats, models[0].emissionprobs, symbols="abce"
        ).keys
    )
    with pytest.raises(
        ValueError, match=r"same symbols, got \['a', .*'e'\] in batch 1"
    ):
        HMMBatch.concatenate([models, renamed])
    with pytest.raises(ValueError, match="same symbol_costs, got others in batch 1"):
        pairwise_hmm_distances(models, dear)
    gaussian = HMMBatch([[[1.0]]], [[[0.0]]], [[[1.0]]])
    with pytest.raises(TypeError, match="one kind of states, got categorical and gau"):
        pairwise_hmm_distances(models, gaussian)
    with pytest.raises(AttributeError, match="'gaussian' have no emissionprobs"):
        assert gaussian.emissionprobs is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"emissionprobs": [[[0.5, 0.4]]]}, "emissionprobs must sum to one, got 0.9"),
        ({"emissionprobs": [[[0.0, 0.0]]]}, "emissionprobs must sum to one, got 0.0"),
        ({"emissionprobs": [[[1.5, -0.5]]]}, "emissionprobs must not be negative"),
        ({"emissionprobs": [[[np.nan, 1.0]]]}, "emissionprobs must be finite"),
        ({"emissionprobs": [[[1.0]] * 2]}, r"model 0 must have shape \(1, 1\)"),
        (
            {"emissionprobs": [[[1.0]]] * 2},
            "one entry per model, got {'transmats': 1, 'emissionprobs': 2}",
        ),
        ({"emissionprobs": [np.empty((1, 0))]}, "at least one feature, got none"),
        ({"symbols": "abc"}, "must name the 2 symbols of emissionprobs, got 3"),
        ({"symbols": "aa"}, "symbols must be distinct, got 'a' twice"),
        ({"symbols": [0.5, 1]}, "symbols must list the strings or integers"),
        ({"symbol_costs": [[0]]}, r"symbol_costs must have shape \(2, 2\)"),
        ({"symbol_costs": [0, 1]}, "symbol_costs must be a square array"),
        ({"symbol_costs": [[0, 1], [2, 0]]}, "symbol_costs must be symmetric"),
        ({"symbol_costs": [[1, 1], [1, 0]]}, "symbol_costs must be 0 between a symbol"),
        ({"symbol_costs": [[0, -1], [-1, 0]]}, "symbol_costs must be finite, not"),
        ({"sequences": ["01"]}, "holds the symbol '0', which is not among the 2"),
        ({"sequences": [[0], [1]]}, "sequences must hold one entry per model .1 "),
    ],
)
def test_bad_models(changed, words):
    given = {"transmats": [[[1.0]]], "emissionprobs": [[[0.5, 0.5]]], **changed}
    with pytest.raises(ValueError, match=words):
        HMMBatch.from_emissionprobs(**given)


@pytest.fixture
def texts(rng):
    """Words of two kinds: letters that repeat, and letters that take turns."""
    texts = []
    for n in range(20):
        turns = rng.random(60) < (0.1 if n % 2 else 0.9)
        texts.append("".join("ab"[k] for k in np.cumsum(turns) % 2))
    return texts, np.arange(20) % 2


def test_estimators_take_texts(texts):
    X, y = texts
    hmm = HMMTransformer(2, emission="categorical", random_state=0)
    models = hmm.fit_transform(X)
    near = KNeighborsHMMClassifier(1, hmm=hmm, alpha=0.5).fit(X[:10], y[:10])
    assert_array_equal(near.predict(X[10:]), y[10:])
    codes = [np.array([ord(c) for c in x]) for x in X]
    again = KNeighborsHMMClassifier(1, hmm=hmm, alpha=0.5).fit(codes[:10], y[:10])
    assert_array_equal(again.predict(codes[10:]), y[10:])
    tuned = KNeighborsHMMClassifierCV(hmm=hmm, n_neighbors=[1, 3]).fit(X, y)
    assert tuned.score(X, y) == 1
    medoids = HMMKMedoids(2, alpha=0.5, hmm=hmm).fit(X)
    assert len(set(zip(medoids.labels_, y, strict=True))) == 2
    assert medoids.cluster_centers_ == models[medoids.medoid_indices_]
    assert_array_equal(medoids.predict(X), medoids.labels_)
    nearest = HMMRetriever(3, alpha=0.5).fit(models).kneighbors(return_distance=False)
    assert_array_equal(y[nearest], np.repeat(y[:, None], 3, axis=1))
    lacking = ["c" + x if n == 3 else x for n, x in enumerate(X)]
    features = HMMClassDistance(hmm=hmm, alpha=0.5).fit(lacking, y).transform(X)
    assert_array_equal(features.argmin(axis=1), y)
    distances = PairwiseHMMDistance(hmm=hmm).fit(X[:5]).transform(X[5:])
    assert_array_equal(distances, pairwise_hmm_distances(models[5:], models[:5]))


def test_operations_that_need_numbers_raise():
    for estimator in (HMMEmbedding((1,)), Deltas()):
        with pytest.raises(TypeError, match=r"X\[0\] must be an array of numbers"):
            estimator.fit(["abba", "baba"])


@pytest.mark.parametrize("costs", [None, [[0, 1, 2], [1, 0, 1], [2, 1, 0]]])
def test_iaw_matches_symbols_by_their_costs(costs):
    probabilities = [[[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]], [[0.1, 0.1, 0.8], [1, 0, 0]]]
    models = HMMBatch.from_emissionprobs(
        [[[0.9, 0.1], [0.1, 0.9]]] * 2, probabilities, symbol_costs=costs
    )
    metric = IAW(n_samples=512)
    plan = register_states(models[0], models[1], metric)
    assert plan[0, 1] > 0.4
    assert plan[1, 0] > 0.4
    assert_allclose(plan.sum(axis=1), models.weights[0], atol=1e-9)


def test_to_hmmlearn_and_back(rng):
    models = random_models(rng, startprobs=None)
    x = rng.integers(4, size=30)
    for n, size in enumerate(SIZES):
        theirs = models.to_hmmlearn(n)
        assert isinstance(theirs, CategoricalHMM)
        assert_allclose(models[n].score([x])[0, 0], theirs.score(x[:, None]))
        back = as_models(theirs)
        assert_array_equal(back.emissionprobs[0], models.emissionprobs[n, :size])
    with pytest.raises(TypeError, match="got categorical and gaussian"):
        as_models([theirs, HMMBatch([[[1.0]]], [[[0.0]]], [[[1.0]]])])


def chains(emissionprobs, symbols="ab"):
    transmats = np.full((len(emissionprobs), 2, 2), 0.5)
    return HMMBatch.from_emissionprobs(transmats, emissionprobs, symbols=symbols)


def test_states_that_emit_one_symbol_each_are_called_by_it():
    assert chains([np.eye(2), np.eye(2)]).state_names == ("a", "b")
    assert chains([np.eye(2)[::-1]]).state_names == ("b", "a")
    assert chains([np.eye(2)], [3, 7]).state_names == ("3", "7")
    # Another order in the second model, a state of two symbols, two states of one.
    assert chains([np.eye(2), np.eye(2)[::-1]]).state_names is None
    assert chains([[[1, 0], [0.1, 0.9]]]).state_names is None
    assert chains([[[1, 0], [1, 0]]]).state_names is None


def test_padded_and_other_states_have_no_names(make_batch):
    one = HMMBatch.from_emissionprobs([[[1.0]]], [[[1.0, 0.0]]], symbols="ab")
    assert HMMBatch.concatenate([chains([np.eye(2)]), one]).state_names is None
    assert one.state_names == ("a",)
    assert make_batch(2).state_names is None
