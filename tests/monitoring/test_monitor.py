import gc
import pickle
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm import HMMBatch, HMMMonitor, HMMTransformer
from skawhmm.emissions import Bernoulli, ByChannel, Gamma
from skawhmm.monitoring._names import StateNames

STAY, SWITCH = 0.9, 0.1
UP = [[STAY, 0.09, 0.01], [0.01, STAY, 0.09], [0.09, 0.01, STAY]]
DOWN = [[STAY, 0.01, 0.09], [0.09, STAY, 0.01], [0.01, 0.09, STAY]]
LEVELS = (0.0, 3.0, 6.0)


def machine(n_timesteps, seed, *, chain=UP, levels=LEVELS, n_features=2):
    means = np.repeat(np.array(levels)[:, None], n_features, axis=1)
    model = HMMBatch([chain], [means], np.ones((1, len(levels), n_features)))
    return model.sample(n_timesteps, random_state=seed)[0][0]


@pytest.fixture(scope="module")
def fitted():
    """A monitor of windows of 100 frames, as a pickle: each test has its own."""
    return pickle.dumps(HMMMonitor(100).fit([machine(20_000, 0)]))


@pytest.fixture
def monitor(fitted):
    return pickle.loads(fitted)


def same(rows, others):
    return [repr(row) for row in rows] == [repr(row) for row in others]


def test_rows_do_not_depend_on_how_frames_are_divided_between_calls(fitted):
    x = machine(1230, 1)
    one, many = pickle.loads(fitted), pickle.loads(fitted)
    one.partial_fit(x)
    for part in np.split(x, [1, 2, 50, 99, 100, 101, 350, 351, 800]):
        many.partial_fit(part)
    assert len(one.rows_) == 12
    assert same(one.rows_, many.rows_)


def test_rows_do_not_depend_on_what_follows(fitted):
    x, other = machine(1500, 1), machine(1500, 2, levels=(0.0, 9.0, 20.0))
    one, two = pickle.loads(fitted), pickle.loads(fitted)
    before = one.partial_fit(x[:800]).rows_
    two.partial_fit(np.concatenate([x[:800], other]))
    assert same(before, two.rows_[:8])


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({"levels": (0.0, 3.0, 9.0)}, None),
        ({"chain": DOWN}, None),
        ({"levels": (1.5, 4.5, 7.5)}, None),
    ],
)
def test_changes_raise_alarms_and_are_dated(monitor, change, state):
    x = np.concatenate([machine(2000, 1), machine(1500, 2, **change)])
    rows = monitor.partial_fit(x).rows_
    alarms = [row for row in rows if row["alarm"]]
    assert alarms
    assert alarms[0]["start"] >= 1900
    assert alarms[0]["end"] <= 2900
    assert abs(alarms[0]["began"] - 2000) <= 60


def test_a_change_of_order_leaves_levels_as_they_are():
    # What no chart of levels can see: equal means, variances and occupancy.
    before, after = machine(60_000, 1), machine(60_000, 2, chain=DOWN)
    assert_allclose(before.mean(axis=0), after.mean(axis=0), atol=0.15)
    assert_allclose(before.var(axis=0), after.var(axis=0), rtol=0.05)


def false_alarms(n_streams, *, step, adapt=None):
    counts, pvalues = [], []
    hmm = HMMTransformer(2, init="pooled", random_state=0)
    model = HMMBatch(
        [[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]],
        [[[0.0], [2.0], [5.0]]],
        np.ones((1, 3, 1)),
    )
    for seed in range(n_streams):
        x = model.sample(2000, random_state=seed)[0][0]
        watch = HMMMonitor(
            20, step, false_alarm_rate=0.01, hmm=hmm, adapt=adapt, random_state=seed
        )
        rows = watch.fit([x[:1000]]).partial_fit(x[1000:]).rows_
        counts.append(sum(row["alarm"] for row in rows))
        pvalues += [row["pvalue"] for row in rows]
    return np.array(counts), len(rows), np.array(pvalues)


