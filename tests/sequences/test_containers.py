"""Every container that data usually comes in: the right sequences or the right words.

The same three sequences (of 4, 6 and 5 frames and two channels) are put into each
container, and must be read back unchanged.
"""

import datetime
import warnings
from collections import deque

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import (
    HMMTransformer,
    as_sequences,
)

LENGTHS = [4, 6, 5]
RUNS = ["walk 1", "run 1", "walk 2"]
LABELS = ["walk", "run", "walk"]


@pytest.fixture
def sequences():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, 2)) for n in LENGTHS]


def columns(sequences, shuffled=True):
    """Return a long table as columns, its rows in any order."""
    frames = np.concatenate(sequences)
    table = {
        "run": np.repeat(RUNS, LENGTHS),
        "t": np.concatenate([np.arange(n) for n in LENGTHS]),
        "x": frames[:, 0],
        "y": frames[:, 1],
        "kind": np.repeat(LABELS, LENGTHS),
    }
    order = np.random.default_rng(1).permutation(len(frames))
    order = order if shuffled else np.arange(len(frames))
    return {name: column[order] for name, column in table.items()}


def check(found, sequences, ids=(0, 1, 2)):
    """Compare sequences by their ids, and the types with what is promised."""
    X, names = found[:2]
    assert isinstance(X, list)
    assert isinstance(names, np.ndarray)
    wanted = dict(zip(ids, sequences, strict=True))
    assert {*names.tolist()} == {*wanted}
    for x, name in zip(X, names.tolist(), strict=True):
        assert x.dtype == np.float64
        assert x.flags.c_contiguous
        assert_array_equal(x, wanted[name])


def pandas_table(sequences, **kw):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(columns(sequences, **kw))


def polars_table(sequences):
    return pytest.importorskip("polars").DataFrame(columns(sequences))


def arrow_table(sequences):
    return pytest.importorskip("pyarrow").table(columns(sequences))


def structured(sequences):
    table = columns(sequences)
    array = np.empty(sum(LENGTHS), [(name, c.dtype) for name, c in table.items()])
    for name, column in table.items():
        array[name] = column
    return array


LONG = {"id": "run", "time": "t", "channels": ["x", "y"], "labels": "kind"}


@pytest.mark.parametrize(
    "make",
    [
        columns,
        pandas_table,
        polars_table,
        arrow_table,
        lambda x: arrow_table(x).combine_chunks().to_batches()[0],
        structured,
    ],
    ids=["dict", "pandas", "polars", "pyarrow", "pyarrow batch", "structured"],
)
def test_long_tables(make, sequences):
    table = make(sequences)
    X, ids, y = as_sequences(table, **LONG)
    check((X, ids), sequences, RUNS)
    assert dict(zip(ids.tolist(), y.tolist(), strict=True)) == dict(
        zip(RUNS, LABELS, strict=True)
    )


def test_rows_keep_their_order_without_a_time(sequences):
    table = pandas_table(sequences, shuffled=False)
    found = as_sequences(table, id="run", channels=["x", "y"])
    check(found, sequences, RUNS)
    assert found[1].tolist() == RUNS


def test_several_columns_tell_sequences_apart(sequences):
    table = pandas_table(sequences)
    table["number"] = table.run.str[-1].astype(int)
    X, ids = as_sequences(table, id=["kind", "number"], time="t", channels=["x", "y"])
    check((X, ids), sequences, [("walk", 1), ("run", 1), ("walk", 2)])


def test_multi_index(sequences):
    table = pandas_table(sequences).drop(columns="kind").set_index(["run", "t"])
    check(as_sequences(table), sequences, RUNS)
    check(as_sequences(table.rename_axis([None, None])), sequences, RUNS)
    one = as_sequences(table["x"])
    check(one, [x[:, :1] for x in sequences], RUNS)


