import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_score

from skawhmm import HMMEmbedding, Trials, make_classifier, make_regressor
from skawhmm.classification import HMMViewClassifier, _ridge
from skawhmm.features import _embedding_statistics
from skawhmm.sequences import _checks, _symbols


def test_make_classifier_learns_frames(make_sequences):
    X, y = make_sequences(n_sequences=50, n_timesteps=(30, 50))
    model = make_classifier(random_state=0)
    model.set_params(frames__n_components=(2, 4), deltas__hmmembedding__n_components=2)
    model.set_params(views=model.views[:2])
    assert model.fit(X[:30], y[:30]).score(X[30:], y[30:]) > 0.8
    # The classes differ in how fast they move.
    assert model.view_weights_["deltas"] > model.view_weights_["frames"]
    assert HMMViewClassifier().fit(X[:6], y[:6]).predict(X[:2]).shape == (2,)


def test_make_classifier_learns_symbols(rng):
    # Letters are equally frequent; one class has longer runs of them.
    X, y = [], np.arange(40) % 2
    for c in y:
        turns = rng.random(60) < (0.2 if c else 0.5)
        X.append("".join("ab"[k] for k in np.cumsum(turns) % 2))
    model = make_classifier("categorical", random_state=0)
    model.set_params(states__n_components=(2, 4))
    assert model.fit(X[:24], y[:24]).score(X[24:], y[24:]) > 0.8
    # Eight letters of a sequence are in few others.
    assert model.view_weights_["long_words"] < min(
        model.view_weights_[name] for name in ("states", "pairs", "triples")
    )
    codes = [np.array(["ab".index(s) for s in x]) for x in X]
    again = clone(model).fit(codes[:24], y[:24])
    assert_array_equal(again.decision_function(codes), model.decision_function(X))
    assert model.predict(["xyz"]).shape == (1,)


@pytest.mark.parametrize("emission", ["gaussian", "categorical"])
def test_each_sequence_is_checked_once(emission, make_sequences, monkeypatch):
    X, y = make_sequences(n_sequences=8)
    module, name = _checks, "check_values"
    if emission == "categorical":
        X = ["ab" * n for n in range(3, 11)]
        module, name = _symbols, "_symbols_of"
    seen = []
    check = getattr(module, name)

    def counted(x, i):
        seen.append(i)
        return check(x, i)

    monkeypatch.setattr(module, name, counted)
    model = make_classifier(emission, cv=2, random_state=0).fit(X, y)
    assert seen == list(range(8))
    model.predict(X[:3])
    assert seen == [*range(8), 0, 1, 2]


def test_make_regressor_learns_numbers(make_sequences):
    X, y = make_sequences(n_sequences=40)
    model = make_regressor(random_state=0)
    assert [name for name, _ in model.views][:3] == ["frames", "deltas", "lags"]
    model.set_params(views=[("frames", HMMEmbedding(2, random_state=0))])
    assert model.fit(X, y.astype(float)).predict(X).shape == (40,)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X, None)


@pytest.mark.parametrize("make", [make_classifier, make_regressor])
@pytest.mark.parametrize("emission", ["gaussian", "categorical"])
def test_fits_do_not_depend_on_the_order_of_sequences(make, emission, rng, monkeypatch):
    # References are learned from fewer frames than there are: pieces are drawn.
    monkeypatch.setattr(_embedding_statistics, "MAX_FRAMES", 300)
    monkeypatch.setattr(_embedding_statistics, "START_FRAMES", 200)
    monkeypatch.setattr(_ridge, "SCORED_ROWS", 20)
    y = np.arange(30) % 2
    X = [rng.normal(size=(20, 2)).cumsum(axis=0) + c for c in y]
    if emission == "categorical":
        X = [(x[:, 0] > 0) + 0 for x in X]
    groups, order = np.arange(30) // 2, rng.permutation(30)
    model = make(emission, random_state=0)
    first = ("frames" if emission == "gaussian" else "states") + "__n_components"
    model.set_params(**{first: (2, 3)}).fit(X, y, groups=groups)
    again = clone(model).fit([X[i] for i in order], y[order], groups=groups[order])
    assert again.view_weights_ == model.view_weights_
    assert_array_equal(again.predict(X), model.predict(X))
    two = clone(model).set_params(n_jobs=2).fit(X, y, groups=groups)
    assert_array_equal(two.predict(X), model.predict(X))


def test_units_of_several_trials_are_classified(rng):
    y = np.arange(24) % 2
    X = [
        Trials([rng.normal(3.0 * c, 1.0, size=(n, 2)) for n in (4, 9)])
        if i % 3
        else rng.normal(3.0 * c, 1.0, size=(12, 2))
        for i, c in enumerate(y)
    ]
    model = make_classifier(cv=2, random_state=0)
    for name in ("frames", "deltas__hmmembedding", "lags__hmmembedding"):
        model.set_params(**{f"{name}__n_components": (2,)})
    assert model.fit(X[:16], y[:16]).score(X[16:], y[16:]) == 1


def test_symbols_of_units_have_groups_weights_and_routing(rng):
    y = np.arange(24) % 2
    # Both classes have the same symbols, in the opposite order.
    lines = [("abc" if c else "cba") * 4 for c in y]
    starts = rng.integers(3, size=24)
    X: list = [list(line[s:]) for line, s in zip(lines, starts, strict=True)]
    X = [Trials([x, x[:5]]) if i % 3 else x for i, x in enumerate(X)]
    groups = np.arange(24) // 2
    model = make_classifier("categorical", cv=2, class_weight={0: 1.0, 1: 2.0})
    model.set_params(random_state=0, states__n_components=2)
    model.fit(X[:16], y[:16], groups=groups[:16])
    assert model.score(X[16:], y[16:]) == 1
    words = model.explain(X[16:18], by="feature")
    pair = words.contributions[:, words.labels.index("a|b")]
    assert pair[0, 0] > 0 > pair[1, 0]
    with config_context(enable_metadata_routing=True):
        routed = clone(model).set_fit_request(groups=True)
        params = {"groups": groups}
        scores = cross_val_score(routed, X, y, cv=GroupKFold(2), params=params)
    assert_array_equal(scores, 1)
