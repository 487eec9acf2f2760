import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMTransformer
from skawhmm.fitting import MarkovChainTransformer
from skawhmm.groups import HMMAligner, state_table, transition_table

pytest.importorskip("pandas")


def test_states_of_a_case_worked_by_hand():
    # A visit to the first state lasts 10 steps, one to the second 5; the first has two
    # thirds of the time, so both have 100 / 15 visits per 100 steps.
    model = HMMBatch(
        [[[0.9, 0.1], [0.2, 0.8]]], [[[1.0, 2.0], [3.0, 4.0]]], [[[1.0, 4.0]] * 2]
    )
    table = state_table(model)
    assert_allclose(table["occupancy"], [2 / 3, 1 / 3])
    assert_allclose(table["dwell_time"], [10, 5])
    assert_allclose(table["visits"], [100 / 15] * 2)
    assert_allclose(table[["mean_0", "mean_1"]], [[1, 2], [3, 4]])
    assert_allclose(table[["sd_0", "sd_1"]], [[1, 2], [1, 2]])
    assert "distance" not in table


def test_states_of_a_long_sequence_match_the_table(make_batch):
    model = make_batch(1, 3)
    path = np.asarray(model.sample(40000, random_state=0)[1][0])
    table = state_table(model)
    starts = np.flatnonzero(np.diff(path, prepend=-1))
    for state in range(3):
        row = table.iloc[state]
        assert_allclose(row["occupancy"], np.mean(path == state), rtol=0.05)
        visits = np.sum(path[starts] == state)
        assert_allclose(row["visits"], 100 * visits / len(path), rtol=0.05)
        assert_allclose(row["dwell_time"], np.sum(path == state) / visits, rtol=0.05)
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (path[:-1], path[1:]), 1)
    steps = transition_table(model)["steps"].to_numpy().reshape(3, 3)
    assert_allclose(steps, 100 * pairs / pairs.sum(), atol=1)


def test_tables_repeat_info_per_state_and_leave_out_padding(make_batch):
    info = {"subject": ["a", "b", "c"], "vectors": np.ones((3, 2))}
    models = make_batch(3, [2, 3, 1], info=info)
    table = state_table(models)
    assert table["subject"].tolist() == list("aabbbc")
    assert table["state"].tolist() == [0, 1, 0, 1, 2, 0]
    assert "vectors" not in table
    steps = transition_table(models)
    assert_array_equal(steps.groupby("model").size(), [4, 9, 1])
    assert_allclose(steps.groupby(["model", "state"])["probability"].sum(), 1)
    assert_allclose(steps.groupby("model")["steps"].sum(), 100)


def test_states_that_a_model_lacks_have_no_values(make_batch):
    models = make_batch(3, [3, 2, 3])
    table = state_table(models, reference=models[0]).query("model == 1")
    missing = table[table["occupancy"] == 0]
    assert len(missing) == 1
    assert missing[["dwell_time", "visits", "mean_0", "distance"]].isna().all(axis=None)
    assert missing["matched_mass"].item() == 0
    steps = transition_table(models, reference=models[0])
    rows = steps[(steps["model"] == 1) & (steps["state"] == missing["state"].item())]
    assert rows["probability"].isna().all()
    assert (rows["steps"] == 0).all()


def test_references_of_every_kind(make_batch):
    models = make_batch(4, 3)
    aligner = HMMAligner("medoid").fit(models)
    for reference in ("medoid", aligner, aligner.reference_):
        table = state_table(models, reference)
        alignment = aligner.align(models)
        assert_allclose(table["distance"], alignment.distances.ravel())
        assert_allclose(table["matched_mass"], alignment.matched_mass.ravel())
        assert_allclose(table["mean_0"], alignment.models.means[..., 0].ravel())
    assert len(state_table(models, "barycenter")) == 12
    with pytest.raises(ValueError, match="reference must be one of"):
        state_table(models, "mean")
    with pytest.raises(TypeError, match="models must be an HMMBatch"):
        state_table(models.means)


