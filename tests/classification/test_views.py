import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skawhmm import (
    JAW,
    Framewise,
    HMMEmbedding,
    HMMTransformer,
    make_classifier,
    pairwise_hmm_distances,
)
from skawhmm.classification import HMMViewClassifier, _views, make_views
from skawhmm.classification._views import (
    LandmarkDistances,
    all_vectors,
    coordinates,
    feature_coefs,
    inner_products,
    principal_view,
    projected,
    sampled,
    squared_distances,
    squared_lengths,
    standardized_view,
)
from skawhmm.features import HMMClassDistance, NGrams
from skawhmm.sequences._checked import CheckedSequences


@pytest.fixture
def rows(rng):
    return rng.normal(2.0, 3.0, size=(7, 5))


def test_standardized_vectors_have_mean_zero_and_unit_length(rows):
    view, _ = standardized_view("rows", None, rows)
    points = coordinates(view, rows)
    assert_allclose(points.mean(axis=0), 0, atol=1e-12)
    assert_allclose((points**2).sum(axis=1).mean(), 1)
    equal, _ = standardized_view("equal", None, np.ones((3, 2)))
    assert_array_equal(coordinates(equal, np.ones((3, 2))), 0)


def test_products_and_distances_are_those_of_standardized_vectors(rows, monkeypatch):
    # Blocks of two columns are summed.
    monkeypatch.setattr(_views, "COLUMN_BLOCK", 2)
    view, _ = standardized_view("rows", None, rows)
    points = coordinates(view, rows)
    products = inner_products(view, rows, rows[:3])
    assert_allclose(products, points @ points[:3].T)
    assert_allclose(inner_products(view, rows, rows), points @ points.T)
    lengths = squared_lengths(view, rows)
    assert_allclose(lengths, (points**2).sum(axis=1))
    gaps = ((points[:, None] - points[:3]) ** 2).sum(axis=2)
    found = squared_distances(products, lengths, lengths[:3])
    assert_allclose(found, gaps, atol=1e-12)
    matrix = np.arange(10.0).reshape(5, 2)
    assert_allclose(projected(view, rows, matrix), (rows - rows.mean(axis=0)) @ matrix)


def test_principal_coordinates_are_those_of_the_singular_vectors(rows):
    view, products = standardized_view("rows", None, rows)
    view = principal_view(view, rows, products, 2)
    assert view.rank == 2
    centred = (rows - rows.mean(axis=0)) / view.scale
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    expected = np.abs(left[:, :2] * values[:2])[:, ::-1]
    assert_allclose(np.abs(coordinates(view, rows)), expected, atol=1e-12)
    assert standardized_view("rows", None, rows)[0].rank == 5


def test_samples_keep_the_order_and_the_type(rng):
    sequences = CheckedSequences([np.full((2, 1), float(n)) for n in range(20)])
    drawn = sampled(sequences, 6, np.random.RandomState(0))
    assert isinstance(drawn, CheckedSequences)
    places = [int(x[0, 0]) for x in drawn]
    assert len(set(places)) == 6
    assert places == sorted(places)
    assert sampled(sequences, 20, None) is sequences


def test_vectors_are_made_in_blocks_and_stay_sparse(monkeypatch):
    class Lengths:
        def transform(self, X):
            calls.append(len(X))
            return sparse.csr_array(np.array([[len(x)] for x in X]))

    calls: list[int] = []
    monkeypatch.setattr(_views, "SEQUENCE_BLOCK", 3)
    rows = all_vectors(Lengths(), [np.ones((n, 1)) for n in range(1, 8)])
    assert sparse.issparse(rows)
    assert_array_equal(rows.toarray(), np.arange(1.0, 8)[:, None])
    assert calls == [3, 3, 1]