def test_an_index_can_be_the_time(sequences):
    table = pandas_table(sequences).set_index("t")
    check(as_sequences(table, **LONG), sequences, RUNS)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_dates_order_frames(sequences, zone):
    pandas = pytest.importorskip("pandas")
    table = pandas_table(sequences)
    start = pandas.Timestamp("2024-03-30 22:00", tz=zone)
    table["t"] = start + pandas.to_timedelta(table["t"], unit="h")
    check(as_sequences(table, **LONG), sequences, RUNS)
    if zone is None:
        table["t"] = table["t"].dt.to_period("h")
        check(as_sequences(table, **LONG), sequences, RUNS)


def test_dates_of_python_order_frames(sequences):
    table = columns(sequences)
    start = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC).replace(tzinfo=None)
    dates = [start + datetime.timedelta(days=int(t)) for t in table["t"]]
    table["t"] = np.array(dates, dtype=object)
    check(as_sequences(table, **LONG), sequences, RUNS)


def test_nullable_columns_have_nan(sequences):
    pandas = pytest.importorskip("pandas")
    table = pandas_table(sequences, shuffled=False)
    table["x"] = table["x"].round().astype("Int64")
    table.loc[2, "x"] = pandas.NA
    X, _ = as_sequences(table, id="run", time="t", channels=["x", "y"])
    assert np.isnan(X[0][2, 0])
    assert np.isnan(np.concatenate(X)).sum() == 1


def test_single_recording_in_a_table(sequences):
    table = pandas_table(sequences).query("run == 'run 1'")
    found = as_sequences(table, time="t", channels=["x", "y"])
    check(found, sequences[1:2], (0,))


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_wide_tables(package):
    module = pytest.importorskip(package)
    rows = np.arange(12.0).reshape(3, 4)
    rows[1, 3] = np.nan
    table = module.DataFrame({f"t{k}": rows[:, k] for k in range(4)})
    found = as_sequences(table)
    wanted = [rows[0][:, None], rows[1][:3, None], rows[2][:, None]]
    check(found, wanted)
    named = module.DataFrame({"who": RUNS, **{f"t{k}": rows[:, k] for k in range(4)}})
    check(as_sequences(named, id="who"), wanted, RUNS)
    X, ids, y = as_sequences(named, labels="who")
    check((X, ids), wanted)
    assert y.tolist() == RUNS


def test_index_of_a_wide_table_names_sequences():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(np.arange(6.0).reshape(2, 3), index=["a", "b"])
    table.columns = list("xyz")
    check(as_sequences(table), [[[0], [1], [2]], [[3], [4], [5]]], ["a", "b"])


def test_columns_without_names_can_be_numbered(sequences):
    pandas = pytest.importorskip("pandas")
    frames = np.concatenate(sequences)
    number = np.repeat([0, 1, 2], LENGTHS)
    table = pandas.DataFrame(np.column_stack([number, frames]))
    check(as_sequences(table, id=0), sequences)


def test_a_dict_of_columns_with_a_time_is_one_recording():
    table = {"time": [2, 0, 1], "v": [5.0, 3.0, 4.0]}
    check(as_sequences(table, time="time"), [[[3], [4], [5]]], (0,))


def test_long_tables_are_not_read_as_wide(sequences):
    table = pandas_table(sequences)[["t", "x", "y"]]
    with pytest.raises(ValueError, match=r"a column 't'.*as_sequences\(data, time='t'"):
        as_sequences(table)
    table = pandas_table(sequences)[["run", "x"]]
    with pytest.raises(ValueError, match=r"a column 'run'.*data, id='run'"):
        as_sequences(table)


def test_symbols_in_a_table():
    table = {"id": [1, 1, 2, 2, 2], "base": list("ACGTA")}
    X, ids = as_sequences(table, id="id")
    assert ["".join(x) for x in X] == ["AC", "GTA"]
    assert ids.tolist() == [1, 2]
    assert len(HMMTransformer(1, emission="categorical").fit_transform(X)) == 2


def test_lengths(sequences):
    frames = np.concatenate(sequences)
    check(as_sequences(frames, lengths=LENGTHS), sequences)
    check(as_sequences(frames.tolist(), lengths=LENGTHS), sequences)
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(frames, columns=["x", "y"])
    check(as_sequences(table, lengths=LENGTHS), sequences)


