from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)

from skawhmm import (
    HMMTransformer,
    KNeighborsHMMClassifier,
    dynamics_gain,
)
from skawhmm.classification._dynamics import DynamicsGain, permuted
from skawhmm.datasets import make_hmm_sequences
from skawhmm.fitting import MarkovChainTransformer


class FirstFrame(ClassifierMixin, BaseEstimator):
    """Tell a class by the sign of the first frame, and note what it was given."""

    seen: ClassVar = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen.append((len(X), [x.tolist() for x in X]))
        return self

    def predict(self, X):
        return np.array([int(x[0, 0] > 0) for x in X])


def signs(n_sequences=20, length=9):
    """Sequences that begin with their class; the rest is the other sign in half."""
    y = np.arange(n_sequences) % 2
    X = [np.full((length, 1), -1.0) for _ in y]
    for x, label in zip(X, y, strict=True):
        x[1 : 1 + length // 2] = 1.0
        x[0] = 2.0 * label - 1
    return X, y


def test_gain_is_the_difference_of_scores_in_the_same_folds():
    X, y = signs()
    result = dynamics_gain(X, y, estimator=FirstFrame(), cv=4, n_permutations=3)
    folds = list(StratifiedKFold(4).split(X, y))
    assert_array_equal(result.scores, 1)
    assert result.permuted_scores.shape == (4, 3)
    for n in range(3):
        # The rule of `FirstFrame` by hand, on the sequences that were permuted.
        found = np.array([x[0, 0] > 0 for x in permuted(X, 0, n + 1)], int)
        expected = [
            np.mean([(found[test] == y[test])[y[test] == k].mean() for k in (0, 1)])
            for _, test in folds
        ]
        assert_allclose(result.permuted_scores[:, n], expected)
    assert_allclose(result.gain, 1 - result.permuted_scores.mean())
    gains = 1 - result.permuted_scores.mean(axis=1)
    # Four folds of 5, whose models share 15 training sequences.
    wanted = gains.std(ddof=1) * np.sqrt(1 / 4 + 5 / 15)
    assert_allclose(result.standard_error, wanted)
    assert_allclose(
        result.interval, stats.t.interval(0.95, 3, loc=result.gain, scale=wanted)
    )
    assert_allclose(result.table["gain"], gains)
    assert result.table["fold"].tolist() == [1, 2, 3, 4]
    assert result.table["n_test"].tolist() == [len(test) for _, test in folds]
    assert_allclose(result.score - result.permuted_score, result.gain)


def test_permutations_keep_the_frames_and_follow_the_content(rng):
    X = [rng.normal(size=(n, 2)) for n in (1, 5, 30)]
    drawn = permuted(X, 7, 1)
    for x, moved in zip(X, drawn, strict=True):
        assert_array_equal(np.sort(moved, axis=0), np.sort(x, axis=0))
        # Channels of a frame stay together.
        assert {tuple(frame) for frame in moved} == {tuple(frame) for frame in x}
    assert_array_equal(drawn[0], X[0])
    assert (drawn[2] != X[2]).any()
    assert_array_equal(permuted([X[2]], 7, 1)[0], drawn[2])
    assert (permuted([X[2]], 7, 2)[0] != drawn[2]).any()
    assert (permuted([X[2]], 8, 1)[0] != drawn[2]).any()


def test_equal_sequences_are_permuted_differently(rng):
    x, other = rng.normal(size=(2, 30, 1))
    one, _, two = permuted([x, other, x], 0, 1)
    assert (one != two).any()
    # The classes differ by their order only; copies of a sequence are in all folds.
    frames = np.sort(rng.normal(size=(30, 1)), axis=0)
    X = [frames, frames[::-1]] * 20
    knn = KNeighborsHMMClassifier(1, metric="jaw", hmm=HMMTransformer(random_state=0))
    result = dynamics_gain(X, [0, 1] * 20, estimator=knn, n_permutations=3)
    assert result.permuted_score < 0.65


def test_every_permutation_is_equally_likely(rng):
    X = [rng.normal(size=(3, 1)) for _ in range(1200)]
    ranks = [tuple(np.argsort(np.argsort(x[:, 0]))) for x in X]
    moved = [tuple(np.argsort(np.argsort(x[:, 0]))) for x in permuted(X, 0, 1)]
    places = [tuple(a.index(k) for k in b) for a, b in zip(ranks, moved, strict=True)]
    _, counts = np.unique(places, axis=0, return_counts=True)
    assert len(counts) == 6
    assert counts.min() > 150


def test_meaning_says_whether_order_matters():
    X, y = make_hmm_sequences(40, differ_in="transitions", random_state=0)
    result = dynamics_gain(X, y, n_permutations=2)
    assert result.gain > 0.3
    assert result.meaning.startswith("Order matters: it changes the balanced accuracy")
    X, y = make_hmm_sequences(40, separation=6, random_state=0)
    result = dynamics_gain(X, y, n_permutations=2)
    assert abs(result.gain) <= 0.05
    assert result.score > 0.9
    assert result.meaning.startswith("Order hardly matters here")


def test_gain_is_zero_for_estimators_that_ignore_order():
    X, y = make_hmm_sequences(20, random_state=0)
    dummy = DummyClassifier(strategy="most_frequent")
    result = dynamics_gain(X, y, estimator=dummy, n_permutations=2)
    assert result.gain == result.standard_error == 0


@pytest.mark.parametrize("form", ["text", "lists", "arrays"])
def test_default_estimator_takes_symbols(form):
    rng = np.random.default_rng(1)
    X, y = [], np.arange(30) % 2
    for label in y:
        codes = np.cumsum(rng.random(40) < 0.8) % 3
        text = "".join("abc"[k] for k in (codes if label else codes[::-1]))
        X.append(text)
    X = {
        "text": X,
        "lists": [list(x) for x in X],
        "arrays": [np.array(list(x)) for x in X],
    }[form]
    result = dynamics_gain(X, y, n_permutations=2, cv=3)
    assert result.score == 1
    assert result.gain > 0.3


def test_integers_are_symbols_if_the_estimator_reads_them_as_symbols():
    rng = np.random.default_rng(1)
    y = np.arange(30) % 2
    codes = [np.cumsum(rng.random(40) < 0.8) % 3 for _ in y]
    X = [x if label else x[::-1] for x, label in zip(codes, y, strict=True)]
    hmm = MarkovChainTransformer(prior="pooled")
    knn = KNeighborsHMMClassifier(1, metric="mmd", hmm=hmm)
    assert dynamics_gain(X, y, estimator=knn, n_permutations=2, cv=3).gain > 0.3


def test_scores_are_those_of_scikit_learn():
    X, y = make_hmm_sequences(24, separation=1, random_state=0)
    knn = KNeighborsHMMClassifier(1, metric="jaw", hmm=HMMTransformer(random_state=0))
    result = dynamics_gain(X, y, n_permutations=1, cv=3, scoring="accuracy")
    expected = cross_val_score(knn, X, y, cv=3, scoring="accuracy")
    assert_array_equal(result.scores, expected)
    given = dynamics_gain(
        X, y, estimator=knn, n_permutations=1, cv=3, scoring="accuracy"
    )
    assert_array_equal(given.permuted_scores, result.permuted_scores)
    assert result.score_name == "accuracy"
    moved = permuted(X, 0, 1)
    expected = cross_val_score(knn, moved, y, cv=3, scoring="accuracy")
    assert_array_equal(result.permuted_scores[:, 0], expected)


def test_groups_stay_together():
    X, y = signs(24)
    groups = np.repeat(np.arange(6), 4)
    FirstFrame.seen.clear()
    estimator = FirstFrame()
    dynamics_gain(X, y, groups, estimator, n_permutations=1, cv=3)
    assert [size for size, _ in FirstFrame.seen] == [16] * 6
    by_name = dynamics_gain(X, y, groups, estimator, cv=GroupKFold(3), n_permutations=1)
    assert by_name.n_test.tolist() == [8, 8, 8]
    one_out = dynamics_gain(
        X, y, groups, estimator, cv=LeaveOneGroupOut(), n_permutations=1
    )
    assert len(one_out.scores) == 6


def test_gain_depends_on_the_seed_and_not_on_jobs_or_form():
    X, y = make_hmm_sequences(20, random_state=0)
    first = dynamics_gain(X, y, n_permutations=2)
    again = dynamics_gain(X, y, n_permutations=2, n_jobs=2)
    assert_array_equal(first.permuted_scores, again.permuted_scores)
    other = dynamics_gain(X, y, n_permutations=2, random_state=1)
    assert (first.permuted_scores != other.permuted_scores).any()
    length = min(map(len, X))
    table = np.array([x[:length, 0] for x in X])
    rows = dynamics_gain(table, y, n_permutations=1)
    stack = dynamics_gain(table[:, :, None], y, n_permutations=1)
    assert_array_equal(rows.permuted_scores, stack.permuted_scores)


def test_progress_is_shown(capsys):
    X, y = signs()
    dynamics_gain(X, y, estimator=FirstFrame(), n_permutations=1, verbose=1)
    shown = capsys.readouterr().err
    assert "unchanged sequences" in shown
    assert "permutation 1" in shown


def result_of(gain, spread):
    scores = np.array([0.8, 0.8, 0.8])
    permuted_scores = scores[:, None] - gain + spread * np.array([[-1.0], [0.0], [1.0]])
    sizes = np.array([9, 9, 9]), np.array([18, 18, 18])
    return DynamicsGain(scores, permuted_scores, *sizes, "accuracy")


@pytest.mark.parametrize(
    ("gain", "spread", "words"),
    [
        (0.20, 0.01, "Order matters: it changes the accuracy by +0.200"),
        (0.20, 0.50, "Whether order matters is not certain"),
        (0.04, 0.001, "Order hardly matters here"),
        (0.045, 0.01, "Order hardly matters here"),
        (-0.04, 0.1, "Whether order matters is not certain"),
        (0.0, 0.01, "Order hardly matters here"),
        (0.0, 0.02, "Whether order matters is not certain"),
        (-0.20, 0.01, "Order misleads here: it changes the accuracy by -0.200"),
        (-0.20, 0.50, "Whether order matters is not certain"),
    ],
)
def test_meaning_by_size_and_standard_errors(gain, spread, words):
    result = result_of(gain, spread)
    assert result.meaning.startswith(words)
    wanted = spread * np.sqrt(1 / 3 + 1 / 2)
    assert_allclose(result.standard_error, wanted, atol=1e-15)


def test_order_is_rarely_said_to_matter_if_frames_have_none(rng):
    # With the plain standard error of folds, 1 of 5 sets of independent frames did.
    said, y = 0, np.arange(24) % 2
    for seed in range(60):
        X = [rng.normal(size=(15, 1)) + 0.3 * label for label in y]
        result = dynamics_gain(X, y, n_permutations=3, random_state=seed)
        said += not result.meaning.startswith(("Whether", "Order hardly"))
    assert said <= 8  # of 60 at 5 %: 8 or less in 99.7 % of the cases


def test_result_is_printed_as_a_table():
    lines = str(result_of(0.2, 0.01)).splitlines()
    assert lines[0].split() == ["fold", "n_test", "score", "permuted", "gain"]
    assert lines[1].split() == ["1", "9", "0.800", "0.590", "+0.210"]
    assert lines[4].split() == ["mean", "0.800", "0.600", "+0.200"]
    assert " ".join(lines[5:]) == result_of(0.2, 0.01).meaning


def test_sequences_of_one_frame_need_another_of_two():
    X, y = signs()
    X[3] = X[3][:1]
    result = dynamics_gain(X, y, estimator=FirstFrame(), n_permutations=1)
    assert result.score == 1
    with pytest.raises(ValueError, match="X must hold sequences of at least 2 frames"):
        dynamics_gain([x[:1] for x in X], y)
    with pytest.raises(ValueError, match="X must hold sequences of at least 2 frames"):
        dynamics_gain(["a", "b"] * 5, [0, 1] * 5)


def test_wrong_arguments_are_named(make_batch):
    X, y = signs()
    with pytest.raises(
        TypeError, match="whose frames can be permuted, got an HMMBatch"
    ):
        dynamics_gain(make_batch(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        dynamics_gain(X, None)
    with pytest.raises(ValueError, match="y must hold one value per entry of X"):
        dynamics_gain(X, y[:-1])
    with pytest.raises(ValueError, match="y must hold at least 2 different values"):
        dynamics_gain(X, [1] * len(X))
    with pytest.raises(ValueError, match="groups must hold one label per seq"):
        dynamics_gain(X, y, groups=y[:-1])
    with pytest.raises(ValueError, match="n_permutations must be an integer of at le"):
        dynamics_gain(X, y, n_permutations=0)
    with pytest.raises(
        ValueError, match="cv must make at least 2 folds, for a standard"
    ):
        dynamics_gain(X, y, cv=ShuffleSplit(1, random_state=0))
    with pytest.raises(ValueError, match="scoring"):
        dynamics_gain(X, y, scoring="beauty")
    with pytest.raises(TypeError, match="n_jobs must be"):
        dynamics_gain(X, y, n_jobs="all")
