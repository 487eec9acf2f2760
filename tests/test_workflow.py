"""Complete workflows, as users write them."""

import io
import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, StackingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from skawhmm import (
    MAW,
    AlphaMixer,
    Framewise,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    KNeighborsHMMClassifierCV,
    KNeighborsHMMRegressor,
    PairwiseHMMDistance,
)
from skawhmm.datasets import (
    load_basic_motions,
    load_japanese_vowels,
    make_hmm_sequences,
    make_phonemes,
)
from skawhmm.features import HMMClassDistance
from skawhmm.sequences import Deltas, TimeChannel

HMM = HMMTransformer(n_components=2, random_state=0)


@pytest.fixture(scope="module")
def data():
    return make_hmm_sequences(30, separation=2, n_timesteps=(30, 50), random_state=0)


def real_data(load):
    """Return the training and the test part of a data set."""
    return [
        *load(split="train", return_X_y=True),
        *load(split="test", return_X_y=True),
    ]


@pytest.fixture
def count(monkeypatch):
    """Count how many matrices of pairs are computed, and how many sequences fitted."""
    import skawhmm.distances._pairwise as module

    counts = {"matrices": 0, "fits": 0}

    def counted(owner, name, key, size):
        function = getattr(owner, name)

        def call(*args, **kwargs):
            counts[key] += size(*args)
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    counted(module, "pair_problem", "matrices", lambda *_: 1)
    counted(HMMTransformer, "_modelled", "fits", lambda _, X: len(X))
    return counts


def test_pipeline_of_sequences(data):
    X_seqs, y = data
    pipe = Pipeline([("hmm", HMM), ("knn", KNeighborsHMMClassifier())]).fit(X_seqs, y)
    assert pipe.score(X_seqs, y) > 0.9
    assert pipe.predict_proba(X_seqs).shape == (30, 2)
    pipe = Pipeline(
        [
            ("deltas", Deltas()),
            ("framewise", Framewise()),
            ("hmm", HMM),
            ("distance", PairwiseHMMDistance(output="psd_kernel")),
            ("svc", SVC(kernel="precomputed")),
        ]
    ).fit(X_seqs, y)
    assert pipe.score(X_seqs, y) > 0.9


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_over_all_steps(data, n_jobs):
    X, y = data
    pipe = Pipeline([("hmm", HMM), ("knn", KNeighborsHMMClassifier())])
    grid = {
        "knn__alpha": [0, 0.5, 1],
        "knn__n_neighbors": [1, 5],
        "hmm__n_components": [1, 2],
    }
    search = GridSearchCV(pipe, grid, cv=3, n_jobs=n_jobs).fit(X, y)
    assert search.best_score_ > 0.9
    assert set(search.best_params_) == set(grid)
    assert search.predict(X[:3]).shape == (3,)


def test_grid_over_parameters_of_inner_models(data):
    X, y = data
    knn = KNeighborsHMMClassifier(3, hmm=make_pipeline(Framewise(), clone(HMM)))
    grid = {"hmm__hmmtransformer__n_components": [1, 2], "alpha": [0, 0.5]}
    assert GridSearchCV(knn, grid, cv=3).fit(X, y).best_score_ > 0.9


def test_alpha_search_in_the_cv_estimator_computes_once(data, count):
    X, y = data
    knn = KNeighborsHMMClassifierCV(hmm=HMM).fit(X, y)
    assert len(knn.alphas_) == 101
    assert count == {"matrices": 1, "fits": 30}


def test_alpha_search_by_mixer_computes_once(data, count):
    X, y = data
    stack = PairwiseHMMDistance(hmm=HMM, output="components").fit_transform(X)
    pipe = make_pipeline(AlphaMixer(), KNeighborsClassifier(metric="precomputed"))
    grid = {"alphamixer__alpha": np.linspace(0, 1, 101)}
    GridSearchCV(pipe, grid, cv=3).fit(stack, y)
    assert count == {"matrices": 1, "fits": 30}