@given(
    seed=st.integers(0, 10**6),
    n_columns=st.integers(1, 12),
    density=st.floats(0.02, 0.9),
    max_rank=st.sampled_from([None, 3]),
)
def test_sparse_and_dense_rows_are_equal(seed, n_columns, density, max_rank):
    rng = np.random.default_rng(seed)
    dense = rng.normal(2.0, 1.0, (9, n_columns)) * (
        rng.random((9, n_columns)) < density
    )
    rows, new = sparse.csr_array(dense), sparse.csr_array(dense[:4] * 1.5)
    (one, products), (two, wanted_products) = (
        standardized_view("rows", None, x) for x in (rows, dense)
    )
    assert_allclose(products, wanted_products, atol=1e-10)
    if max_rank is not None:
        one = principal_view(one, rows, products, max_rank)
        two = principal_view(two, dense, wanted_products, max_rank)
    assert_allclose(one.mean, two.mean, atol=1e-12)
    assert_allclose(one.scale, two.scale, atol=1e-10)
    for others, wanted in ((rows, dense), (new, new.toarray())):
        assert_allclose(
            inner_products(one, others, rows),
            inner_products(two, wanted, dense),
            atol=1e-10,
        )
        lengths = squared_lengths(one, others)
        assert_allclose(lengths, squared_lengths(two, wanted), atol=1e-10)
        matrix = rng.normal(size=(n_columns, 2))
        assert_allclose(
            projected(one, others, matrix), projected(two, wanted, matrix), atol=1e-10
        )
        points = coordinates(one, others)
        assert points.shape == (others.shape[0], one.rank)
        assert one.rank == two.rank
        # Principal coordinates are determined up to rotations of equal variances.
        other_points = coordinates(two, wanted)
        assert_allclose(points @ points.T, other_points @ other_points.T, atol=1e-7)
        # Coefficients of coordinates and of features give the same decisions.
        coef = rng.normal(size=(one.rank, 2))
        assert_allclose(
            projected(one, others, feature_coefs(one, coef)), points @ coef, atol=1e-7
        )


def test_equal_sparse_rows_have_no_spread():
    rows = sparse.csr_array(np.full((3, 5), 0.1))
    view, _ = standardized_view("equal", None, rows)
    assert view.scale == 1.0
    assert_allclose(inner_products(view, rows, rows), 0, atol=1e-15)


def test_default_views_have_names_and_share_seed_and_jobs():
    views = dict(make_views(distances=True, n_jobs=2, random_state=5))
    assert list(views) == [
        *("frames", "deltas", "lags", "distances_3", "distances_6"),
        *("own_frames", "own_deltas", "own_lags"),
    ]
    for view in views.values():
        embedding = view[-1] if hasattr(view, "steps") else view
        assert (embedding.n_jobs, embedding.random_state) == (2, 5)
    assert [name for name, _ in make_views("categorical")] == [
        *("states", "pairs", "triples", "short_words", "long_words", "lags")
    ]
    with pytest.raises(ValueError, match=r"emission .*'poisson'"):
        make_views("poisson")
    with pytest.raises(TypeError, match="distances must be True or False, got 1"):
        make_views(distances=1)
    with pytest.raises(ValueError, match=r"distances must be False with emission="):
        make_views("categorical", distances=True)


def test_views_of_distances_are_distances_to_landmarks(rng, monkeypatch):
    monkeypatch.setattr(_views, "MAX_LANDMARKS", 5)
    X = [rng.normal(n % 2, 1, size=(15, 2)) for n in range(12)]
    sequences = CheckedSequences(X)
    view = LandmarkDistances(2, random_state=0).fit(sequences)
    found = view.transform(sequences)
    assert found.shape == (12, 5)
    assert len(view.get_feature_names_out()) == 5
    # One training sequence is at distance 0 from each landmark: itself.
    landmarks = np.argmin(found, axis=0)
    assert_allclose(found[landmarks, range(5)], 0, atol=1e-9)
    chosen = [X[i] for i in landmarks]
    hmm = make_pipeline(Framewise(), HMMTransformer(2, random_state=0)).fit(chosen)
    models = hmm.transform(X), hmm.transform(chosen)
    expected = pairwise_hmm_distances(*models, JAW(rows="hellinger"))
    assert_allclose(found, expected, atol=1e-9)