def test_symbols_counts_and_costs():
    chain = [[0.9, 0.1], [0.2, 0.8]]
    texts = HMMBatch.from_emissionprobs(
        [chain], [[[1.0, 0.0], [0.5, 0.5]]], symbols="xy"
    )
    assert_allclose(state_table(texts)[["p_x", "p_y"]], [[1, 0], [0.5, 0.5]])
    counts = HMMBatch.from_rates([chain], [[[1.0, 2.0], [3.0, 4.0]]])
    assert_allclose(state_table(counts)[["rate_0", "rate_1"]], [[1, 2], [3, 4]])
    custom = HMMBatch.from_state_costs([chain], [[0.0, 1.0], [1.0, 0.0]])
    assert_allclose(state_table(custom)["occupancy"], [2 / 3, 1 / 3])


def test_channels_not_observed_and_states_never_left():
    models = HMMBatch(
        [[[1.0]]], [[[1.0, 0.0]]], [[[1.0, 0.0]]], observed=[[True, False]]
    )
    row = state_table(models).iloc[0]
    assert np.isnan(row["mean_1"])
    assert row["mean_0"] == 1
    assert row["dwell_time"] == np.inf
    assert row["visits"] == 0


def text_chains(texts, prior=None):
    hmm = MarkovChainTransformer("abc", prior=prior)
    return hmm.fit_transform(texts)


@pytest.mark.parametrize("prior", [None, "pooled", 0.5], ids=str)
def test_tables_of_fitted_models_show_the_data_and_not_the_prior(prior):
    # "a" is kept in 4 of 5 steps from it, "b" is always left, and "c" never occurs.
    models = text_chains(["aaabaaa", "cccccc"], prior)
    table = state_table(models).query("model == 0")
    assert table["state"].tolist() == ["a", "b", "c"]
    assert_allclose(table["occupancy"], [6 / 7, 1 / 7, 0])
    assert_allclose(table["dwell_time"], [5, 1, np.nan])
    assert_allclose(table["visits"], [100 / 6, 100 / 6, np.nan])
    assert table["p_c"].tolist()[:2] == [0, 0]
    assert table["dwell_time_beyond_data"].tolist() == [False] * 3
    steps = transition_table(models).query("model == 0")
    assert steps["next_state"].tolist() == ["a", "b", "c"] * 3
    wanted = [4 / 5, 1 / 5, 0, 1, 0, 0, np.nan, np.nan, np.nan]
    assert_allclose(steps["probability"], wanted)
    assert_allclose(steps["steps"], np.array([4, 1, 0, 1, 0, 0, 0, 0, 0]) * 100 / 6)
    # The other text never leaves its only state: how long it lasts is not known.
    last = state_table(models).query("model == 1 and state == 'c'")
    assert last["dwell_time"].item() == np.inf
    assert last["dwell_time_beyond_data"].item()


def test_dwell_times_beyond_the_data_are_flagged(rng):
    # The first state is left once, the second never, in at most 30 frames.
    X = [
        rng.normal(size=(n, 1)) + 6 * (np.arange(n) >= n - 2)[:, None] for n in (30, 24)
    ]
    models = HMMTransformer(2, prior="pooled", random_state=0).fit_transform(X)
    table = state_table(models)
    beyond = table["dwell_time_beyond_data"]
    assert_array_equal(beyond, [False, True] * 2)
    assert_allclose(table["dwell_time"][~beyond], [28, 22], rtol=1e-3)
    assert (table["dwell_time"][beyond] > 30).all()


def test_models_given_by_their_parameters_have_no_flag(make_batch):
    models = make_batch(2, 3)
    assert "dwell_time_beyond_data" not in state_table(models)
    assert_allclose(state_table(models)["occupancy"], models.weights.ravel())


def test_a_sequence_of_one_frame_has_no_steps():
    models = text_chains(["a", "abc"])
    steps = transition_table(models).query("model == 0")
    assert steps[["probability", "steps"]].isna().all(axis=None)
    table = state_table(models).query("model == 0")
    assert table["occupancy"].tolist() == [1, 0, 0]
    assert table[["dwell_time", "visits"]].isna().all(axis=None)
