import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skawhmm import Framewise, HMMEmbedding, as_sequences, make_classifier
from skawhmm.classification import HMMViewClassifier
from skawhmm.sequences import Deltas, TimeChannel


@pytest.mark.parametrize("gammas", [0, 2.0])
def test_contributions_follow_their_definition(problem, small, gammas):
    X, y = problem
    small.set_params(gammas=gammas).fit(X, y)
    found = small.explain(X[:5], by=("view", "feature"))
    assert found.labels[:2] == ["mean 0", "mean 1"]
    assert found.contributions.shape == (5, 8, 3)
    assert_allclose(found.decisions, small.decision_function(X[:5]))
    assert_array_equal(found.classes, small.classes_)
    # Put one feature at its mean, and decide again.
    rows = [view.transform(X) for _, view in small.views_]
    parts = [row[:5].copy() for row in rows]
    parts[1][:, 2] = rows[1][:, 2].mean()
    changed = small._decision.decide(parts)
    assert_allclose(found.contributions[:, 6], found.decisions - changed, atol=1e-10)


def test_contributions_with_a_linear_kernel_add_up(problem, small):
    X, y = problem
    small.set_params(gammas=0).fit(X, y)
    finest, coarse = (small.explain(X, by=by) for by in ("feature", "view"))
    totals = coarse.contributions.sum(axis=1)
    assert_allclose(finest.contributions.sum(axis=1), totals, atol=1e-10)
    constants = coarse.decisions - totals
    assert_allclose(constants, np.tile(constants[0], (60, 1)), atol=1e-10)


def test_groups_are_read_from_feature_names(make_sequences):
    X, y = make_sequences(n_sequences=20)
    lags = make_pipeline(Deltas(lags=(1, 2)), HMMEmbedding((1, 2), random_state=0))
    model = HMMViewClassifier([("lags", lags)], random_state=0).fit(X, y)
    by_signal = model.explain(X[:1], by="signal").labels
    assert by_signal == ["x0", "x1", "x0_lag1", "x1_lag1", "x0_lag2", "x1_lag2"]
    blocks = model.explain(X[:1]).labels
    assert blocks == ["lags means", "lags scales", "lags thirds"]
    states = model.explain(X[:1], by=("reference", "state")).labels
    assert states == ["r0 s0", "r1 s0", "r1 s1"]
    assert model.explain(X[:1], by="view").labels == ["lags"]
    for wrong, kind in (("states", ValueError), ((), ValueError)):
        with pytest.raises(kind, match=r"^by must"):
            model.explain(X[:1], by=wrong)


def test_derivatives_belong_to_their_channel(make_sequences):
    X, y = make_sequences(n_sequences=20)
    named, _ = as_sequences([pd.DataFrame(x, columns=["up", "down"]) for x in X])
    embedding = HMMEmbedding((1, 2), random_state=0)
    steps = Framewise(), Deltas(2, (1, 2)), TimeChannel(), embedding
    views = [("frames", clone(embedding)), ("lags", make_pipeline(*steps))]
    model = HMMViewClassifier(views, gammas=0, random_state=0).fit(named, y)
    channels, signals = (model.explain(named, by=by) for by in ("channel", "signal"))
    assert channels.labels == ["up", "down", "position"]
    assert signals.labels[:4] == ["up", "down", "up_lag1", "down_lag1"]
    assert len(signals.labels) == 11
    # With a linear kernel, the contributions of a channel are those of its signals.
    for name, own in zip(channels.labels, channels.contributions[0], strict=True):
        of = [n for n, label in enumerate(signals.labels) if label.startswith(name)]
        assert_allclose(own, signals.contributions[0, of].sum(axis=0), atol=1e-12)


def test_features_with_other_names_form_one_group(problem, small):
    X, y = problem
    assert small.fit(X, y).explain(X[:1], by="block").labels == ["other"]


def test_contributions_name_words():
    # Both classes have the same letters; one spells a word with them.
    X = ["xyxabcxyyx", "yxabcyxxyx", "xaybxcxyyx", "yaxcybxxyx"] * 4
    y = np.array(["word", "word", "none", "none"] * 4)
    model = make_classifier("categorical", cv=2, random_state=0)
    model.set_params(states__n_components=(2,), gammas=0).fit(X, y)
    text = "yyabcxxyxy"
    found = model.explain([text], by=("view", "feature"))
    word = found.contributions[0, :, list(found.classes).index("word")]
    triples = {"triples " + "|".join(text[t : t + 3]) for t in range(len(text) - 2)}
    own = [n for n, label in enumerate(found.labels) if label in triples]
    assert found.labels[max(own, key=lambda n: word[n])] == "triples a|b|c"
    by_view = model.explain([text], by="view")
    assert by_view.labels == list(model.view_weights_)
    assert_allclose(by_view.contributions.sum(axis=1), found.contributions.sum(axis=1))
