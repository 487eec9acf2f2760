import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from skawhmm import (
    MAW,
    HMMBatch,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    KNeighborsHMMClassifierCV,
    KNeighborsHMMRegressor,
    PairwiseHMMDistance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm._estimator import mixed_precomputed
from skawhmm.neighbors._from_distances import nearest, nearest_others
from skawhmm.neighbors._leave_one_out import envelope, grid_neighbors, nearest_path


@pytest.fixture
def models(make_batch):
    return make_batch(n_models=30)


@pytest.fixture
def y():
    return np.array(["a", "b", "c"])[np.arange(30) * 7 % 3]


def points(values):
    values = np.reshape(values, (-1, 1, 1)).astype(float)
    return HMMBatch(np.ones_like(values), values, np.ones_like(values))


@pytest.mark.parametrize("n_neighbors", [1, 3, 20])
def test_nearest_is_a_stable_sort(rng, n_neighbors):
    distances = rng.integers(0, 6, size=(50, 20)).astype(float)
    distances[distances == 5] = np.inf
    found, indices = nearest(distances, n_neighbors)
    order = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    assert_array_equal(indices, order)
    assert_array_equal(found, np.take_along_axis(distances, order, axis=1))


def test_nearest_others_leave_the_diagonal_out(rng):
    distances = rng.integers(0, 4, size=(12, 12)).astype(float)
    _, indices = nearest_others(distances, 11)
    for n, row in enumerate(indices):
        order = np.argsort(distances[n], kind="stable")
        assert_array_equal(row, order[order != n])


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda d: np.exp(-d)])
@pytest.mark.parametrize("n_neighbors", [1, 4])
def test_votes_are_those_of_scikit_learn(models, y, weights, n_neighbors):
    knn = KNeighborsHMMClassifier(n_neighbors, weights=weights, alpha=0.3)
    knn.fit(models[:20], y[:20])
    oracle = KNeighborsClassifier(n_neighbors, weights=weights, metric="precomputed")
    oracle.fit(pairwise_hmm_distances(models[:20], alpha=0.3), y[:20])
    distances = pairwise_hmm_distances(models[20:], models[:20], alpha=0.3)
    fractions = oracle.predict_proba(distances)
    assert_allclose(knn.predict_proba(models[20:]), fractions)
    clear = (fractions == fractions.max(axis=1, keepdims=True)).sum(axis=1) == 1
    wanted = oracle.predict(distances)
    assert clear.any()
    assert_array_equal(knn.predict(models[20:])[clear], wanted[clear])
    for one, two in zip(
        knn.kneighbors(models[20:]), oracle.kneighbors(distances), strict=True
    ):
        assert_array_equal(one, two)


def test_a_tie_goes_to_the_nearest():
    # One vote each: scikit-learn would take "a", the first label.
    knn = KNeighborsHMMClassifier(2).fit(points([0, 3]), ["b", "a"])
    assert_array_equal(knn.predict(points([1, 2])), ["b", "a"])
    fractions = knn.predict_proba(points([1, 2]))
    assert_allclose(fractions, 0.5)
    assert_array_equal(np.argmax(fractions, axis=1), [1, 0])


def test_equal_distances_go_by_index():
    knn = KNeighborsHMMClassifier(1).fit(points([2, 0, 2]), ["b", "a", "c"])
    assert_array_equal(knn.predict(points([1])), ["b"])
    assert_array_equal(knn.kneighbors(points([1]), 3)[1], [[0, 1, 2]])


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_infinite_distances_are_the_farthest(weights):
    distances = np.full((3, 3), np.inf)
    np.fill_diagonal(distances, 0)
    knn = KNeighborsHMMClassifier(2, weights=weights, metric="precomputed")
    knn.fit(distances, [0, 1, 1])
    assert_array_equal(knn.predict([[3.0, np.inf, np.inf]]), [0])
    assert_array_equal(knn.kneighbors([[np.inf, np.inf, 3.0]])[1], [[2, 0]])
    assert_allclose(knn.predict_proba([[np.inf] * 3]), [[0.5, 0.5]])


@pytest.mark.parametrize("form", ["distances", "components"])
def test_precomputed_is_the_same(models, y, form):
    step, given = (
        PairwiseHMMDistance(),
        KNeighborsHMMClassifier(3, metric="precomputed"),
    )
    if form == "components":
        step.set_params(output="components")
        given.set_params(alpha=0.6)
    else:
        step.set_params(alpha=0.6)
    train, test = step.fit_transform(models[:20]), step.transform(models[20:])
    given.fit(train, y[:20])
    knn = KNeighborsHMMClassifier(3, alpha=0.6).fit(models[:20], y[:20])
    assert_array_equal(given.predict_proba(test), knn.predict_proba(models[20:]))
    for one, two in zip(given.kneighbors(), knn.kneighbors(), strict=True):
        assert_array_equal(one, two)