@pytest.mark.parametrize(
    ("n_streams", "step", "adapt"),
    [(500, None, None), (60, 10, None), (20, 10, "quiet")],
)
def test_false_alarms_stay_below_the_stated_rate(n_streams, step, adapt):
    counts, n_rows, pvalues = false_alarms(n_streams, step=step, adapt=adapt)
    error = counts.std() / np.sqrt(len(counts))
    assert counts.mean() <= 0.01 * n_rows + 3 * error
    if step is None:
        # 25 000 independent p-values; four standard errors.
        for level in (0.01, 0.05, 0.2, 0.5):
            error = np.sqrt(level * (1 - level) / len(pvalues))
            assert abs(np.mean(pvalues <= level) - level) < 4 * error


def relabelled(model, order):
    order = np.array(order)
    return HMMBatch(
        model.transmats[:, order][:, :, order],
        model.means[:, order],
        model.covars[:, order],
        weights=model.weights[:, order],
        startprobs=model.startprobs[:, order],
    )


def three_states(levels):
    chain = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    return HMMBatch([chain], [np.array(levels)[:, None]], np.ones((1, 3, 1)))


def test_relabelled_refits_keep_their_names():
    names = StateNames(three_states([0, 3, 6]), ["low", "mid", "high"], reach=1.0)
    model = three_states([0.1, 3.2, 5.9])
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]):
        found, fresh, _ = names.name(relabelled(model, order))
        assert found == [["low", "mid", "high"][k] for k in order]
        assert fresh == []


def test_a_state_that_drifts_slowly_keeps_its_name_and_a_new_one_gets_its_own():
    names = StateNames(three_states([0, 3, 6]), ["A", "B", "C"], reach=1.0)
    for top in np.arange(6, 12, 0.5):
        assert names.name(three_states([0, 3, top]))[0] == ["A", "B", "C"]
    found, fresh, _ = names.name(three_states([0, 3, 20]))
    assert (found, fresh) == (["A", "B", "D"], ["D"])
    # It is gone for a while, and known when it returns.
    assert names.name(three_states([0, 3, 6]))[0] == ["A", "B", "C"]
    found, fresh, _ = names.name(three_states([20.2, 3, 6]))
    assert (found, fresh) == (["D", "B", "C"], [])


def test_a_new_state_is_named_in_the_rows(monitor):
    x = np.concatenate([machine(500, 1), machine(500, 2, levels=(0.0, 3.0, 30.0))])
    rows = monitor.partial_fit(x).rows_
    assert all(set(row["states"]) <= {"A", "B", "C"} for row in rows[:5])
    assert rows[5]["state"] == "D"
    assert all("D" in row["states"] for row in rows[5:])
    assert_allclose([sum(row["weights"]) for row in rows], 1)


def test_state_and_transition_that_differ_most(monitor):
    order = np.argsort(monitor.reference_model_.means[0, :, 0])
    names = np.array(monitor.state_names_)[order]
    x = machine(2000, 2, levels=(0.0, 3.0, 7.5))
    states = [row["state"] for row in monitor.partial_fit(x).rows_]
    assert states.count(names[2]) >= 15


def test_save_and_load_in_the_middle_of_a_window(fitted, tmp_path):
    x = np.concatenate([machine(1050, 1), machine(1000, 2, chain=DOWN)])
    one, two = pickle.loads(fitted), pickle.loads(fitted)
    one.partial_fit(x)
    two.partial_fit(x[:1234])
    two.save(tmp_path / "monitor.npz")
    again = HMMMonitor.load(tmp_path / "monitor.npz")
    assert again.n_frames_ == 1234
    assert_array_equal(again.calibration_scores_, two.calibration_scores_)
    again.partial_fit(x[again.n_frames_ :])
    assert same(one.rows_, again.rows_)