def test_memory_of_the_pipeline_fits_training_models_once_per_fold(
    data, count, tmp_path
):
    X, y = data
    plain = Pipeline([("hmm", HMM), ("knn", KNeighborsHMMClassifier())])
    kept = clone(plain).set_params(memory=str(tmp_path))
    grid = {"knn__alpha": [0, 0.3, 0.6, 1], "knn__n_neighbors": [1, 3]}
    found = GridSearchCV(kept, grid, cv=3, refit=False).fit(X, y).cv_results_
    # Training parts of 20 sequences once per fold, test parts of 10 for each of 8.
    assert count["fits"] == 3 * (20 + 8 * 10)
    wanted = GridSearchCV(plain, grid, cv=3, refit=False).fit(X, y).cv_results_
    assert_array_equal(found["mean_test_score"], wanted["mean_test_score"])


def test_pipelines_with_memory_make_models_of_sequences(data, count, tmp_path):
    X, y = data
    hmm = Pipeline([("deltas", Deltas(2)), ("hmm", HMM)], memory=str(tmp_path))
    plain = clone(hmm).set_params(memory=None)
    for alpha in (0, 0.5):
        kept = KNeighborsHMMClassifier(3, alpha=alpha, hmm=hmm).fit(X, y)
        wanted = KNeighborsHMMClassifier(3, alpha=alpha, hmm=plain).fit(X, y)
        assert_array_equal(kept.predict_proba(X), wanted.predict_proba(X))
        # How work is done may change after fit.
        kept.set_params(hmm__memory=None).predict(X[:2])


def test_japanese_vowels():
    X, y, X_test, y_test = real_data(load_japanese_vowels)
    hmm = HMMTransformer(n_components=2, random_state=0)
    steps = [("deltas", Deltas()), ("framewise", Framewise()), ("hmm", hmm)]
    knn = Pipeline([*steps, ("knn", KNeighborsHMMClassifier(1))]).fit(X, y)
    assert knn.score(X_test, y_test) > 0.95
    chosen = Pipeline([*steps, ("knn", KNeighborsHMMClassifierCV())]).fit(X, y)
    assert chosen.score(X_test, y_test) > 0.96
    kernel = PairwiseHMMDistance(output="psd_kernel")
    svc = Pipeline(
        [*steps, ("kernel", kernel), ("svc", SVC(C=10, kernel="precomputed"))]
    )
    assert svc.fit(X, y).score(X_test, y_test) > 0.975
    scores = cross_val_score(knn, X, y, cv=3)
    assert scores.mean() > 0.9


def test_basic_motions():
    X, y, X_test, y_test = real_data(load_basic_motions)
    pipe = Pipeline(
        [
            ("framewise", Framewise()),
            ("hmm", HMMTransformer(random_state=0)),
            ("knn", KNeighborsHMMClassifier(1)),
        ]
    ).fit(X, y)
    assert pipe.score(X_test, y_test) == 1


def test_phonemes_of_new_speakers():
    names = ["iy", "aa", "s", "m", "t"]
    X, y, speakers = make_phonemes(4, 2, phonemes=names, random_state=0)
    hmm = HMMTransformer(prior="pooled", random_state=0)
    pipe = make_pipeline(Framewise(), hmm, KNeighborsHMMClassifier(3))
    scores = cross_val_score(pipe, X, y, groups=speakers, cv=GroupKFold(4))
    assert scores.mean() > 0.7


def test_halving_search(data):
    X, y = data
    models = HMM.fit_transform(X)
    search = HalvingGridSearchCV(
        KNeighborsHMMClassifier(3),
        {"alpha": [0, 0.3, 0.6, 1]},
        cv=2,
        min_resources=16,
        random_state=0,
    )
    assert search.fit(models, y).score(models, y) > 0.8
    assert search.n_candidates_[0] == 4


def test_cross_val_predict_and_learning_curve(data):
    X, y = data
    pipe = make_pipeline(HMM, KNeighborsHMMClassifier(3))
    probabilities = cross_val_predict(pipe, X, y, cv=3, method="predict_proba")
    assert probabilities.shape == (30, 2)
    sizes, _, scores = learning_curve(pipe, X, y, cv=3, train_sizes=[0.5, 1.0])
    assert scores.shape == (2, 3)
    assert sizes[1] == 20