def padded(sequences):
    cube = np.full((3, 6, 2), np.nan)
    for row, x in zip(cube, sequences, strict=True):
        row[: len(x)] = x
    return cube


def test_arrays(sequences):
    cube = padded(sequences)
    check(as_sequences(cube), sequences)
    check(as_sequences(np.ma.masked_invalid(cube)), sequences)
    check(
        as_sequences(cube.astype(np.float32).astype(object)),
        [x.astype(np.float32) for x in sequences],
    )
    transposed = cube.transpose(0, 2, 1)
    check(as_sequences(transposed, layout="channels_first"), sequences)
    rows = cube[:, :, 0]
    check(as_sequences(rows), [x[:, :1] for x in sequences])
    ragged = np.empty(3, object)
    ragged[:] = sequences
    check(as_sequences(ragged), sequences)


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        deque,
        iter,
        lambda X: (x for x in X),
        lambda X: map(np.asarray, X),
        lambda X: [x.tolist() for x in X],
        lambda X: [np.ma.masked_array(x) for x in X],
        lambda X: dict(enumerate(X)).values(),
    ],
    ids=[
        "list",
        "tuple",
        "deque",
        "iterator",
        "generator",
        "map",
        "lists",
        "masked",
        "values",
    ],
)
def test_collections(make, sequences):
    check(as_sequences(make(sequences)), sequences)


def test_dicts(sequences):
    check(as_sequences(dict(zip(RUNS, sequences, strict=True))), sequences, RUNS)
    ragged = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    check(as_sequences(ragged), [[[1], [2]], [[3], [4]]], ["a", "b"])
    keyed = {("s", 1): sequences[0], ("s", 2): sequences[1]}
    check(as_sequences(keyed), sequences[:2], [("s", 1), ("s", 2)])


def test_series_of_arrays(sequences):
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(sequences, index=RUNS)
    check(as_sequences(series), sequences, RUNS)
    polars = pytest.importorskip("polars")
    check(as_sequences(polars.Series([x.tolist() for x in sequences])), sequences)


def test_tables_in_lists_and_dicts(sequences):
    pandas = pytest.importorskip("pandas")
    tables = [
        pandas.DataFrame({"t": np.arange(len(x)), "x": x[:, 0], "y": x[:, 1]})
        for x in sequences
    ]
    tables[1] = tables[1].sample(frac=1, random_state=0)
    check(as_sequences(tables, time="t"), sequences)
    keyed = dict(zip(RUNS, tables, strict=True))
    check(as_sequences(keyed, time="t", channels=["x", "y"]), sequences, RUNS)


def test_xarray(sequences):
    xarray = pytest.importorskip("xarray")
    cube = padded(sequences)
    named = xarray.DataArray(cube, dims=("run", "time", "sensor"))
    check(as_sequences(named), sequences)
    transposed = named.transpose("sensor", "time", "run").assign_coords(
        run=RUNS, kind=("run", LABELS)
    )
    X, ids, y = as_sequences(transposed, id="run", channels="sensor", labels="kind")
    check((X, ids), sequences, RUNS)
    assert y.tolist() == LABELS
    one = [x[:, :1] for x in sequences]
    check(as_sequences(named[:, :, 0]), one)
    check(as_sequences(named[1]), sequences[1:2], (0,))
    data = xarray.Dataset({"x": named[:, :, 0], "y": named[:, :, 1]})
    check(as_sequences(data, time="time"), sequences)
    check(as_sequences(data, time="time", channels="x"), one)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "where"}, r"id must name a dimension, one of \['run', 'time', 'sen"),
        ({"labels": "kind"}, "labels must name a coordinate"),
        ({"layout": "channels_first"}, "layout must be 'time_first'"),
    ],
)
def test_errors_of_xarray(arguments, message):
    xarray = pytest.importorskip("xarray")
    data = xarray.DataArray(np.ones((3, 4, 2)), dims=("run", "time", "sensor"))
    with pytest.raises(ValueError, match=message):
        as_sequences(data, **arguments)
    with pytest.raises(ValueError, match="at most the dimensions"):
        as_sequences(xarray.DataArray(np.ones((2, 2, 2, 2))))
    with pytest.raises(ValueError, match="must name the dimensions"):
        as_sequences(data[0], id="time", channels="sensor")