MIXED = ByChannel(
    [("step", Gamma(zero_mass=True), slice(0, 1)), ("on", Bernoulli(), [1])]
)


@pytest.mark.parametrize("emission", [MIXED, Gamma(zero_mass=True)])
def test_templates_of_families_are_saved(emission, tmp_path, rng):
    busy = np.repeat(rng.random(400) < 0.5, 10)
    x = np.column_stack([rng.gamma(2.0, 1 + 4 * busy), rng.random(4000) < 0.3])
    x = x if emission is MIXED else x[:, :1]
    hmm = HMMTransformer(2, emission=emission, init="pooled", random_state=0)
    watch = HMMMonitor(50, hmm=hmm).fit([x[:3000]]).partial_fit(x[3000:3333])
    watch.save(tmp_path / "monitor.npz")
    again = HMMMonitor.load(tmp_path / "monitor.npz")
    rest = x[3333:]
    assert same(watch.partial_fit(rest).rows_, again.partial_fit(rest).rows_)


@pytest.mark.parametrize("emission", ["poisson", "categorical"])
def test_other_families_are_watched_and_saved(emission, tmp_path, rng):
    hmm = HMMTransformer(2, emission=emission, init="pooled", random_state=0)
    if emission == "poisson":
        x = rng.poisson(np.repeat(rng.choice([1, 8], 400), 10))[:, None]
        later = x[:600] * 3
    else:
        x = np.repeat(rng.choice(["ab", "cd"], 400), 10)
        x = [rng.choice([*letters]) for letters in x]
        later = ["a"] * 600
    watch = HMMMonitor(50, hmm=hmm, step=25).fit([x[:3000]])
    watch.partial_fit(x[3000:])
    watch.save(tmp_path / "monitor.npz")
    again = HMMMonitor.load(tmp_path / "monitor.npz")
    assert same(watch.partial_fit(later).rows_, again.partial_fit(later).rows_)
    assert any(row["alarm"] for row in watch.rows_)


KILLED = """
import sys
import numpy as np
from skawhmm import HMMMonitor
path, frames = sys.argv[1:]
x = np.load(frames)
monitor = HMMMonitor.load(path)
while monitor.n_frames_ < len(x):
    monitor.partial_fit(x[monitor.n_frames_ : monitor.n_frames_ + 37])
    monitor.save(path)
    print(monitor.n_frames_, flush=True)
"""


def test_a_killed_monitor_neither_loses_nor_repeats_a_row(fitted, tmp_path):
    x = machine(3000, 1)
    path, frames = tmp_path / "monitor.npz", tmp_path / "frames.npy"
    np.save(frames, x)
    pickle.loads(fitted).save(path)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), str(frames)], stdout=subprocess.PIPE
    )
    for _ in range(7):
        process.stdout.readline()
    process.kill()
    process.communicate()
    monitor = HMMMonitor.load(path)
    assert 0 < monitor.n_frames_ < 3000
    monitor.partial_fit(x[monitor.n_frames_ :])
    assert same(monitor.rows_, pickle.loads(fitted).partial_fit(x).rows_)