def test_alpha_is_searched_on_precomputed_components(models, y):
    stack = PairwiseHMMDistance(output="components").fit_transform(models)
    grid = {"alpha": [0, 0.5, 1], "n_neighbors": [1, 3]}
    given = GridSearchCV(KNeighborsHMMClassifier(metric="precomputed"), grid, cv=3)
    plain = GridSearchCV(KNeighborsHMMClassifier(), grid, cv=3)
    assert_array_equal(
        given.fit(stack, y).cv_results_["mean_test_score"],
        plain.fit(models, y).cv_results_["mean_test_score"],
    )


def test_none_leaves_each_model_out(models, y):
    knn = KNeighborsHMMClassifier(3).fit(models, y)
    wanted = cross_val_predict(clone(knn), models, y, cv=LeaveOneOut())
    assert_array_equal(knn.predict(None), wanted)


def test_regressor_agrees_with_scikit_learn(models, rng):
    targets = rng.normal(size=(30, 2))
    knn = KNeighborsHMMRegressor(4, weights="distance").fit(models, targets)
    oracle = KNeighborsRegressor(4, weights="distance", metric="precomputed")
    distances = pairwise_hmm_distances(models)
    oracle.fit(distances, targets)
    assert_allclose(knn.predict(models), oracle.predict(distances))
    assert_allclose(knn.predict(None), oracle.predict(None))


def test_graph_and_radius_agree_with_distances(models):
    retriever = HMMRetriever(n_neighbors=4, radius=1.2).fit(models[:20])
    distances = pairwise_hmm_distances(models, models[:20])
    graph = retriever.kneighbors_graph(models, mode="distance")
    assert graph.shape == (30, 20)
    found, indices = retriever.kneighbors(models)
    assert_array_equal(graph.indices.reshape(30, 4), indices)
    assert_array_equal(np.take_along_axis(distances, indices, axis=1), found)
    assert_array_equal(retriever.kneighbors_graph(models).data, 1)
    near, places = retriever.radius_neighbors(models)
    for row, values, where in zip(distances, near, places, strict=True):
        assert set(where) == set(np.flatnonzero(row <= 1.2))
        assert_array_equal(values, np.sort(row[row <= 1.2]))
    own = retriever.radius_neighbors(radius=np.inf, return_distance=False)
    assert all(n not in row and len(row) == 19 for n, row in enumerate(own))


def test_graph_feeds_scikit_learn(models, y):
    retriever = HMMRetriever(n_neighbors=6).fit(models[:20])
    oracle = KNeighborsClassifier(5, metric="precomputed")
    oracle.fit(retriever.kneighbors_graph(mode="distance"), y[:20])
    fractions = oracle.predict_proba(
        retriever.kneighbors_graph(models[20:], mode="distance")
    )
    knn = KNeighborsHMMClassifier().fit(models[:20], y[:20])
    assert_allclose(knn.predict_proba(models[20:]), fractions)


def test_too_many_neighbors_are_named(models, y):
    with pytest.raises(ValueError, match="n_neighbors = 40, n_samples = 30"):
        KNeighborsHMMClassifier(40).fit(models, y)
    knn = KNeighborsHMMClassifier(30).fit(models, y)
    with pytest.raises(ValueError, match="n_neighbors = 30, n_samples = 29"):
        knn.predict(None)
    with pytest.raises(ValueError, match="n_neighbors = 40, n_samples = 30"):
        knn.set_params(n_neighbors=40).predict(models)
    with pytest.raises(ValueError, match="n_neighbors must be an integer"):
        KNeighborsHMMClassifier(0).fit(models, y)
    with pytest.raises(ValueError, match="y must hold one value per entry of X"):
        KNeighborsHMMClassifier(1).fit(models, y[:-1])


