"""Names of channels: matched within a list, remembered by estimators, carried on."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skawhmm import (
    Framewise,
    HMMBatch,
    HMMEmbedding,
    HMMKMeans,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    PairwiseHMMDistance,
    as_sequences,
    pairwise_hmm_distances,
)
from skawhmm.classification import HMMViewClassifier
from skawhmm.features import HMMClassDistance, NGrams
from skawhmm.groups import state_effects, state_table
from skawhmm.sequences import Deltas, TimeChannel
from skawhmm.sequences._names import named_frames

NAMES = ("temp", "vib", "load")
HMM = HMMTransformer(2, random_state=0)
ESTIMATORS = {
    "transformer": HMM,
    "pooled": HMMTransformer(2, init="pooled", random_state=0),
    "neighbors": KNeighborsHMMClassifier(1, hmm=HMM),
    "retriever": HMMRetriever(hmm=HMM),
    "distances": PairwiseHMMDistance(hmm=HMM),
    "classes": HMMClassDistance(hmm=HMM),
    "clusters": HMMKMeans(2, hmm=HMM, n_init=1, random_state=0),
    "embedding": HMMEmbedding(2, random_state=0),
    "views": HMMViewClassifier([("e", HMMEmbedding(2, random_state=0))], cv=2),
    "frames": Framewise(),
    "deltas": Deltas(),
    "time": TimeChannel(),
    "pipeline": make_pipeline(Framewise(), HMM, KNeighborsHMMClassifier(1)),
}


def frames_of(sequences, names=NAMES):
    return [pd.DataFrame(x, columns=[*names]) for x in sequences]


@pytest.fixture
def arrays(make_sequences):
    X, _ = make_sequences(8, n_features=3)
    # Channels on other scales: no permutation goes unnoticed.
    return [x * [1, 10, 100] for x in X]


@pytest.fixture
def tables(arrays):
    return frames_of(arrays)


Y = np.arange(8) % 2


def used(estimator, X):
    for method in ("predict", "transform", "kneighbors"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X)
    raise AssertionError(estimator)


def same(one, two):
    if isinstance(one, HMMBatch):
        return one == two
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


# Matching within one list.


@given(st.permutations(range(3)), st.sampled_from(["dict", "list", "long"]))
def test_order_of_columns_within_a_list_changes_nothing(order, form):
    rng = np.random.default_rng(0)
    sequences = [rng.normal(size=(n, 3)) for n in (5, 7, 4)]
    tables = frames_of(sequences)
    tables[1] = tables[1][[NAMES[k] for k in order]]
    if form == "long":
        tables = pd.concat([t.assign(run=n) for n, t in enumerate(tables)])
        X, _ = as_sequences(tables, id="run")
    else:
        X, _ = as_sequences(
            dict(zip("abc", tables, strict=True)) if form == "dict" else tables
        )
    for got, wanted in zip(X, sequences, strict=True):
        assert_array_equal(got, wanted)
        assert got.feature_names == NAMES


@given(st.lists(st.permutations(range(3)), min_size=7, max_size=7))
def test_models_do_not_depend_on_the_order_of_columns(orders):
    rng = np.random.default_rng(1)
    tables = frames_of([rng.normal([0, 50, 900], size=(9, 3)) for _ in range(8)])
    mixed = [tables[0]] + [
        t[[NAMES[k] for k in order]]
        for t, order in zip(tables[1:], orders, strict=True)
    ]
    assert HMM.fit_transform(mixed) == HMM.fit_transform(tables)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_match_columns_within_a_list(name, tables):
    mixed = [tables[0], *(t[[*reversed(NAMES)]] for t in tables[1:])]
    estimator = ESTIMATORS[name]
    wanted = used(estimator.fit(tables, Y), tables)
    assert same(used(estimator.fit(mixed, Y), mixed), wanted)


def test_other_columns_name_the_sequence_and_the_columns(tables):
    renamed = tables[1].rename(columns={"vib": "sound"})
    words = r"missing \['vib'\] and unexpected \['sound'\]"
    with pytest.raises(ValueError, match=rf"data\['b'\] must have .*{words}"):
        as_sequences({"a": tables[0], "b": renamed})
    with pytest.raises(ValueError, match=rf"X\[1\] must have .*X\[0\].*{words}"):
        HMM.fit([tables[0], renamed])
    with pytest.raises(ValueError, match=r"X\[1\] .*: missing \['load'\]\."):
        HMM.fit([tables[0], tables[1][["temp", "vib"]]])
    with pytest.raises(ValueError, match=r"X\[1\] .*: unexpected \['load'\]\."):
        HMM.fit([tables[0][["temp", "vib"]], tables[1]])


def test_columns_that_are_numbers_are_matched_too(arrays):
    one, two = (pd.DataFrame(x, columns=[7, 3, 5]) for x in arrays[:2])
    X, _ = as_sequences([one, two[[3, 5, 7]]])
    assert_array_equal(X[1], arrays[1])
    assert not hasattr(HMM.fit([one, two]), "feature_names_in_")


def test_columns_numbered_from_0_do_not_count_as_names(arrays):
    X, _ = as_sequences([pd.DataFrame(x) for x in arrays])
    assert type(X[0]) is np.ndarray


def test_names_must_be_strings_if_one_is(arrays):
    mixed = [pd.DataFrame(x, columns=["a", 1, 2]) for x in arrays]
    with pytest.raises(TypeError, match="only supported if all input features"):
        HMM.fit(mixed)


def test_arrays_among_tables_are_matched_by_position(arrays, tables):
    mixed = [tables[0], arrays[1], *tables[2:]]
    with pytest.warns(UserWarning, match=r"X\[1\] does not have valid feature names"):
        models = HMM.fit_transform(mixed)
    assert models == HMM.fit_transform(tables)


def test_channels_first_tables_are_not_matched(arrays):
    # Their columns are time steps, of which there may be any number.
    cut = [pd.DataFrame(x[:5].T, columns=[*"abcde"]) for x in arrays]
    cut[1] = cut[1][[*"abc"]]
    X, _ = as_sequences(cut, layout="channels_first")
    assert_array_equal(X[0], arrays[0][:5])
    assert_array_equal(X[1], arrays[1][:3])


# What scikit-learn does with names.


def answer(call):
    """Return the words of the error or the warning that a call ends with."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except ValueError as error:
            return str(error)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t,
        lambda t: t[["vib", "temp", "load"]],
        lambda t: t.rename(columns={"vib": "sound"}),
        lambda t: t.rename(columns=str.upper),
        lambda t: t.to_numpy(),
    ],
)
def test_later_names_get_the_answers_of_scikit_learn(change, tables):
    ours, theirs = HMMTransformer(1).fit(tables), StandardScaler().fit(tables[0])
    wanted = answer(lambda: theirs.transform(change(tables[0])))
    got = answer(lambda: ours.transform([change(t) for t in tables]))
    assert str(got) == str(wanted).replace("StandardScaler", "HMMTransformer")


