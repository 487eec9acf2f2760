import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import hmm_group_test
from skawhmm.plot import GroupTestDisplay


@pytest.fixture
def result(make_batch):
    return hmm_group_test(
        make_batch(n_models=12), list("ab") * 6, n_permutations=199, random_state=0
    )


@pytest.mark.parametrize("test", ["distance", "marginal", "transition", "dispersion"])
def test_observed_value_is_drawn_among_permutations(test, result, plt):
    display = GroupTestDisplay.from_result(result, test, bins=17)
    found = result.dispersion if test == "dispersion" else result.tests[test]
    assert_allclose(display.line_.get_xdata(), found.statistic)
    assert len(display.bars_) == 17
    assert sum(bar.get_height() for bar in display.bars_) == 199
    part = " component" if test in {"marginal", "transition"} else ""
    assert display.ax_.get_xlabel().endswith(f"of the {test}{part}")
    assert f"p = {found.pvalue:.4g}" in display.line_.get_label()


def test_legends_hide_nothing(result, plt):
    display = GroupTestDisplay.from_result(result)
    display.figure_.draw_without_rendering()
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.y0 >= display.ax_.get_window_extent().y1


def test_axes_are_used_and_unknown_tests_are_named(result, plt):
    _, ax = plt.subplots()
    assert GroupTestDisplay.from_result(result, ax=ax).ax_ is ax
    with pytest.raises(ValueError, match="test must be one of"):
        GroupTestDisplay.from_result(result, "speed")


def test_infinite_statistics_are_left_out(plt):
    display = GroupTestDisplay(3.0, [1.0, 2.0, np.inf], 0.5).plot()
    assert sum(bar.get_height() for bar in display.bars_) == 2
