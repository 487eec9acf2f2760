import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import DBSCAN
from sklearn.manifold import MDS, TSNE
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from skawhmm import (
    KL,
    MAW,
    AlphaMixer,
    HMMBatch,
    HMMTransformer,
    PairwiseHMMDistance,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)


class Scripted:
    """A distance whose values are given by the means of two models of one state."""

    symmetric = True

    def __init__(self, function):
        self.function = function
        self.n_pairs = 0

    def prepare(self, models):
        return models.means[:, 0, 0]

    def distances(self, prepared, index_a, index_b):
        self.n_pairs += len(index_a)
        return self.function(prepared[index_a], prepared[index_b])


def points(values):
    values = np.reshape(values, (-1, 1, 1))
    return HMMBatch(np.ones_like(values), values, np.ones_like(values))


@pytest.fixture
def models(make_batch):
    return make_batch(n_models=9)


@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("maw", {"alpha": 0.4, "p": 2}),
        ("kl", {}),
        ("coupling", {"p": 2}),
        (MAW(alpha=0.7), {}),
    ],
)
def test_distances_are_those_of_the_function(models, metric, params):
    step = PairwiseHMMDistance(metric, **params).fit(models[:5])
    wanted = pairwise_hmm_distances(models, models[:5], metric, **params)
    assert_array_equal(step.transform(models), wanted)
    assert_array_equal(step.fit_transform(models[:5]), wanted[:5])


def test_components_are_those_of_the_function(models):
    step = PairwiseHMMDistance(output="components").fit(models[:5])
    marginal, transition = pairwise_hmm_components(models, models[:5])
    stack = step.transform(models)
    assert_array_equal(stack[..., 0], marginal)
    assert_array_equal(stack[..., 1], transition)
    for alpha in (0, 0.3, 1):
        mixed = AlphaMixer(alpha).fit(stack[:5]).transform(stack)
        wanted = PairwiseHMMDistance(alpha=alpha).fit(models[:5]).transform(models)
        assert_array_equal(mixed, wanted)


def test_a_single_number_has_no_components(models):
    with pytest.raises(TypeError, match="metric must have a marginal"):
        PairwiseHMMDistance("kl", output="components").fit(models)


def test_sequences_are_fitted_by_a_clone(make_sequences):
    X, _ = make_sequences()
    hmm = HMMTransformer(n_components=2, random_state=0)
    step = PairwiseHMMDistance(hmm=hmm).fit(X[:4])
    assert not hasattr(hmm, "n_features_in_")
    models = hmm.fit_transform(X)
    assert_array_equal(
        step.transform(X), PairwiseHMMDistance().fit(models[:4]).transform(models)
    )
    # Models are welcome where sequences were learned from, not the other way round.
    assert_array_equal(step.transform(models), step.transform(X))
    with pytest.raises(TypeError, match="X must be an HMMBatch, as it was in fit"):
        PairwiseHMMDistance().fit(models).transform(X)


def test_forms_of_sequences_agree(rng):
    rows = rng.normal(size=(5, 12))
    step = PairwiseHMMDistance(hmm=HMMTransformer(n_components=2, random_state=0))
    wanted = step.fit_transform(rows)
    assert step.n_features_in_ == 12
    for X in (list(rows), list(rows[..., None]), rows[..., None]):
        assert_array_equal(step.fit_transform(X), wanted)
        assert step.n_features_in_ == 1
        assert_array_equal(step.transform(rows), wanted)


def test_kernel(models):
    distances = pairwise_hmm_distances(models)
    step = PairwiseHMMDistance(output="kernel")
    kernel = step.fit_transform(models)
    assert_allclose(step.gamma_, 1 / np.median(distances[np.triu_indices(9, 1)]))
    assert_allclose(kernel, np.exp(-step.gamma_ * distances))
    assert_array_equal(step.transform(models[:2]), kernel[:2])
    fixed = PairwiseHMMDistance(output="kernel", gamma=2.0).fit(models)
    assert_allclose(fixed.transform(models), np.exp(-2 * distances))


def indefinite(a, b):
    # Everything is far from everything else, but near to the first point.
    return np.where(a == b, 0, np.where((a == 0) | (b == 0), 0.1, 5.0))


