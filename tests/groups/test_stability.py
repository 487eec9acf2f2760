import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from skawhmm import HMMTransformer, Trials
from skawhmm.datasets import make_hmm_sequences
from skawhmm.groups import stability_curve
from skawhmm.groups._stability import _halves


@pytest.fixture(scope="module")
def curve():
    X, _ = make_hmm_sequences(
        8, n_classes=8, n_timesteps=300, separation=2, random_state=3
    )
    return stability_curve(X, range(1, 6), random_state=0)


def test_the_true_number_of_states_is_found(curve):
    assert_array_equal(curve.n_components, [1, 2, 3, 4, 5])
    assert curve.best_n_components == 3
    assert curve.halves.shape == curve.restarts.shape == (5, 8)
    assert_allclose(curve.restarts[0], 1)
    assert (curve.restarts <= 1).all()
    assert curve.halves[2].mean() > curve.halves[4].mean()


def test_the_curve_is_shown(curve):
    pytest.importorskip("pandas")
    frame = curve.to_frame()
    assert_allclose(frame["halves"], curve.halves.mean(axis=1))
    assert_allclose(
        frame["restarts_error"], curve.restarts.std(axis=1, ddof=1) / np.sqrt(8)
    )
    assert repr(curve).split("\n")[6].startswith("3 states: restarts, held-out")
    assert len(repr(curve).split("\n")) == 8


def test_agreement_of_halves_is_relative_to_other_sequences():
    # One state, so that models are means and deviations: with alpha = 0 the distance
    # is that of two Gaussians, and halves of a sequence are 1 apart, others 10.
    X = [np.r_[[0.0, 2.0], [1.0, 3.0]], np.r_[[10.0, 12.0], [11.0, 13.0]]]
    curve = stability_curve(X, 1, alpha=0, random_state=0)
    assert_allclose(curve.halves[0], [1 - 1 / 11, 1 - 1 / 9])


def test_symbols_have_a_curve():
    texts = ["ababababab" * 4, "aabbaabbaabb" * 3, "abbbabbbabbb" * 3]
    hmm = HMMTransformer(emission="categorical")
    curve = stability_curve(texts, (1, 2), hmm=hmm, random_state=0)
    assert curve.halves.shape == (2, 3)


@pytest.mark.parametrize(
    ("X", "change", "message"),
    [
        ([np.zeros((9, 1))], {}, "X must hold at least 2 sequences, got 1"),
        ([np.ones((9, 1)), np.ones((1, 1))], {}, r"at least 2 frames, got 1 in X\[1\]"),
        (None, {"n_components": 0}, "n_components must be an integer"),
        (None, {"n_components": "few"}, "n_components must be an integer"),
        (None, {"n_components": ()}, "n_components must hold at least 1"),
        (None, {"hmm": 3}, "hmm must be"),
        (None, {"alpha": 2}, "alpha must be"),
    ],
    ids=str,
)
def test_bad_curves_are_named(X, change, message):
    X = [np.arange(9.0)[:, None]] * 2 if X is None else X
    with pytest.raises((TypeError, ValueError), match=message):
        stability_curve(X, **{"n_components": 1, **change})


def test_criteria_of_one_state_by_hand(rng):
    # One Gaussian per sequence: held-out likelihood and criteria have closed forms.
    X = [rng.normal(size=(20, 1)) + n for n in range(3)]
    curve = stability_curve(X, 1, random_state=0)
    held_out, bic, aic = [], [], []
    for x in X:
        parts = x[:10], x[10:]
        values = [
            norm(fit.mean(), fit.std()).logpdf(other).mean()
            for fit, other in (parts, parts[::-1])
        ]
        held_out.append(np.mean(values))
        fitted = norm(x.mean(), x.std()).logpdf(x).sum()
        bic.append((2 * np.log(20) - 2 * fitted) / 20)
        aic.append((4 - 2 * fitted) / 20)
    # Variances have a floor, which is far below these.
    assert_allclose(curve.held_out[0], held_out, rtol=1e-3)
    assert_allclose(curve.bic[0], bic, rtol=1e-3)
    assert_allclose(curve.aic[0], aic, rtol=1e-3)


def test_criteria_choose_and_agree(curve):
    assert curve.choices["held_out"] == 3
    assert curve.choices["bic"] == 3
    assert curve.agreed
    best = curve.n_components[curve.bic.mean(axis=1).argmin()]
    assert curve.choices["bic"] == best


def test_doubt_is_said(rng):
    # Frames that follow each other within a state: criteria want more states.
    X = []
    for _ in range(6):
        x = rng.normal(size=(200, 1))
        for t in range(1, 200):
            x[t] += 0.9 * x[t - 1]
        X.append(x)
    curve = stability_curve(X, (1, 2, 3), random_state=0)
    assert len({curve.choices[name] for name in ("restarts", "held_out", "bic")}) > 1
    assert not curve.agreed
    assert "with doubt" in curve.recommendation


def test_numbers_of_parameters_of_symbols():
    texts = ["abcabcabab" * 5, "aabbccaabb" * 5]
    hmm = HMMTransformer(emission="categorical")
    curve = stability_curve(texts, (1, 2), hmm=hmm, random_state=0)
    # Two free probabilities per state, and the chain: 1 start and 2 transitions.
    gap = (curve.bic - curve.aic) * 50 / (np.log(50) - 2)
    assert_allclose(gap, [[2, 2], [7, 7]])


def test_trials_are_divided_as_a_whole(rng):
    unit = Trials(list(rng.normal(size=(4, 3, 1))))
    first, second = _halves(unit)
    assert [*map(len, (first, second))] == [2, 2]
    assert_array_equal(second.recordings[0], unit.recordings[2])
