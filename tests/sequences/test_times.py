"""Rows at irregular times, spells, and sequences of states as TraMineR keeps them."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMTransformer, as_sequences
from skawhmm.features import NGrams

COURSES = ["SSSEEE", "SEEEUE", "SSUU"]


def wide(courses=COURSES):
    """Return sequences of states as a table with one row per sequence."""
    width = max(map(len, courses))
    rows = [[*course] + [None] * (width - len(course)) for course in courses]
    return pd.DataFrame(rows, columns=[f"y{k}" for k in range(width)])


def spells(course):
    """Return the runs of a text as (symbol, first, last)."""
    edges = [0, *(k for k in range(1, len(course)) if course[k] != course[k - 1])]
    ends = [*(k - 1 for k in edges[1:]), len(course) - 1]
    return [(course[a], a, b) for a, b in zip(edges, ends, strict=True)]


def spell_table(courses):
    rows = [(i, *spell) for i, c in enumerate(courses) for spell in spells(c)]
    return pd.DataFrame(rows, columns=["who", "state", "begin", "end"])


def texts(X):
    return ["".join(x) for x in X]


def test_wide_table_of_states_is_read_by_row():
    X, ids = as_sequences(wide())
    assert texts(X) == COURSES
    assert_array_equal(ids, [0, 1, 2])
    table = wide().assign(who=["a", "b", "c"], sex=["f", "m", "f"])
    X, ids, y = as_sequences(table, id="who", labels="sex")
    assert texts(X) == COURSES
    assert ids.tolist() == ["a", "b", "c"]
    assert y.tolist() == ["f", "m", "f"]


def test_states_missing_within_a_row_stay_missing():
    table = wide()
    table.loc[0, "y1"] = None
    table.loc[1, "y1"] = np.nan
    X, _ = as_sequences(table)
    assert X[0].tolist() == ["S", "", "S", "E", "E", "E"]
    assert X[1].tolist() == ["S", "", "E", "E", "U", "E"]
    models = HMMTransformer(2, emission="categorical", random_state=0).fit_transform(X)
    assert models.symbols.tolist() == ["E", "S", "U"]


def test_missing_symbols_do_not_count():
    given_none = [["a", None, "b", "a"], ["b", "b", np.nan, "a"]]
    given_empty = [["a", "", "b", "a"], ["b", "b", "", "a"]]
    hmm = HMMTransformer(2, emission="categorical", random_state=0)
    one, two = (hmm.fit_transform(X) for X in (given_none, given_empty))
    assert_array_equal(one.emissionprobs, two.emissionprobs)
    counts = NGrams(1).fit(given_none)
    assert counts.get_feature_names_out().tolist() == ["a", "b"]


def test_spells_are_expanded():
    X, ids = as_sequences(spell_table(COURSES), id="who", time=("begin", "end"))
    assert texts(X) == COURSES
    assert_array_equal(ids, [0, 1, 2])


@given(st.lists(st.text("ABC", min_size=1, max_size=9), min_size=1, max_size=5))
def test_all_formats_of_states_agree(courses):
    table = spell_table(courses)
    X, _ = as_sequences(
        table.sample(frac=1, random_state=0), id="who", time=("begin", "end")
    )
    order = table.sample(frac=1, random_state=0)["who"].drop_duplicates()
    assert texts(X) == [courses[k] for k in order]
    sps = ["-".join(f"({s},{b - a + 1})" for s, a, b in spells(c)) for c in courses]
    assert texts(as_sequences(sps, layout="sps")[0]) == courses
    bare = ["-".join(f"{s}/{b - a + 1}" for s, a, b in spells(c)) for c in courses]
    assert texts(as_sequences(pd.Series(bare), layout="sps")[0]) == courses


def test_gap_between_spells_is_missing():
    table = spell_table(["SSEE"]).assign(begin=[0, 4], end=[1, 5])
    X, _ = as_sequences(table, id="who", time=("begin", "end"))
    assert X[0].tolist() == ["S", "S", "", "", "E", "E"]


def test_texts_of_spells_in_a_column_have_ids_and_labels():
    table = pd.DataFrame(
        {"who": [7, 9], "sex": ["f", "m"], "path": ["(A,2)", "B/1-A/2"]}
    )
    X, ids, y = as_sequences(table, id="who", labels="sex", layout="sps")
    assert texts(X) == ["AA", "BAA"]
    assert ids.tolist() == [7, 9]
    assert y.tolist() == ["f", "m"]
    X, ids = as_sequences({"one": "(A,2)", "two": "(B,1)"}, layout="sps")
    assert texts(X) == ["AA", "B"]
    assert ids.tolist() == ["one", "two"]


def test_irregular_rows_are_averaged_per_step():
    table = {"run": [1] * 5, "t": [3.0, 10.4, 9.6, 10.1, 3.4], "x": [1.0, 4, 8, 6, 3]}
    X, _ = as_sequences(table, id="run", time="t", every=2)
    # Frames are at 3, 5, 7, 9 and 11: 9.6 is nearest to 9, 10.1 and 10.4 to 11.
    assert_allclose(X[0].ravel(), [2, np.nan, np.nan, 8, 5])


def test_dates_are_resampled_by_a_timedelta():
    days = [datetime.date(2024, 1, d) for d in (1, 2, 5)]
    table = pd.DataFrame({"run": 1, "day": days, "x": [1.0, 2.0, 3.0]})
    for column in (table["day"], pd.to_datetime(table["day"])):
        X, _ = as_sequences(
            table.assign(day=column), id="run", time="day", every=pd.Timedelta("1D")
        )
        assert_allclose(X[0].ravel(), [1, 2, np.nan, np.nan, 3])


def test_regular_rows_are_unchanged_by_their_own_step():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"run": np.repeat([0, 1], 6), "t": [*range(6)] * 2, "x": rng.normal(size=12)}
    )
    plain, _ = as_sequences(table, id="run", time="t")
    regular, _ = as_sequences(table, id="run", time="t", every=1)
    for one, two in zip(plain, regular, strict=True):
        assert_array_equal(one, two)
    assert regular[0].feature_names == ("x",)


def test_symbols_at_irregular_times_keep_the_last_one():
    table = pd.DataFrame({"who": 1, "t": [0.0, 0.9, 1.1, 3.0], "s": [*"ABCD"]})
    X, _ = as_sequences(table, id="who", time="t", every=1)
    assert X[0].tolist() == ["A", "C", "", "D"]


def test_several_columns_of_labels_come_as_a_dict():
    table = pd.DataFrame(
        {
            "run": [1, 1, 2, 2],
            "sex": ["f", "f", "m", "m"],
            "age": [30, 30, 41, 41],
            "x": [0.0, 1, 2, 3],
        }
    )
    _, _, info = as_sequences(table, id="run", labels=["sex", "age"])
    assert {name: column.tolist() for name, column in info.items()} == {
        "sex": ["f", "m"],
        "age": [30, 41],
    }
    wide_table = wide().assign(sex=["f", "m", "f"], age=[1, 2, 3])
    _, _, info = as_sequences(wide_table, labels=["sex", "age"])
    assert info["age"].tolist() == [1, 2, 3]


def test_columns_that_describe_sequences_are_reported():
    table = pd.DataFrame(
        {"run": [1, 1, 2, 2], "age": [30, 30, 41, 41], "x": [0.0, 1, 2, 3]}
    )
    with pytest.warns(UserWarning, match=r"\['age'\] have one value per sequence"):
        as_sequences(table, id="run")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_sequences(table, id="run", channels=["age", "x"])
        as_sequences(table, id="run", labels="age")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"every": 0}, ValueError, "every must be a number"),
        ({"every": "1h"}, TypeError, "every must be a number"),
        ({"every": 1e-9}, ValueError, "1e.*frames of 4 rows"),
        ({"time": None, "every": 1}, ValueError, "every needs a column of times"),
        ({"time": ("t", "t", "t")}, ValueError, "two columns"),
        ({"time": ("t", "x"), "channels": "run"}, ValueError, "hold whole numbers"),
        ({"time": ("t", "t"), "every": 1}, ValueError, "None for spells"),
    ],
)
def test_errors(arguments, error, message):
    table = pd.DataFrame({"run": [1, 1, 2, 2], "t": [0, 5, 0, 5], "x": [0.1, 1, 2, 3]})
    with pytest.raises(error, match=message):
        as_sequences(table, **{"id": "run", "time": "t", **arguments})