def test_fitting_keeps_input_and_parameters(make_sequences):
    X, y = make_sequences()
    copies = [x.copy() for x in X]
    hmm = HMMTransformer(n_components=2, random_state=0)
    knn = KNeighborsHMMClassifier(1, hmm=hmm)
    params = knn.get_params()
    first = knn.fit(X, y).predict_proba(X)
    assert_array_equal(knn.fit(X, y).predict_proba(X), first)
    assert_array_equal(clone(knn).fit(X, y).predict_proba(X), first)
    assert knn.get_params() == params
    for x, kept in zip(X, copies, strict=True):
        assert_array_equal(x, kept)
    assert knn.n_features_in_ == 2
    with pytest.raises(ValueError, match=r"X has 1 features, .* is expecting 2"):
        knn.predict([x[:, :1] for x in X])


def test_envelope_is_lowest_everywhere(rng):
    alphas = rng.random(200)
    for _ in range(50):
        intercepts = rng.integers(0, 5, size=12) / 2
        slopes = rng.integers(-5, 5, size=12) / 2
        starts, lines = envelope(intercepts, slopes)
        assert starts[0] == 0
        assert (np.diff(starts) > 0).all()
        chosen = lines[np.searchsorted(starts, alphas, side="right") - 1]
        values = intercepts[:, None] + slopes[:, None] * alphas
        lowest = intercepts[chosen] + slopes[chosen] * alphas
        assert_allclose(lowest, values.min(axis=0), atol=1e-12)
        # As few pieces as possible: each line leads somewhere.
        assert len(set(lines)) == len(lines)


@pytest.mark.parametrize("entries", [1 << 20, 60, 1])
@pytest.mark.parametrize("values", ["real", "tied", "infinite", "negative"])
def test_grid_finds_the_neighbors_of_each_alpha(rng, values, entries, monkeypatch):
    monkeypatch.setattr("skawhmm.neighbors._leave_one_out.GRID_ENTRIES", entries)
    stack = rng.random((25, 25, 2)) * [1, 3]
    if values == "tied":
        stack = np.round(4 * stack)
    if values == "infinite":
        stack[stack > 0.8] = np.inf
    if values == "negative":
        stack = np.ones((25, 25, 2)) * -0.7
    alphas = np.linspace(0, 1, 33)
    for alpha, pair in zip(alphas, grid_neighbors(stack, alphas, 4), strict=True):
        wanted = nearest_others(mixed_precomputed(stack, alpha), 4)
        for one, two in zip(pair, wanted, strict=True):
            assert_array_equal(one, two)


def left_out(stack, y, alpha, n_neighbors, weights):
    knn = KNeighborsHMMClassifier(
        n_neighbors, weights=weights, metric="precomputed", alpha=alpha
    ).fit(stack, y)
    return knn.predict(None), knn.predict_proba(None)


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "roc_auc"])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_scores_are_leave_one_out(models, y, scoring, weights):
    y = np.where(np.arange(30) < 4, "a", y)
    stack = np.stack(pairwise_hmm_components(models), axis=-1)
    alphas, numbers = [0, 0.35, 1], [1, 2, 5]
    knn = KNeighborsHMMClassifierCV(alphas, numbers, weights=weights, scoring=scoring)
    knn.fit(models, y)
    score = {
        "accuracy": lambda labels, _: np.mean(labels == y),
        "balanced_accuracy": lambda labels, _: balanced_accuracy_score(y, labels),
        "roc_auc": lambda _, fractions: roc_auc_score(y, fractions, multi_class="ovr"),
    }[scoring]
    wanted = [
        [score(*left_out(stack, y, alpha, number, weights)) for number in numbers]
        for alpha in alphas
    ]
    assert_allclose(knn.scores_, wanted, atol=1e-8)
    assert knn.best_score_ == knn.scores_.max()


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "roc_auc"])
def test_path_is_exact(models, y, scoring):
    knn = KNeighborsHMMClassifierCV(n_neighbors=1, scoring=scoring).fit(models, y)
    ends, scores = knn.alpha_path_["alphas"], knn.alpha_path_["scores"]
    assert (ends[0], ends[-1]) == (0, 1)
    assert len(scores) > 3
    middles = (ends[1:] + ends[:-1]) / 2
    again = KNeighborsHMMClassifierCV(middles, 1, scoring=scoring).fit(models, y)
    assert_allclose(again.scores_[:, 0], scores, atol=1e-9)
    # No grid finds more, and the choice is one of the best.
    assert knn.best_score_ >= knn.scores_.max() - 1e-9
    chosen = KNeighborsHMMClassifierCV([knn.alpha_], 1, scoring=scoring)
    assert_allclose(chosen.fit(models, y).best_score_, scores.max())


def test_path_of_infinite_distances(y):
    stack = np.full((30, 30, 2), np.inf)
    ends, scores = nearest_path(stack, np.arange(30) % 2, np.eye(2))
    assert_array_equal(ends, [0, 1])
    assert len(scores) == 1