def test_names_after_a_fit_without_get_the_answer_of_scikit_learn(arrays, tables):
    ours, theirs = HMMTransformer(1).fit(arrays), StandardScaler().fit(arrays[0])
    wanted = answer(lambda: theirs.transform(tables[0]))
    got = answer(lambda: ours.transform(tables))
    assert got == [wanted[0].replace("StandardScaler", "HMMTransformer")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_remember_names_and_refuse_others(name, arrays, tables):
    estimator = ESTIMATORS[name].fit(tables, Y)
    assert estimator.feature_names_in_.dtype == object
    assert tuple(estimator.feature_names_in_) == NAMES
    with pytest.raises(ValueError, match="must be in the same order"):
        used(estimator, [t[[*reversed(NAMES)]] for t in tables])
    with pytest.raises(ValueError, match="unseen at fit time:\n- TEMP"):
        used(estimator, [t.rename(columns={"temp": "TEMP"}) for t in tables])
    with pytest.warns(UserWarning, match="does not have valid feature names") as caught:
        used(estimator, arrays)
    assert len(caught) == 1
    assert not hasattr(estimator.fit(arrays, Y), "feature_names_in_")


# What carries names.


def test_names_are_read_from_every_table(arrays):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    xr = pytest.importorskip("xarray")
    x = arrays[0]
    columns = {"run": np.zeros(len(x)), **dict(zip(NAMES, x.T, strict=True))}
    forms = [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), columns]
    found = [as_sequences(form, id="run")[0] for form in forms]
    found.append(as_sequences([pd.DataFrame(x, columns=[*NAMES])])[0])
    found.append(as_sequences(pd.DataFrame(x, columns=[*NAMES]), lengths=[len(x)])[0])
    coords = {"channel": [*NAMES]}
    dims = ("run", "time", "channel")
    found.append(as_sequences(xr.DataArray(x[None], dims=dims, coords=coords))[0])
    for (got,) in found:
        assert_array_equal(got, x)
        assert got.feature_names == NAMES


def test_frames_keep_names_of_chosen_rows_and_columns(arrays):
    x = named_frames(arrays[0], NAMES)
    assert x[:4].feature_names == x[::-1].feature_names == NAMES
    assert x[[3, 1]].feature_names == x[x[:, 0] > 0].feature_names == NAMES
    assert x[:, [2, 0]].feature_names == ("load", "temp")
    assert x[..., ::-1].feature_names == NAMES[::-1]
    assert x[2:, 1:].feature_names == ("vib", "load")
    for other in (x[0], x[:, 0], x[0, 0], x[:, [0, 0]], x + 1, np.log(x**2), x.max(0)):
        assert getattr(other, "feature_names", None) is None


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_frames_keep_names_in_pickles(protocol, arrays):
    x = named_frames(arrays[0], NAMES)
    again = pickle.loads(pickle.dumps(x, protocol))
    assert_array_equal(again, x)
    assert again.feature_names == NAMES