def test_memory_stays_constant_over_a_million_frames():
    x = machine(2000, 0, n_features=1)
    hmm = HMMTransformer(1, init="pooled", random_state=0)
    watch = HMMMonitor(500, hmm=hmm, max_rows=100, n_neighbors=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watch.fit([machine(10_000, 1, n_features=1)])
    sizes = []
    tracemalloc.start()
    for _ in range(10):
        for _ in range(10):
            watch.partial_fit(np.tile(x, (5, 1)))
        # Python keeps the memory of tuples that it no longer needs until it collects.
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert watch.n_frames_ == 1_000_000
    assert len(watch.rows_) == 100
    # 8 bytes per score, in three arrays, until they are merged.
    assert sizes[-1] - sizes[1] < 100_000


# Bad input: an error that says what is wrong, and the monitor goes on.


def test_rejected_frames_are_a_gap_and_the_monitor_goes_on(monitor):
    monitor.partial_fit(machine(150, 1))
    wrong = machine(60, 2)
    wrong[7, 1] = np.inf
    cases = [
        (np.zeros((5, 3)), r"X must have shape \(n_frames, 2\).*\(5, 3\)"),
        (np.zeros((0, 2)), r"X must have shape \(n_frames, 2\).*\(0, 2\)"),
        (wrong, r"X must not hold infinite values.*frame 7"),
        ([["a", "b"]], r"X"),
    ]
    for frames, message in cases:
        with pytest.raises((TypeError, ValueError), match=message):
            monitor.partial_fit(frames)
        assert monitor.n_frames_ == 150
    rows = monitor.partial_fit(machine(120, 3)).rows_
    # The window that was under way when frames were rejected is dropped.
    assert [(row["start"], row["end"]) for row in rows] == [(0, 100), (150, 250)]


def test_time_must_go_forward(monitor):
    monitor.partial_fit(machine(50, 1), times=np.arange(50))
    with pytest.raises(ValueError, match=r"times must increase, got 30 after 49"):
        monitor.partial_fit(machine(50, 2), times=np.arange(30, 80))
    with pytest.raises(ValueError, match=r"times must increase, got 60 after 61"):
        monitor.partial_fit(machine(2, 2), times=[61, 60])
    with pytest.raises(ValueError, match=r"times must hold one number per frame, 2"):
        monitor.partial_fit(machine(2, 2), times=[61, 62, 63])
    with pytest.raises(ValueError, match=r"times must be finite"):
        monitor.partial_fit(machine(2, 2), times=[61, np.nan])
    rows = monitor.partial_fit(machine(100, 2), times=np.arange(50, 150)).rows_
    assert [row["time"] for row in rows] == [149]


def test_windows_do_not_reach_across_gaps(monitor):
    times = np.concatenate([np.arange(130), np.arange(500, 620), [900.0]])
    with pytest.warns(UserWarning, match="gap") as caught:
        monitor.partial_fit(machine(251, 1), times=times)
    assert len(caught) == 2
    assert "129 to 500" in str(caught[0].message)
    assert [(row["start"], row["time"]) for row in monitor.rows_] == [
        (0, 99),
        (130, 599),
    ]


def test_bursts_of_missing_values_are_not_judged(monitor):
    x = machine(400, 1)
    x[120:160, 0] = np.nan
    x[[205, 310], [0, 1]] = np.nan
    with pytest.warns(UserWarning, match=r"max_missing=0.2.*time 199"):
        monitor.partial_fit(x)
    pvalues = [row["pvalue"] for row in monitor.rows_]
    assert_array_equal(np.isnan(pvalues), [False, True, False, False])
    assert monitor.rows_[1]["states"] == ()


@pytest.mark.parametrize("size", [1, 25])
def test_calls_may_hold_missing_values_only(fitted, size):
    x = machine(300, 1)
    x[120:160] = np.nan
    one, many = pickle.loads(fitted), pickle.loads(fitted)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*max_missing")
        one.partial_fit(x)
        for start in range(0, len(x), size):
            many.partial_fit(x[start : start + size])
    assert len(one.rows_) == 3
    assert same(one.rows_, many.rows_)


def test_missing_values_are_an_error_if_states_do_not_take_them():
    hmm = HMMTransformer(2, "full", init="pooled", random_state=0)
    watch = HMMMonitor(50, hmm=hmm, n_neighbors=2).fit([machine(4000, 0)])
    x = machine(20, 1)
    x[3, 0] = np.nan
    with pytest.raises(ValueError, match=r"missing|NaN"):
        watch.partial_fit(x)
    assert len(watch.partial_fit(machine(50, 1)).rows_) == 1


def test_frames_before_fit():
    with pytest.raises(ValueError, match="not fitted"):
        HMMMonitor().partial_fit(machine(10, 0))
    with pytest.raises(ValueError, match="not fitted"):
        HMMMonitor().to_frame()


def test_a_window_longer_than_the_recordings():
    with pytest.raises(ValueError, match=r"length must be at most.*200 and X\[0\]"):
        HMMMonitor(200).fit([machine(150, 0)])
    with pytest.raises(ValueError, match=r"at least 5 windows of 200.*got 2 and 2"):
        HMMMonitor(200).fit([machine(800, 0)])
    with pytest.warns(UserWarning, match="10 windows calibrate the alarms"):
        HMMMonitor(200).fit([machine(4000, 0)])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"step": 33}, "step must divide length=100"),
        ({"false_alarm_rate": 0}, "false_alarm_rate must be"),
        ({"split": "random"}, "split must be"),
        ({"adapt": "all"}, "adapt must be"),
        ({"max_rows": 0}, "max_rows must be"),
        ({"new_state": -1}, "new_state must be"),
        ({"state_names": ["a", "a", "b"]}, "state_names must hold 3 different names"),
        ({"hmm": HMMTransformer(2)}, "hmm must start from a pooled model"),
    ],
)
def test_wrong_parameters(params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        HMMMonitor(100, **params).fit([machine(6000, 0)])


def test_parameters_must_not_change_after_fit(monitor):
    monitor.set_params(false_alarm_rate=0.5)
    with pytest.raises(ValueError, match="false_alarm_rate must be as it was in fit"):
        monitor.partial_fit(machine(10, 0))


def test_only_plain_parameters_are_saved(tmp_path):
    watch = HMMMonitor(100, adapt=lambda row: row["pvalue"] > 0.9)
    watch.fit([machine(6000, 0)]).partial_fit(machine(1000, 1))
    with pytest.raises(TypeError, match=r"adapt=.*Pickle the monitor"):
        watch.save(tmp_path / "monitor.npz")
    (tmp_path / "other.npz").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match=r"complete skawhmm.HMMMonitor file"):
        HMMMonitor.load(tmp_path / "other.npz")