def test_choice_is_the_middle_of_the_widest_range():
    # The neighbour of the same class is nearest for alphas above 0.2.
    stack = np.zeros((4, 4, 2))
    same = np.equal.outer([0, 0, 1, 1], [0, 0, 1, 1])
    stack[..., 0], stack[..., 1] = np.where(same, 2.0, 1.75), np.where(same, 0, 1.0)
    knn = KNeighborsHMMClassifierCV(n_neighbors=1, metric="precomputed")
    knn.fit(stack, [0, 0, 1, 1])
    assert_allclose(knn.alpha_path_["alphas"], [0, 0.2, 1])
    assert_array_equal(knn.alpha_path_["scores"], [0, 1])
    assert_allclose(knn.alpha_, 0.6)
    knn.set_params(alphas=[0, 0.1, 0.3, 0.4, 0.9]).fit(stack, [0, 0, 1, 1])
    assert knn.alpha_ == 0.4


@pytest.mark.parametrize("metric", ["maw", MAW(alpha=0.9, p=2), "kl"])
def test_choice_takes_effect(models, y, metric):
    knn = KNeighborsHMMClassifierCV(metric=metric).fit(models, y)
    if metric != "kl":
        chosen = MAW(knn.alpha_, p=getattr(metric, "p", 1))
    else:
        chosen = metric
        assert_array_equal(knn.alphas_, [0])
    plain = KNeighborsHMMClassifier(knn.n_neighbors_, metric=chosen).fit(models, y)
    assert_array_equal(knn.predict_proba(models), plain.predict_proba(models))
    assert_array_equal(knn.kneighbors()[1], plain.kneighbors()[1])
    assert_array_equal(
        knn.kneighbors_graph(models).toarray(), plain.kneighbors_graph(models).toarray()
    )
    assert_allclose(np.mean(knn.predict(None) == y), knn.best_score_)
    if isinstance(metric, MAW):
        assert metric.alpha == 0.9


def test_numbers_of_neighbors_that_do_not_fit_are_left_out(models, y):
    knn = KNeighborsHMMClassifierCV().fit(models[:5], y[:5])
    assert_array_equal(knn.n_neighbors_tried_, [1, 3])
    with pytest.raises(ValueError, match="n_samples = 1"):
        KNeighborsHMMClassifierCV().fit(models[:1], y[:1])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"scoring": "f1"}, "scoring must be one of 'accuracy'"),
        ({"weights": "rank"}, "weights must be one of"),
        ({"alphas": [0.5, 1.5]}, r"alphas must be a number in \[0, 1\], got 1.5"),
        ({"n_neighbors": [0]}, "n_neighbors must be an integer"),
    ],
)
def test_bad_parameters_are_named(models, y, params, message):
    with pytest.raises(ValueError, match=message):
        KNeighborsHMMClassifierCV(**params).fit(models, y)


def test_single_infinite_distances_are_the_farthest(rng):
    y = np.arange(12) % 2
    distances = np.where(np.equal.outer(y, y), 1.0, np.inf)
    knn = KNeighborsHMMClassifierCV(n_neighbors=[1, 3], metric="precomputed")
    assert knn.fit(distances, y).best_score_ == 1
    assert_array_equal(knn.predict(distances), y)


def test_one_class_has_no_area(models):
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        KNeighborsHMMClassifierCV(scoring="roc_auc").fit(models, np.zeros(30))


def test_groups_do_not_vote_for_themselves():
    # Both models of a speaker are close, the word is far from that of other speakers:
    # with other speakers only, the choice is scored by the second component.
    speaker = np.repeat(np.arange(6), 2)
    word = np.tile([0, 1], 6)
    marginal = np.abs(speaker[:, None] - speaker) + 0.01 * (word[:, None] != word)
    transition = np.abs(word[:, None] - word) + 0.001 * marginal
    components = np.stack([marginal, transition], axis=-1)
    knn = KNeighborsHMMClassifierCV(n_neighbors=1, metric="precomputed")
    knn.fit(components, word, groups=speaker)
    same = speaker[:, None] == speaker
    for alpha, score in zip(knn.alphas_, knn.scores_[:, 0], strict=True):
        mixed = (1 - alpha) * marginal + alpha * transition
        nearest = np.where(same, np.inf, mixed).argmin(axis=1)
        assert score == pytest.approx(np.mean(word[nearest] == word))
    assert not np.array_equal(knn.scores_, knn.fit(components, word).scores_)