def test_stacking_and_calibration(data):
    X, y = data
    knn = make_pipeline(HMM, KNeighborsHMMClassifier(3))
    svc = make_pipeline(
        HMM, PairwiseHMMDistance(output="psd_kernel"), SVC(kernel="precomputed")
    )
    stack = StackingClassifier([("knn", knn), ("svc", svc)], GaussianNB(), cv=3).fit(
        X, y
    )
    assert stack.score(X, y) > 0.9
    calibrated = CalibratedClassifierCV(knn, cv=3).fit(X, y)
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    assert calibrated.score(X, y) > 0.9


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_backends_agree(data, backend):
    X, y = data
    pipe = make_pipeline(HMM, KNeighborsHMMClassifier(3))
    wanted = cross_val_predict(pipe, X, y, cv=3, method="predict_proba")
    with joblib.parallel_config(backend, n_jobs=2):
        probabilities = cross_val_predict(pipe, X, y, cv=3, method="predict_proba")
    assert_array_equal(probabilities, wanted)


def test_boosting_on_distances_to_classes(data):
    X, y = data
    pipe = make_pipeline(
        HMMClassDistance([[0], [1]], hmm=HMM),
        AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=2), n_estimators=10, random_state=0
        ),
    )
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.7


def test_pandas_output_of_a_pipeline(data):
    pytest.importorskip("pandas")
    X, _ = data
    pipe = make_pipeline(
        Deltas(), Framewise(), TimeChannel(), PairwiseHMMDistance(hmm=HMM)
    ).set_output(transform="pandas")
    frame = pipe.fit(X[:5]).transform(X[:3])
    assert list(frame.columns) == list(pipe[-1].get_feature_names_out())
    assert frame.shape == (3, 5)


ESTIMATORS = [
    Framewise(),
    Deltas(lags=(1, 2)),
    TimeChannel(),
    PairwiseHMMDistance(hmm=HMM, output="psd_kernel"),
    PairwiseHMMDistance(MAW(alpha=0.4), hmm=HMM),
    HMMClassDistance([[0], [1]], hmm=HMM),
    KNeighborsHMMClassifier(hmm=HMM),
    KNeighborsHMMClassifierCV(hmm=HMM),
    KNeighborsHMMRegressor(hmm=HMM),
    HMMRetriever(hmm=HMM),
    make_pipeline(Framewise(), HMM, KNeighborsHMMClassifier()),
]


def result(estimator, X):
    for name in ("predict_proba", "predict", "transform"):
        if hasattr(estimator, name):
            values = getattr(estimator, name)(X)
            return np.concatenate(values) if isinstance(values, list) else values
    return estimator.kneighbors(X)[0]


def pickled(estimator):
    return pickle.loads(pickle.dumps(estimator))


def dumped(estimator):
    buffer = io.BytesIO()
    joblib.dump(estimator, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


def stored_by_skops(estimator):
    skops = pytest.importorskip("skops.io")
    text = skops.dumps(estimator)
    untrusted = skops.get_untrusted_types(data=text)
    assert all(name.startswith("skawhmm.") for name in untrusted)
    return skops.loads(text, trusted=untrusted)


@pytest.mark.parametrize("copy", [pickled, dumped, stored_by_skops])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_copies_predict_the_same(data, estimator, copy):
    X, y = data
    fitted = clone(estimator).fit(X[:20], y[:20])
    again = copy(fitted)
    check_is_fitted(again)
    assert_array_equal(result(again, X[20:]), result(fitted, X[20:]))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_estimators_have_html_repr(data, estimator):
    X, y = data
    name = type(estimator[-1] if isinstance(estimator, Pipeline) else estimator)
    assert name.__name__ in estimator._repr_html_()
    assert "fitted" in clone(estimator).fit(X, y)._repr_html_()
