import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMEmbedding
from skawhmm.classification import Explanation, HMMViewClassifier, HMMViewRegressor
from skawhmm.plot import ExplanationDisplay

LABELS = ["one", "two", "three"]
CONTRIBUTIONS = np.array(
    [
        [[1.0, -1.0], [-3.0, 3.0], [0.5, -0.5]],
        [[2.0, -2.0], [1.0, -1.0], [0.5, -0.5]],
    ]
)
DECISIONS = np.array([[-2.0, 2.0], [3.0, -3.0]])


@pytest.fixture
def explanation():
    return Explanation(LABELS, CONTRIBUTIONS, DECISIONS, np.array(["a", "b"]))


def ticks(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_bars_are_mean_contributions_to_the_largest_decision(plt, explanation):
    display = ExplanationDisplay(explanation).plot()
    # Class b of the first sequence, class a of the second.
    assert_allclose(display.contributions_, [0.5, 2.0, 0.0])
    assert ticks(display) == ["two", "one", "three"]
    assert_allclose([bar.get_width() for bar in display.bars_], [2.0, 0.5, 0.0])
    assert "predicted class" in display.ax_.get_xlabel()


def test_bars_of_one_class(plt, explanation):
    display = ExplanationDisplay(explanation, target=0, max_groups=2).plot()
    assert_allclose(display.contributions_, [1.5, -1.0, 0.5])
    # The two largest, in the order of their contributions.
    assert ticks(display) == ["one", "two"]
    assert display.ax_.get_xlabel() == "contribution to the decision for a"
    left, right = (bar.get_facecolor() for bar in display.bars_)
    assert left != right


def test_bars_of_an_estimator(plt, make_sequences):
    X, y = make_sequences(n_sequences=12)
    views = [("frames", HMMEmbedding(2, random_state=0))]
    model = HMMViewClassifier(views, gammas=0, random_state=0).fit(X, y)
    fig, ax = plt.subplots()
    display = ExplanationDisplay.from_estimator(
        model, X, by="block", label=1, ax=ax, alpha=0.5
    )
    expected = model.explain(X, by="block").contributions[:, :, 1].mean(axis=0)
    assert_allclose(display.contributions_, expected)
    assert display.figure_ is fig
    assert display.bars_[0].get_alpha() == 0.5
    with pytest.raises(ValueError, match=r"label must be one of \[0, 1\], got 'x'"):
        ExplanationDisplay.from_estimator(model, X, label="x")
    with pytest.raises(ValueError, match="max_groups must be an integer"):
        ExplanationDisplay.from_estimator(model, X, max_groups=0)
    numbers = HMMViewRegressor(views, random_state=0).fit(X, y.astype(float))
    bars = ExplanationDisplay.from_estimator(numbers, X)
    assert bars.ax_.get_xlabel() == "contribution to the prediction"
