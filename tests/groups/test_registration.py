from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMTransformer, register_states
from skawhmm.fitting import MarkovChainTransformer
from skawhmm.groups import HMMAligner, registration_interval, state_effects, state_table
from skawhmm.groups._registration import nearest_fractions

OPTIONS = {"n_timesteps": 200, "n_resamples": 40, "random_state": 0}


def model(means, stay=0.8, **more):
    size = len(means)
    chain = np.full((size, size), (1 - stay) / max(size - 1, 1))
    np.fill_diagonal(chain, stay if size > 1 else 1)
    return HMMBatch(
        [chain], [np.reshape(means, (-1, 1))], np.ones((1, size, 1)), **more
    )


def test_states_far_apart_are_certain():
    a, b = model([0, 20, 40]), model([41, 1, 21])
    found = registration_interval(a, b, **OPTIONS)
    assert_array_equal(found.counterparts, [1, 2, 0])
    assert_allclose(found.probabilities, np.eye(3)[[1, 2, 0]])
    assert_allclose(found.reverse, np.eye(3)[[1, 2, 0]])
    assert_allclose(found.registration, register_states(a, b, metric="jaw"))
    assert (found.low <= found.high).all()
    assert (dict(found.splits), dict(found.merges)) == ({}, {})
    assert repr(found).split("\n")[0] == (
        "state 0 of a is state 1 of b in 100 % of 40 refits"
    )


def test_splits_and_merges_are_named():
    few, many = model([0, 30]), model([0, 28, 33])
    found = registration_interval(few, many, **OPTIONS)
    assert dict(found.splits) == {1: (1, 2)}
    assert dict(found.merges) == {}
    assert "state 1 of a splits into states 1 and 2 of b" in repr(found)
    turned = registration_interval(many, few, **OPTIONS)
    assert dict(turned.merges) == {1: (1, 2)}
    assert "states 1 and 2 of a merge into state 1 of b" in repr(turned)
    frame = pytest.importorskip("pandas") and turned.to_frame()
    row = frame.query("state_a == 2 and state_b == 1")
    assert_allclose(row["probability"], turned.probabilities[2, 1])


def test_states_are_called_by_their_names():
    visible = MarkovChainTransformer("WNR", prior=0.5)
    a, b = (visible.fit_transform(["WWNNNNRRNNNW" * n])[0] for n in (4, 6))
    found = registration_interval(a, b, hmm=visible, **OPTIONS)
    lines = [f"state {s} of a is state {s} of b in 100 % of 40 refits" for s in "WNR"]
    assert repr(found).split("\n") == lines
    frame = found.to_frame()
    assert frame.query("state_a == 'W' and state_b == 'W'")["probability"].item() == 1
    few, many = model([0, 30]), model([0, 28, 33])
    found = registration_interval(few, many, **OPTIONS)
    named = replace(found, state_names=(("low", "high"), None))
    assert named.notes() == ["state high of a splits into states 1 and 2 of b"]


def test_matches_with_equal_states_are_uncertain():
    # The states of b are equal, and equally near to each state of a.
    found = registration_interval(model([0, 20]), model([10, 10]), **OPTIONS)
    assert (found.probabilities.max(axis=1) < 0.95).all()


@settings(deadline=None)
@given(arrays(float, (4, 3, 2), elements=st.floats(0, 1) | st.just(np.inf)))
def test_fractions_of_rows_sum_to_one(costs):
    found = nearest_fractions(costs)
    known = np.isfinite(costs).any(axis=(0, 2))
    assert_allclose(found[known].sum(axis=1), 1)
    assert np.isnan(found[~known]).all()


def test_counterparts_by_hand():
    away = [np.inf, np.inf]
    costs = np.array([[[0.4, 0.6], [0.3, 0.2]], [[0.5, 0.5], away]])
    # The first row is a tie once; the second refit does not have the second state.
    assert_allclose(nearest_fractions(costs), [[0.75, 0.25], [0.0, 1.0]])


