import builtins

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from skawhmm import HMMTransformer, hmm_group_test


@pytest.fixture
def result(rng):
    points = rng.normal(size=(18, 2))
    return hmm_group_test(
        cdist(points, points), list("abc") * 6, n_permutations=99, random_state=0
    )


def test_the_table_has_every_test(result):
    pytest.importorskip("pandas")
    frame = result.to_frame()
    assert frame["groups"].tolist() == ["all", "all", "a - b", "a - c", "b - c"]
    assert frame["test"].tolist()[:2] == ["distance", "dispersion"]
    assert_allclose(frame["statistic"][0], result.statistic)
    row = frame.set_index("groups").loc["b - c"]
    assert row["pvalue"] == result.pairwise["b", "c"]["distance"].pvalue
    assert row["corrected"] == result.pairwise_pvalues["b", "c"]["distance"]


def test_text_and_html_of_a_test_result(result):
    lines = repr(result).split("\n")
    assert lines[0] == "pseudo-F of 3 groups (a: 6, b: 6, c: 6), 99 permutations"
    assert lines[1].split() == [
        *("groups", "test", "statistic", "pvalue", "corrected", "effect_size")
    ]
    assert len(lines) == 8
    assert lines[-1].startswith("not tested: marginal, transition (X holds distances")
    html = result._repr_html_()
    assert html.count("<tr>") == 6
    assert "b - c" in html


def test_pairs_of_groups_without_a_common_stratum_are_not_tested(rng):
    points = rng.normal(size=(24, 2))
    groups, sites = list("aaaccc" * 2 + "bbbccc" * 2), np.repeat([0, 1], 12)
    found = hmm_group_test(
        cdist(points, points), groups, strata=sites, n_permutations=99, random_state=0
    )
    assert set(found.pairwise) == {("a", "c"), ("b", "c")}
    assert found.missing["a - b"] == "no stratum has units of both groups"
    assert "not tested: a - b (no stratum" in repr(found)


def test_one_unit_has_no_effect_size(rng):
    trials, hmm = list(rng.normal(size=(9, 5, 1))), HMMTransformer(1, random_state=0)
    found = hmm_group_test(
        trials, list("abaabaaba"), refit=True, hmm=hmm, n_permutations=39
    )
    assert repr(found).startswith("variation of 2 groups (a: 1, b: 1), 39")
    text = found.report().replace("\n", " ")
    assert "nan" not in text
    assert f"variation = {found.statistic:.3g}, p = {found.pvalue:.2g}. States" in text


def test_result_cannot_be_changed(result):
    with pytest.raises(AttributeError):
        result.kind = "energy"
    with pytest.raises(TypeError):
        result.tests["distance"] = None


def test_a_table_asks_for_pandas(result, monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"to_frame makes .*pip install pandas"):
        result.to_frame()


@pytest.mark.filterwarnings("ignore:There are only")
def test_names_are_escaped():
    distances = np.array([[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0.0]])
    result = hmm_group_test(distances, ["<b>", "<b>", "c", "c"], random_state=0)
    assert "<b>" not in result._repr_html_()
