"""Mistakes in blocks of channels."""

import numpy as np
import pytest

from skawhmm import HMMTransformer
from skawhmm.emissions import ByChannel, Categorical, Gamma, Gaussian, VonMises

BLOCKS = [("step", Gamma(), [0]), ("turn", VonMises(), [1])]


@pytest.mark.parametrize(
    ("blocks", "error", "match"),
    [
        ([("a", Gamma(), [0])], ValueError, r"columns \[1\] of 2 in none"),
        (
            [("a", Gamma(), [0, 1]), ("b", VonMises(), [1])],
            ValueError,
            "column 1 in 'a' and 'b'",
        ),
        ([("a", Gamma(), [0, 2])], ValueError, "'a'.*from 0 to 1, got 2"),
        ([("a", Gamma(), "x"), ("b", VonMises(), [1])], ValueError, "'a'.*by name"),
        ([("a", Gamma(), [0]), ("a", VonMises(), [1])], ValueError, "distinct"),
        ([("a__b", Gamma(), [0, 1])], ValueError, "without '__'.*'a__b'"),
        ([("scale", Gamma(), [0, 1])], ValueError, "name of a parameter.*'scale'"),
        ([("a", Gamma, [0, 1])], TypeError, r"class Gamma.*Gamma\(\)"),
        ([("a", "gamma", [0, 1])], TypeError, "'a'.*got 'gamma'"),
        ([("a", Gamma())], TypeError, r"blocks\[0\].*\(name, family, columns\)"),
        ("step", TypeError, "blocks must be a list.*'step'"),
        ([("a", Gaussian("tied"), [0, 1])], ValueError, "'a'.*'diag' or 'full'.*tied"),
        ([("a", Categorical(), [0, 1])], ValueError, "'a'.*one column of symbols"),
        ([("a", Gamma(), [True])], ValueError, "'a'.*mask of 2 columns"),
        ([("a", Gamma(), [])], ValueError, "'a'.*at least one column"),
        ([("a", ByChannel([]), [0, 1])], TypeError, "'a'.*that can be fitted"),
    ],
)
def test_wrong_blocks(blocks, error, match):
    X = [np.ones((5, 2))]
    with pytest.raises(error, match=match):
        HMMTransformer(1, emission=ByChannel(blocks)).fit_transform(X)


@pytest.mark.parametrize(
    ("scale", "error", "match"),
    [
        ("variance", ValueError, "scale must be 'spread'.*'variance'"),
        (2.0, TypeError, "scale must be 'spread'.*2.0"),
        ({"step": 1.0}, ValueError, r"blocks \['step', 'turn'\].*\['step'\]"),
        ({"step": 0.0, "turn": 1.0}, ValueError, r"scale\['step'\].*0"),
    ],
)
def test_wrong_scales(scale, error, match):
    with pytest.raises(error, match=match):
        HMMTransformer(1, emission=ByChannel(BLOCKS, scale=scale)).fit(
            [np.ones((5, 2))]
        )