def test_psd_kernel_is_the_nearest_positive_one():
    metric, models = Scripted(indefinite), points(np.arange(6.0))
    plain = PairwiseHMMDistance(metric, output="kernel", gamma=1.0).fit_transform(
        models
    )
    assert np.linalg.eigvalsh(plain)[0] < -0.5
    step = PairwiseHMMDistance(metric, output="psd_kernel", gamma=1.0)
    kernel = step.fit_transform(models)
    values, vectors = np.linalg.eigh(plain)
    assert_allclose(kernel, (vectors * np.maximum(values, 0)) @ vectors.T, atol=1e-12)
    assert_allclose(step.transform(models[2:4]), kernel[2:4], atol=1e-12)
    SVC(kernel="precomputed").fit(kernel, np.arange(6) % 2)


def test_psd_kernel_needs_symmetry():
    metric = Scripted(lambda a, b: np.maximum(a - b, 0))
    metric.symmetric = False
    with pytest.raises(ValueError, match="not symmetric"):
        PairwiseHMMDistance(metric, output="psd_kernel").fit(points([0.0, 1.0]))


def test_infinite_distances_are_kept_and_have_kernel_zero():
    metric = Scripted(lambda a, b: np.where(a * b < 0, np.inf, np.abs(a - b)))
    models = points([-2.0, -1.0, 1.0, 3.0])
    assert np.isinf(PairwiseHMMDistance(metric).fit_transform(models)[0, 2])
    step = PairwiseHMMDistance(metric, output="kernel")
    assert step.fit_transform(models)[0, 2] == 0
    assert step.gamma_ == 1 / 1.5


def test_nan_distances_are_refused():
    metric = Scripted(lambda a, b: np.where(a * b < 0, np.nan, 1.0))
    with pytest.raises(
        ValueError, match=r"metric must give one number .* row 0, column 2"
    ):
        PairwiseHMMDistance(metric).fit_transform(points([-2.0, -1.0, 1.0]))


def test_equal_models_have_a_kernel():
    step = PairwiseHMMDistance(output="kernel").fit(points([1.0, 1.0]))
    assert_array_equal(step.transform(points([1.0])), 1)


def test_training_models_need_half_of_the_pairs():
    metric = Scripted(lambda a, b: np.abs(a - b))
    models = points(np.arange(10.0))
    PairwiseHMMDistance(metric).fit(models).transform(models)
    assert metric.n_pairs == 55


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"output": "matrix"}, "output must be one of 'distance', 'kernel'"),
        ({"gamma": -1}, "gamma must be a number"),
        ({"alpha": 2}, "alpha must be a number"),
        ({"metric": "euclidean"}, "metric must be one of"),
    ],
)
def test_bad_parameters_are_named(models, params, message):
    with pytest.raises(ValueError, match=message):
        PairwiseHMMDistance(**params).fit(models)


def test_feature_mismatch_is_named(models, make_batch):
    step = PairwiseHMMDistance().fit(models)
    with pytest.raises(ValueError, match=r"X has 5 features, .* is expecting 2"):
        step.transform(make_batch(n_features=5))


def test_pandas_output(models):
    pytest.importorskip("pandas")
    step = PairwiseHMMDistance().set_output(transform="pandas")
    frame = step.fit_transform(models)
    assert list(frame.columns) == [f"pairwisehmmdistance{n}" for n in range(9)]
    assert_array_equal(frame, PairwiseHMMDistance().fit_transform(models))


def test_output_feeds_scikit_learn(make_batch):
    models = make_batch(n_models=24)
    y = (models.means[:, :, 0].mean(axis=1) > 0).astype(int)
    distances = PairwiseHMMDistance().fit_transform(models)
    labels = DBSCAN(eps=0.5, metric="precomputed").fit_predict(distances)
    assert labels.shape == (24,)
    tsne = TSNE(metric="precomputed", init="random", perplexity=5, max_iter=250)
    assert tsne.fit_transform(distances).shape == (24, 2)
    graph = KNeighborsTransformer(metric="precomputed", n_neighbors=4)
    assert graph.fit_transform(distances).nnz == 24 * 5
    for last in (
        KNeighborsClassifier(metric="precomputed"),
        DecisionTreeClassifier(random_state=0),
    ):
        scores = cross_val_score(make_pipeline(PairwiseHMMDistance(), last), models, y)
        assert np.isfinite(scores).all()
    kernel = PairwiseHMMDistance(output="psd_kernel")
    pipe = make_pipeline(kernel, SVC(kernel="precomputed", C=10))
    assert pipe.fit(models, y).score(models, y) > 0.8


