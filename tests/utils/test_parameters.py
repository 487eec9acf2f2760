from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from skawhmm import MAW, HMMTransformer
from skawhmm.utils._checks import check_integer
from skawhmm.utils._parameters import (
    Parametrized,
    Unused,
    _is_unchanged,
    _snapshot,
    check_effects,
    defaults_of,
    is_same,
)


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (1, np.int64(1), True),
        (0.1, 0.2, False),
        ("a", "a", True),
        (None, None, True),
        (None, np.zeros(2), False),
        (np.zeros(2), np.zeros(2), True),
        (np.zeros(2), np.zeros(3), False),
        ((0, 0.5), [0.0, 0.5], True),
        (MAW(0.3), MAW(0.3), True),
        (MAW(0.3), MAW(0.4), False),
        (np.float64(0.99), 0.99, True),
        (np.float32(0.99), 0.99, False),
        (np.float32(0.99), np.float32(0.99), True),
        (np.float32(0.5), 0.5, True),
        (np.str_("a"), "a", True),
        (np.bool_(True), True, True),
        (HMMTransformer(), None, False),
    ],
)
def test_values_are_the_same_by_content(one, two, same):
    assert is_same(one, two) is same
    assert is_same(two, one) is same


def test_a_parameter_without_effect_must_be_its_default():
    rules = (Unused(("b", "c"), "a", lambda a: a == "no"),)
    defaults = {"a": "yes", "b": 1, "c": None}
    check_effects({"a": "no", "b": 1, "c": None}, defaults, rules)
    check_effects({"a": "yes", "b": 2, "c": 3}, defaults, rules)
    with pytest.raises(ValueError, match=r"^c must be None with a='no', .*, got 3"):
        check_effects({"a": "no", "b": 1, "c": 3}, defaults, rules)
    # A subclass may expose fewer.
    check_effects({"a": "no", "b": 2, "c": 3}, {"a": "yes"}, rules)


def test_defaults_are_read_off_the_signature():
    assert defaults_of(MAW)["alpha"] == 0.1
    assert defaults_of(HMMTransformer)["prior"] is None


def changed_list(values):
    values[0] = 7


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (np.zeros(3), changed_list),
        ([1, 2], changed_list),
        ([("x", np.zeros(2))], lambda views: changed_list(views[0][1])),
        ({"rows": [1, 2]}, lambda params: changed_list(params["rows"])),
        (MAW(0.3), lambda metric: setattr(metric, "alpha", 0.7)),
    ],
)
def test_changes_in_place_do_not_reach_a_snapshot(value, change):
    before = _snapshot(value)
    assert _is_unchanged(value, before)
    change(value)
    assert not _is_unchanged(value, before)


@pytest.mark.parametrize(
    "value", [np.nan, print, np.random.RandomState(0), HMMTransformer(2), object()]
)
def test_values_that_nobody_changed_are_unchanged(value):
    before = _snapshot(value)
    if isinstance(value, np.random.RandomState):
        value.rand()
    assert _is_unchanged(value, before)
    assert not _is_unchanged("something else", before)


class Weighted(Parametrized):
    """A parameter object."""

    _parameter_checks: ClassVar = {"power": partial(check_integer, low=1)}
    _unused: ClassVar = (Unused(("weights",), "power", lambda power: power == 1),)

    def __init__(self, weights=None, *, power=2):
        self.weights = weights
        self.power = power
        self._check_parameters()


def test_parameter_objects_are_equal_by_their_parameters():
    one = Weighted(np.array([1, 2]))
    assert repr(one) == "Weighted(weights=array([1, 2]))"
    assert one == Weighted(np.array([1, 2]), power=np.int64(2)) == clone(one)
    assert hash(one) == hash(clone(one))
    assert one != Weighted(np.array([1, 3]))
    assert one != Weighted(np.array([1, 2]), power=3)


def test_parameter_objects_check_what_they_are_given():
    with pytest.raises(ValueError, match=r"power must be .* got 0"):
        Weighted(power=0)
    with pytest.raises(ValueError, match="weights must be None with power=1"):
        Weighted([1, 2], power=1)


def test_values_from_set_params_are_checked_in_use():
    one = Weighted().set_params(power=np.int64(3))
    assert type(one.power) is np.int64
    assert type(one._checked().power) is int
    one.set_params(power="two")
    with pytest.raises(TypeError, match=r"power must be .* got 'two'"):
        one._checked()
    assert one != Weighted()