def test_intervals_are_quantiles_of_the_refits():
    options = {**OPTIONS, "n_timesteps": 30, "n_resamples": 2}
    narrow, wide = (
        registration_interval(model([0, 3]), model([1, 3]), confidence=c, **options)
        for c in (0.5, 0.9)
    )
    # Between two values, quantiles are linear.
    assert_allclose(narrow.low + narrow.high, wide.low + wide.high)
    assert_allclose(0.9 * (narrow.high - narrow.low), 0.5 * (wide.high - wide.low))
    assert (wide.high > wide.low).any()


def test_methods_and_seeds():
    X = model([0, 6]).sample(120, random_state=0)[0]
    X += model([6, 0]).sample(120, random_state=1)[0]
    fits = HMMTransformer(2, random_state=0, keep_sequences=True).fit_transform(X)
    options = {"n_resamples": 20, "random_state": 3}
    one = registration_interval(fits[0], fits[1], **options)
    two = registration_interval(fits[0], fits[1], **options)
    blocks = registration_interval(fits[0], fits[1], method="block", **options)
    assert_array_equal(one.low, two.low)
    assert_array_equal(one.counterparts, blocks.counterparts)
    assert not np.array_equal(one.low, blocks.low)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "kl"}, "metric must register states, .* got 'kl'"),
        ({"n_timesteps": None}, "n_timesteps must be the length .* info of a"),
        ({"confidence": 1}, "confidence must be a number"),
        ({"n_resamples": 1}, "n_resamples must be an integer of at least 2"),
        ({"b": None}, "b must be an HMMBatch"),
        ({"a": model([0, 1])[[0, 0]]}, "a must hold one model, got 2"),
    ],
    ids=str,
)
def test_bad_input_is_named(change, message):
    arguments = {"a": model([0, 4]), "b": model([1, 4]), **OPTIONS, **change}
    with pytest.raises((TypeError, ValueError), match=message):
        registration_interval(**arguments)


@pytest.fixture
def fitted():
    # The last two states are hardly distinct, and recordings are short.
    truth = model([0, 12, 13.5])[np.zeros(12, int)]
    X = [truth[n].sample(40, random_state=n)[0][0] for n in range(12)]
    return HMMTransformer(3, random_state=0).fit_transform(X)


def test_aligners_report_match_confidence(fitted):
    aligner = HMMAligner(model([0, 12, 13.5]), n_resamples=30, random_state=0)
    aligner.fit(fitted)
    sure = aligner.match_confidence_
    assert sure.shape == (12, 3)
    # Most fits are sure; some have taken one of the near states for two.
    assert np.nanmedian(sure) == 1
    assert np.nanmin(sure) < 0.5
    assert ((sure >= 0) & (sure <= 1) | np.isnan(sure)).all()
    again = aligner.align(fitted)
    assert_array_equal(again.confidence, sure)
    one = aligner.align(fitted[3])
    assert_array_equal(one.confidence[0], sure[3])
    assert HMMAligner(model([0, 12, 13.5])).fit(fitted).match_confidence_ is None


def test_effects_and_tables_show_it(fitted):
    pytest.importorskip("pandas")
    aligner = HMMAligner(model([0, 12, 13.5]), n_resamples=20, random_state=0)
    aligner.fit(fitted)
    effects = state_effects(
        fitted, [0, 1] * 6, reference=aligner, n_permutations=99, random_state=0
    )
    means = np.nanmean(aligner.match_confidence_, axis=0)
    columns = effects.columns
    is_step = columns["next_state"] >= 0
    assert_allclose(columns["match"][~is_step], means[columns["state"][~is_step]])
    pairs = means[columns["state"]], means[columns["next_state"]]
    assert_allclose(columns["match"][is_step], np.minimum(*pairs)[is_step])
    assert "match" in repr(effects)
    table = state_table(fitted, aligner)
    assert_allclose(table["match"], aligner.match_confidence_.ravel())


def test_confidence_needs_lengths():
    models = model([0, 4])[[0, 0]]
    with pytest.raises(ValueError, match="n_resamples needs the number of frames"):
        HMMAligner(model([0, 4]), n_resamples=5).fit(models)
    with pytest.raises(ValueError, match="n_resamples must be an integer of at least"):
        HMMAligner(n_resamples=-1).fit(models)