@pytest.mark.filterwarnings("ignore:.*:FutureWarning")
def test_output_feeds_mds(models):
    distances = PairwiseHMMDistance().fit_transform(models)
    mds = MDS(dissimilarity="precomputed", random_state=0, n_init=1)
    assert mds.fit_transform(distances).shape == (9, 2)


def count_calls(monkeypatch):
    """Record the number of models of each call for all pairs."""
    import skawhmm.distances._pairwise as module

    calls = []
    function = module.pair_problem

    def counted(*args, **kwargs):
        calls.append(len(args[0]))
        return function(*args, **kwargs)

    monkeypatch.setattr(module, "pair_problem", counted)
    return calls


def test_mixer_searches_alpha_with_one_computation(monkeypatch, make_batch):
    calls = count_calls(monkeypatch)
    models = make_batch(n_models=30)
    y = np.arange(30) % 2
    stack = PairwiseHMMDistance(output="components").fit_transform(models)
    pipe = make_pipeline(AlphaMixer(), KNeighborsClassifier(metric="precomputed"))
    alphas = np.linspace(0, 1, 101)
    search = GridSearchCV(pipe, {"alphamixer__alpha": alphas}, cv=3).fit(stack, y)
    assert calls == [30]
    plain = make_pipeline(
        PairwiseHMMDistance(alpha=alphas[37]),
        KNeighborsClassifier(metric="precomputed"),
    )
    scores = cross_val_score(plain, models, y, cv=3)
    assert_allclose(search.cv_results_["mean_test_score"][37], scores.mean())


def test_mixer_leaves_single_numbers_alone(models):
    distances = PairwiseHMMDistance("kl").fit_transform(models)
    assert_array_equal(AlphaMixer().fit_transform(distances), distances)
    with pytest.raises(ValueError, match=r"alpha must be 0\.1 if X holds distances"):
        AlphaMixer(0.5).fit(distances)


@pytest.mark.parametrize(
    ("shape", "message"),
    [((4, 4, 3), "got shape"), ((4, 3, 2), "must be a square"), ((4,), "1D array")],
)
def test_mixer_names_bad_shapes(shape, message):
    with pytest.raises(ValueError, match=message):
        AlphaMixer().fit(np.zeros(shape))


@pytest.mark.parametrize("output", ["kernel", "psd_kernel"])
@pytest.mark.parametrize("gamma", ["scale", 1.0])
def test_kernels_of_negative_estimates_are_at_most_one(output, gamma):
    means = np.array([0.0, 0.1, 0.2, 0.9])[:, None, None]
    models = HMMBatch(np.ones((4, 1, 1)), means, np.ones((4, 1, 1)))
    metric = Scripted(lambda a, b: 2000 * np.abs(a - b) - 1000)
    found = PairwiseHMMDistance(metric, output=output, gamma=gamma)
    kernel = found.fit_transform(models)
    assert np.isfinite(kernel).all()
    assert kernel.max() <= 1 + 1e-12
    assert_array_equal(found.transform(models), kernel)


def test_kernel_of_kl_from_kept_sequences_is_finite():
    # The second model explains the sequence of the first far better than its own does.
    models = HMMBatch(
        np.ones((2, 1, 1)),
        [[[0.0]], [[100.0]]],
        np.ones((2, 1, 1)),
        sequences=[np.full((4, 1), 100.0), np.full((4, 1), 100.0)],
    )
    metric = KL(method="data", symmetric=False)
    kernel = PairwiseHMMDistance(metric, output="kernel").fit_transform(models)
    assert np.isfinite(kernel).all()
    assert kernel[0, 1] == 1


def test_kernel_of_distances_without_digits_has_no_nan():
    models = HMMBatch(
        np.ones((3, 1, 1)), np.arange(3.0)[:, None, None], np.ones((3, 1, 1))
    )
    metric = Scripted(lambda a, b: 1e-318 * np.abs(a - b))
    kernel = PairwiseHMMDistance(metric, output="kernel").fit_transform(models)
    assert np.isfinite(kernel).all()