def test_views_of_distances_have_weights_and_learn(make_sequences):
    X, y = make_sequences(n_sequences=40)
    model = make_classifier(distances=True, cv=3, random_state=0).fit(X[:30], y[:30])
    assert list(model.view_weights_)[3:] == ["distances_3", "distances_6"]
    assert model.explain(X[:2], by="view").contributions.shape == (2, 5, 2)
    alone = HMMViewClassifier(model.views[3:5], random_state=0).fit(X[:30], y[:30])
    assert alone.score(X[30:], y[30:]) > 0.8


def test_offset_and_scale_are_ignored_if_there_are_groups(rng):
    # Classes differ in the shape of a cycle, subjects in offset and scale.
    y, subjects = np.arange(48) % 2, np.arange(48) // 8
    times = np.arange(40) / 4
    shapes = [np.sin(times), np.sin(times) ** 3]
    offsets, scales = rng.normal(0, 20, size=6), np.exp(rng.normal(0, 1, size=6))
    X = [
        (offsets[s] + scales[s] * (shapes[c] + rng.normal(0, 0.1, 40)))[:, None]
        for c, s in zip(y, subjects, strict=True)
    ]
    known = subjects < 4
    train = [X[i] for i in np.flatnonzero(known)]
    test = [X[i] for i in np.flatnonzero(~known)]
    model = make_classifier(random_state=0).fit(train, y[known], groups=subjects[known])
    own = [v for name, v in model.view_weights_.items() if name.startswith("own_")]
    assert len(own) == 3
    assert sum(own) > 0.8
    assert model.score(test, y[~known]) > 0.9
    without = make_classifier(random_state=0).fit(train, y[known])
    assert list(without.view_weights_) == ["frames", "deltas", "lags"]
    only = HMMViewClassifier(make_views()[3:])
    with pytest.raises(ValueError, match="1 that needs no groups"):
        only.fit(train, y[known])


def test_decisions_do_not_depend_on_the_units_of_a_view(problem, small):
    X, y = problem
    one = clone(small).fit(X, y)
    two = small.set_params(square__factor=1e4).fit(X, y)
    assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-9)


def test_views_do_not_see_the_classes(problem):
    X, y = problem
    views = [("classes", HMMClassDistance())]
    with pytest.raises(ValueError, match="requires y to be passed"):
        HMMViewClassifier(views).fit(X, y)


def test_principal_coordinates_lose_nothing_if_there_are_few_sequences(problem):
    # Fewer sequences than features: principal coordinates span all of them.
    X, y = problem
    views = [("wide", HMMEmbedding((2, 3), random_state=0))]
    dual = HMMViewClassifier(views, gammas=0, random_state=0).fit(X[:20], y[:20])
    primal = clone(dual).set_params(solver="primal", max_rank=30).fit(X[:20], y[:20])
    assert primal._decision.views[0].basis.shape[1] <= 20
    assert_allclose(primal.decision_function(X), dual.decision_function(X), atol=1e-7)


@pytest.mark.parametrize(
    "params", [{"gammas": 0}, {"gammas": 2}, {"solver": "primal", "max_rank": 5}]
)
def test_sparse_and_dense_views_give_the_same_decisions(rng, params):
    y = np.arange(30) % 2
    X = [
        "".join(rng.choice(list("abc"), p=p, size=20))
        for p in ([0.3, 0.5, 0.2], [0.5, 0.3, 0.2]) * 15
    ]
    one, two = (
        HMMViewClassifier(
            [("words", NGrams((1, 3), sparse_output=is_sparse))],
            random_state=0,
            **params,
        ).fit(X, y)
        for is_sparse in (True, False)
    )
    # The kernels agree to 1e-10; the ridge multiplies their rounding.
    decisions = [model.decision_function(X) for model in (one, two)]
    assert_allclose(*decisions, rtol=1e-6, atol=1e-9)
    here, there = (model.explain(X[:4], by="feature") for model in (one, two))
    assert here.labels == there.labels
    assert_allclose(here.contributions, there.contributions, rtol=1e-6, atol=1e-9)
