import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from skawhmm.datasets import make_phonemes


def test_phonemes_come_with_labels_and_speakers():
    X, y, speakers = make_phonemes(2, 3, phonemes=["aa", "s"], deltas=2, random_state=0)
    assert len(X) == len(y) == len(speakers) == 12
    assert_array_equal(y, ["aa", "s"] * 6)
    assert_array_equal(speakers, np.repeat([0, 1], 6))
    assert {x.shape[1] for x in X} == {39}
    assert all(np.all(np.isfinite(x)) for x in X)


def test_an_utterance_does_not_depend_on_the_others():
    X, y, speakers = make_phonemes(2, 2, phonemes=["aa", "s", "t"], random_state=7)
    Z, _, _ = make_phonemes(3, 2, phonemes=["t", "aa"], random_state=7)
    chosen = np.flatnonzero((speakers == 1) & (y == "t"))
    for i, j in zip(chosen, (4, 6), strict=True):
        assert_array_equal(X[i], Z[j])


def test_noise_hides_quiet_sounds():
    clean, _, _ = make_phonemes(3, 4, phonemes=["f"], snr=np.inf, random_state=0)
    noisy, _, _ = make_phonemes(3, 4, phonemes=["f"], snr=0.0, random_state=0)
    assert np.mean([x[:, 0].mean() for x in noisy]) > np.mean(
        [x[:, 0].mean() + 10 for x in clean]
    )


def test_classification_is_possible_but_not_trivial():
    X, y, speakers = make_phonemes(random_state=0)
    assert len(X) == 34 * 12
    features = np.array([np.r_[x.mean(axis=0), x.std(axis=0)] for x in X])
    scores = [
        cross_val_score(model, features, y, groups=speakers, cv=GroupKFold(3)).mean()
        for model in (KNeighborsClassifier(1), LinearDiscriminantAnalysis())
    ]
    assert 0.2 < scores[0] < 0.7
    assert 0.5 < scores[1] < 0.95


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_speakers": 0}, "n_speakers must be an integer of at least 1"),
        ({"phonemes": ["aa", "xx"]}, "phonemes must be .*xx"),
        ({"phonemes": []}, "phonemes must be a non-empty"),
        ({"phonemes": ["aa", "s", "aa"]}, "each named once; got"),
        ({"phonemes": 3}, "phonemes must be .* got 3"),
        ({"phonemes": [[1]]}, "phonemes must be"),
        ({"snr": -1e9}, r"snr must be a number in \[-200.0, inf\]"),
        ({"snr": np.nan}, "snr must be"),
    ],
)
def test_wrong_arguments_of_phonemes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_phonemes(**arguments)