@pytest.mark.parametrize("form", ["tables", "frames"])
def test_names_survive_splits_searches_and_pipelines(form, tables):
    X = tables if form == "tables" else as_sequences(tables)[0]
    train, test = train_test_split(X, stratify=Y, random_state=0)
    assert HMM.fit(train).transform(test).feature_names == NAMES
    steps = make_pipeline(Framewise(), Deltas(), KNeighborsHMMClassifier(1, hmm=HMM))
    grid = {"kneighborshmmclassifier__alpha": [0, 0.5]}
    search = GridSearchCV(steps, grid, cv=2).fit(X, Y)
    search.predict(test)
    cross_val_predict(steps, X, Y, cv=2)
    last = search.best_estimator_[-1]
    delta = tuple(f"{name}_lag1" for name in NAMES)
    assert last.models_.feature_names == NAMES + delta
    steps = make_pipeline(TimeChannel(), HMMEmbedding(1, random_state=0)).fit(X)
    assert steps[:-1].get_feature_names_out().tolist() == [*NAMES, "position"]
    assert steps.get_feature_names_out()[0] == "r0_means_s0_temp"


def test_steps_without_names_of_their_own_pass_none_on(tables):
    step = Framewise(FunctionTransformer(np.abs)).fit(tables)
    assert type(step.transform(tables)[0]) is np.ndarray


def test_names_given_later_must_be_those_of_fit(tables):
    step = Deltas().fit(tables)
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        step.get_feature_names_out(["a", "b", "c"])


def test_models_bring_their_names_to_estimators(tables):
    models = HMM.fit_transform(tables)
    neighbors = KNeighborsHMMClassifier(1).fit(models, Y)
    assert tuple(neighbors.feature_names_in_) == NAMES
    backwards = HMM.fit_transform([t[[*reversed(NAMES)]] for t in tables])
    with pytest.raises(ValueError, match="must be in the same order"):
        neighbors.predict(backwards)


def test_models_are_named_like_the_transformer(arrays, tables):
    hmm = HMM.fit(tables)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert hmm.transform(arrays).feature_names == NAMES


def test_symbols_have_a_name_too(rng):
    tables = [pd.DataFrame({"note": rng.integers(3, size=9)}) for _ in range(4)]
    other = [t.rename(columns={"note": "tone"}) for t in tables]
    hmm = HMMTransformer(2, emission="categorical", random_state=0)
    for estimator in (hmm, NGrams()):
        estimator.fit(tables)
        assert estimator.feature_names_in_.tolist() == ["note"]
        with pytest.raises(ValueError, match="unseen at fit time:\n- tone"):
            estimator.transform(other)


def test_groups_of_channels_are_chosen_by_name(arrays, tables):
    by_name = HMMClassDistance({"a": ["load"], "b": ["vib", "temp"]}, hmm=HMM)
    by_number = HMMClassDistance({"a": [2], "b": [1, 0]}, hmm=HMM)
    by_name.fit(tables, Y)
    assert by_name.models_[1].feature_names == ("vib", "temp")
    wanted = by_number.fit(arrays, Y).transform(arrays)
    assert_array_equal(by_name.transform(tables), wanted)
    with pytest.raises(ValueError, match=r"groups\['a'\] .* have no names"):
        by_name.fit(arrays, Y)
    with pytest.raises(ValueError, match=r"groups\['a'\] .* got \['x'\]"):
        HMMClassDistance({"a": ["x"]}, hmm=HMM).fit(tables, Y)


def test_tables_and_effects_show_names(tables):
    models = HMM.fit_transform(tables)
    columns = [f"{kind}_{name}" for kind in ("mean", "sd") for name in NAMES]
    assert [*state_table(models, reference="medoid").columns][-8:-2] == columns
    effects = state_effects(models, Y, measures=["parameters"], random_state=0)
    assert {*effects.columns["measure"]} == {*columns}
    counts = [t.abs().round() for t in tables]
    poisson = HMMTransformer(2, emission="poisson", random_state=0)
    table = state_table(poisson.fit_transform(counts))
    assert [*table.columns][-3:] == [f"rate_{name}" for name in NAMES]


def test_models_with_other_names_are_not_compared(tables):
    models = HMM.fit_transform(tables)
    other = HMM.fit_transform([t.rename(columns={"vib": "v"}) for t in tables])
    with pytest.raises(ValueError, match="X and Y must have the same feature names"):
        pairwise_hmm_distances(models, other)
    bare = HMM.fit_transform([t.to_numpy() for t in tables])
    wanted = pairwise_hmm_distances(bare, bare[:3])
    assert_array_equal(pairwise_hmm_distances(models, bare[:3]), wanted)


def test_logistic_regression_on_an_embedding_of_tables(tables):
    steps = make_pipeline(HMMEmbedding(1, random_state=0), LogisticRegression())
    assert steps.fit(tables, Y).predict(tables).shape == (8,)
