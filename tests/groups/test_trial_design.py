import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skawhmm.groups._permutations import n_arrangements
from skawhmm.groups._trial_design import check_trial_design


def design_of(labels, units=None, lengths=None):
    lengths = [2] * len(labels) if lengths is None else lengths
    recordings = [np.zeros((n, 1)) for n in lengths]
    return check_trial_design(recordings, labels, units, within=False)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 2), min_size=2, max_size=3), st.integers(0, 99))
def test_drawn_labels_keep_their_numbers(counts, seed):
    counts = [counts[0] + 1, *counts[1:]]
    labels = [g for _ in range(2) for g, n in enumerate(counts) for _ in range(n)]
    units = np.repeat([0, 1], len(labels) // 2)
    design = design_of(labels, units)
    drawn = design.drawn(np.random.default_rng(seed))
    for unit in (0, 1):
        assert_array_equal(np.bincount(drawn[units == unit]), counts)
    every = design.arrangements()
    assert len(every) == n_arrangements(design.cells) == len(np.unique(every, axis=0))
    assert_array_equal(every[0], design.codes)
    assert (every == drawn).all(axis=1).any()


def test_every_usable_arrangement_is_equally_likely():
    # Of the four places of the single b, only trials 0, 1 and 3 have a transition, and
    # one of the others must have one, too.
    design = design_of(list("aaba"), lengths=[2, 2, 3, 1])
    every = design.arrangements()
    assert_array_equal(np.sort(np.argmax(every, axis=1)), [0, 1, 2])
    rng = np.random.default_rng(0)
    places = [np.argmax(design.drawn(rng)) for _ in range(600)]
    counts = np.bincount(places, minlength=4)
    assert counts[3] == 0
    assert counts[:3].min() > 150


def test_units_with_one_condition_have_no_design():
    assert design_of(list("aabb"), [0, 0, 1, 1]) is None


def test_models_are_pairs_of_units_and_conditions():
    models = design_of(list("aabab"), [5, 5, 5, 7, 7]).models
    assert_array_equal(models.strata, [0, 0, 1, 1])
    assert_array_equal(models.codes, [0, 1, 0, 1])
    assert models.has_complete_blocks