def test_awkward(sequences):
    awkward = pytest.importorskip("awkward")
    check(
        as_sequences(awkward.Array([x[:, 0] for x in sequences])),
        [x[:, :1] for x in sequences],
    )
    check(as_sequences(awkward.Array([x.tolist() for x in sequences])), sequences)
    records = awkward.zip(
        {
            name: awkward.Array([x[:, k] for x in sequences])
            for k, name in enumerate("xy")
        }
    )
    check(as_sequences(records), sequences)
    check(as_sequences(records, channels=["y", "x"]), [x[:, ::-1] for x in sequences])
    gaps, _ = as_sequences(awkward.Array([[1.0, None], [2.0]]))
    assert_array_equal(gaps[0], [[1], [np.nan]])


def test_memory_maps_are_not_copied(sequences, tmp_path):
    np.save(tmp_path / "frames.npy", np.concatenate(sequences))
    frames = np.load(tmp_path / "frames.npy", mmap_mode="r")
    X, ids = as_sequences(frames, lengths=LENGTHS)
    check((X, ids), sequences)
    assert all(np.shares_memory(x, frames) for x in X)
    np.save(tmp_path / "cube.npy", padded(sequences))
    check(as_sequences(np.load(tmp_path / "cube.npy", mmap_mode="r")), sequences)


def test_sktime_containers(sequences):
    convert = pytest.importorskip("sktime.datatypes").convert
    equal = np.stack([x[:4].T for x in sequences])
    cut = [x[:4] for x in sequences]
    check(as_sequences(equal, layout="channels_first"), cut)
    for kind in ("pd-multiindex", "nested_univ", "df-list"):
        check(as_sequences(convert(equal, "numpy3D", kind, "Panel")), cut)
    frames = convert(equal, "numpy3D", "df-list", "Panel")
    frames[1] = frames[1][:3]
    uneven = [cut[0], cut[1][:3], cut[2]]
    for kind in ("pd-multiindex", "nested_univ", "df-list"):
        check(as_sequences(convert(frames, "df-list", kind, "Panel")), uneven)


def test_aeon_containers():
    datasets = pytest.importorskip("aeon.datasets", exc_type=ImportError)
    cube, _ = datasets.load_basic_motions(split="train")
    X, _ = as_sequences(cube, layout="channels_first")
    assert_array_equal(X[3], cube[3].T)
    cases, _ = datasets.load_japanese_vowels(split="train")
    X, _ = as_sequences(cases, layout="channels_first")
    assert {x.shape[1] for x in X} == {12}
    assert_array_equal(X[7], cases[7].T)


def test_tslearn_containers(sequences):
    utils = pytest.importorskip("tslearn.utils", exc_type=ImportError)
    check(as_sequences(utils.to_time_series_dataset(sequences)), sequences)


def test_many_sequences_in_a_table_are_read_at_once():
    n, length = 20_000, 5
    table = {
        "id": np.repeat(np.arange(n), length),
        "t": np.tile(np.arange(length), n),
        "v": np.arange(n * length, dtype=float),
    }
    order = np.random.default_rng(0).permutation(n * length)
    X, ids = as_sequences({k: v[order] for k, v in table.items()}, id="id", time="t")
    assert len(X) == n
    place = int(np.flatnonzero(ids == 123)[0])
    assert_array_equal(X[place][:, 0], np.arange(5.0) + 123 * length)