def test_adopted_windows_become_references(tmp_path):
    watch = HMMMonitor(100, adapt="quiet").fit([machine(6000, 0)])
    rows = watch.partial_fit(machine(3000, 1)).rows_
    quiet = [row["start"] for row in rows if row["pvalue"] >= 0.5]
    assert_array_equal(watch.models_.info["start"][30:], quiet)
    assert_array_equal(watch.models_.info["recording"][30:], -1)
    watch.save(tmp_path / "monitor.npz")
    again = HMMMonitor.load(tmp_path / "monitor.npz")
    x = machine(3000, 2)
    assert same(watch.partial_fit(x).rows_, again.partial_fit(x).rows_)
    # As many as in the beginning are added, the newest ones.
    assert len(watch.partial_fit(machine(6000, 3)).models_) == 60


def test_recordings_may_calibrate_as_a_whole():
    X = [
        machine(1000, seed, levels=(0.0, 3.0, 6.0 + 3 * (seed % 2)))
        for seed in range(20)
    ]
    by_time = HMMMonitor(100).fit(X)
    by_recording = HMMMonitor(100, split="recordings").fit(X)
    assert {*by_time.models_.info["recording"]} == {*range(20)}
    assert {*by_recording.models_.info["recording"]} == {*range(0, 20, 2)}
    # The recordings left out are those with another level.
    scores = [m.calibration_scores_.mean() for m in (by_time, by_recording)]
    assert scores[1] > 1.5 * scores[0]


def test_the_table_has_one_row_per_window(monitor):
    frame = monitor.partial_fit(machine(550, 1)).to_frame()
    assert frame.shape == (5, 13)
    assert frame["time"].tolist() == [99, 199, 299, 399, 499]
    assert frame["alarm"].dtype == bool
