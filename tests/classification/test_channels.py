import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skawhmm import make_classifier
from skawhmm.classification._channels import OwnScale, RealChannels, SymbolChannel
from skawhmm.emissions import (
    Bernoulli,
    ByChannel,
    Categorical,
    Gamma,
    Gaussian,
    Poisson,
    VonMises,
)
from skawhmm.sequences import Trials

NAMES = ["speed", "angle", "x", "y", "mode", "on", "count"]
BLOCKS = [
    ("speed", Gamma(), [0]),
    ("angle", VonMises(), [1]),
    ("place", Gaussian(), [2, 3]),
    ("mode", Categorical(), [4]),
    ("on", Bernoulli(), [5]),
    ("count", Poisson(), [6]),
]


def table(rng, step, n=50):
    """Return frames of all kinds; modes go round by a step, or stay."""
    mode = np.cumsum(np.where(rng.random(n) < 0.8, step, 0)) % 3
    return np.column_stack(
        [
            rng.gamma(2, size=n),
            rng.vonmises(0, 1, size=n),
            rng.normal(size=(n, 2)),
            mode,
            rng.random(n) < 0.3,
            rng.poisson(3, size=n),
        ]
    )


@pytest.fixture
def tables(rng):
    """Return tables of two classes: modes go forwards or backwards."""
    y = np.arange(36) % 2
    return [table(rng, 1 + c) for c in y], y


def small(emission=None, **params):
    """Return a classifier with few states."""
    model = make_classifier(emission or ByChannel(BLOCKS), random_state=0, **params)
    names = [k for k in model.get_params() if k.endswith("embedding__n_components")]
    return model.set_params(**dict.fromkeys(names, 2))


def test_numbers_of_each_kind_match_a_calculation_by_hand():
    # Twelve frames, of two kinds.
    x = np.array(
        [[4.0, np.pi / 2, 1, 2, 5, 1, 9], [1.0, np.pi / 6, 3, 4, 7, 0, np.nan]] * 6
    )
    step = RealChannels(ByChannel(BLOCKS)).fit([x])
    (found,) = step.transform([x])
    expected = [
        [2, 0, 1, 1, 2, 1, 0, 1, 3],
        [1, np.sqrt(3) / 2, 0.5, 3, 4, 0, 1, 0, np.nan],
    ]
    assert_allclose(found, expected * 6, atol=1e-15)
    other = x.copy()
    other[::2, 4], other[1::2, 4] = 6, np.nan
    # Symbols that were not seen, or are missing, are not observed.
    assert np.isnan(step.transform([other])[0][:, 5:7]).all()
    assert list(step.get_feature_names_out()) == [
        *("x0", "cos(x1)", "sin(x1)", "x2", "x3", "x4=5", "x4=7", "x5", "x6")
    ]
    symbols = SymbolChannel(ByChannel(BLOCKS), "mode").fit([x])
    assert_array_equal(symbols.transform([x])[0], [[5], [7]] * 6)
    assert list(symbols.get_feature_names_out()) == ["x4"]


def test_tables_of_several_kinds_are_classified(tables):
    X, y = tables
    model = small().fit(X[:24], y[:24])
    assert model.score(X[24:], y[24:]) == 1
    of_modes = [v for k, v in model.view_weights_.items() if k.startswith("mode_")]
    assert len(of_modes) == 6
    assert sum(of_modes) > 0.5
    # Words of modes are named.
    words = model.explain(X[24:26], by=("view", "feature"))
    assert "mode_pairs 0|1" in words.labels
    place = words.labels.index("mode_triples 0|1|2")
    assert words.contributions[0, place, 0] > 0 > words.contributions[1, place, 0]


def test_columns_by_name_and_by_index_are_equal(tables):
    X, y = tables
    named = [(name, family, [NAMES[k] for k in own]) for name, family, own in BLOCKS]
    frames = [pd.DataFrame(x, columns=NAMES) for x in X]
    one = small(cv=2).fit(X[:12], y[:12])
    two = small(ByChannel(named), cv=2).fit(frames[:12], y[:12])
    assert_array_equal(one.decision_function(X), two.decision_function(frames))
    labels = two.explain(frames[:1], by=("view", "signal")).labels
    assert "deltas cos(angle)_lag1" in labels
    # Indicators, circles, derivatives and words belong to the columns of the table.
    channels = two.explain(frames[:1], by="channel").labels
    assert channels == [*NAMES, "position"]


def test_trials_and_orders_of_blocks(tables):
    X, y = tables
    model = small(cv=2)
    pairs = [Trials([X[i], X[i + 12]]) for i in range(12)]
    assert clone(model).fit(pairs, y[:12]).predict(X[24:]).shape == (12,)
    again = small(ByChannel(BLOCKS[::-1]), cv=2).fit(X[:12], y[:12])
    assert_array_equal(again.predict(X), model.fit(X[:12], y[:12]).predict(X))


def test_errors_name_the_block_and_the_sequence_of_the_user(tables):
    X, y = tables
    X = [x.copy() for x in X]
    X[3][0, 0] = -1
    with pytest.raises(ValueError, match=r"Block 'speed': X\[3\] .*negative"):
        small().fit(X, y)
    X[3][0, 0] = 1
    model = small().fit(X, y)
    X[2][0, 5] = 0.5
    with pytest.raises(ValueError, match=r"Block 'on': X\[2\] .*flags"):
        model.predict(X)
    with pytest.raises(ValueError, match="Block 'count' must have columns"):
        small().fit([x[:, :6] for x in X], y)


@given(st.floats(-1e3, 1e3), st.floats(1e-2, 1e2), st.integers(0, 99))
def test_own_scale_ignores_offset_and_scale(offset, scale, seed):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(9, 2)), rng.normal(size=(5, 2))]
    X[1][2, 0] = np.nan
    step = OwnScale().fit(X)
    found = step.transform(X)
    assert_allclose(np.nanmean(found[1], axis=0), 0, atol=1e-12)
    assert_allclose(np.nanstd(found[1], axis=0), 1)
    moved = step.transform([offset + scale * x for x in X])
    for one, two in zip(found, moved, strict=True):
        assert_allclose(one, two, atol=1e-9)


def test_channels_at_rest_are_near_zero():
    rng = np.random.default_rng(0)
    moving, still = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    moving[:, 2] = 7.0
    still[:, 0] = 5.0
    still[:, 1] = 1.0 + 1e-9 * rng.normal(size=40)
    still[:, 2] = np.nan
    (_, found) = OwnScale().fit_transform([moving, still])
    assert_allclose(found[:, 0], 0, atol=1e-12)
    assert np.abs(found[:, 1]).max() < 1e-4
    assert np.isnan(found[:, 2]).all()