def test_gaps_and_repeated_times_are_reported(sequences):
    table = pandas_table(sequences, shuffled=False)
    holes = table[~((table.run == "run 1") & table.t.isin([2, 3]))]
    with pytest.warns(UserWarning, match=r"1 of 3 .*'run 1', goes from 1 to 4"):
        X, ids = as_sequences(holes, **LONG)[:2]
    assert len(X[ids.tolist().index("run 1")]) == 4
    twice = table.iloc[[0, 1, 2, 2, 3, *range(4, 15)]]
    with pytest.raises(ValueError, match=r"got 2 twice in sequence 'walk 1'.*id names"):
        as_sequences(twice, **LONG)
    with pytest.raises(ValueError, match=r"got 0 twice in sequence 0"):
        as_sequences(table, time="t", channels=["x", "y"])


def test_sequences_of_several_rates_have_no_gaps():
    table = {"id": [0] * 4 + [1] * 4, "t": [0, 1, 2, 3, 0, 10, 20, 30.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_sequences({**table, "v": np.arange(8.0)}, id="id", time="t")


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, {"id": "who"}, r"id must name a column, one of \['run', 't', .*'who'"),
        ({}, {"id": "run", "time": "when"}, "time must name a column"),
        ({}, {"id": "run", "channels": ["z"]}, "channels must name a column"),
        ({}, {"id": "run", "channels": []}, "at least one column"),
        ({}, {"id": "run", "labels": "who"}, "labels must name a column"),
        ({}, {"id": "run", "labels": "t", "channels": "x"}, "one label per sequence"),
        ({}, {"id": "run", "time": "t"}, r"'kind' must hold numbers.*\['x', 'y'\]"),
        ({}, {"id": "run", "time": "kind"}, "'kind' must hold numbers or dates"),
        ({"x": None}, {"id": "run", "time": "x"}, "'x' must hold a time in every row"),
        ({"run": None}, {"id": "run", "time": "t"}, "must have a value in every row"),
        ({}, {"id": "run", "layout": "channels_first"}, "layout must be 'time_first'"),
        ({}, {"lengths": LENGTHS, "id": "run"}, "id must be None for frames"),
    ],
)
def test_errors_of_tables(change, arguments, message, sequences):
    table = pandas_table(sequences, shuffled=False)
    for name, value in change.items():
        table.loc[3, name] = value
    with pytest.raises(ValueError, match=message):
        as_sequences(table, **arguments)


@pytest.mark.parametrize(
    ("data", "arguments", "error", "message"),
    [
        (3.0, {}, TypeError, "got float"),
        ("abc", {}, TypeError, "got str"),
        (None, {}, TypeError, "got NoneType"),
        ([], {}, ValueError, "at least one sequence"),
        ({}, {}, ValueError, "at least one sequence"),
        ({1, 2}, {}, TypeError, "no order"),
        (np.ones(4), {}, ValueError, r"got 1\..*\[data\]"),
        (np.ones((4, 2)), {"lengths": [2, 1]}, ValueError, "4 frames.*the sum 3"),
        (np.ones((4, 2)), {"lengths": [2.0, 2.0]}, ValueError, "positive integers"),
        (np.ones((4, 2)), {"lengths": [4, 0]}, ValueError, "positive integers"),
        (np.ones((4, 2)), {"id": "run"}, ValueError, "id must be None for an array"),
        (np.ones((4, 2)), {"layout": "channels_first"}, ValueError, r"got \(4, 2\)"),
        (
            [np.ones(4), np.ones(5)],
            {"layout": "channels_first"},
            ValueError,
            r"data\[0\] must have shape \(n_channels, n_timesteps\) with layout=",
        ),
        (
            [np.ones((4, 2)), np.ones((5, 2))],
            {"lengths": [4, 5]},
            ValueError,
            "lengths must be None unless data holds frames one after the other",
        ),
        (np.ones((4, 2)), {"layout": "first"}, ValueError, "layout must be one of"),
        ([np.ones((3, 2))], {"time": "t"}, ValueError, "time must be None"),
        ({"a": [1], "b": [1, 2]}, {"id": "a"}, ValueError, "one length"),
    ],
)
def test_errors_of_other_data(data, arguments, error, message):
    with pytest.raises(error, match=message):
        as_sequences(data, **arguments)
