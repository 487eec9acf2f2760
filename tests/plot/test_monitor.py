import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMMonitor
from skawhmm.plot import MonitorDisplay, SequenceDisplay
from skawhmm.sequences import Windows


def machine(n_blocks, levels, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(np.repeat(rng.choice(levels, n_blocks), 10))[:, None]


@pytest.fixture(scope="module")
def monitor():
    return HMMMonitor(length=100).fit([machine(1000, [0, 4, 8], 0)])


def test_alarms_and_states_are_drawn(plt, monitor):
    x = np.concatenate([machine(60, [0, 4, 8], 1), machine(60, [0, 4, 30], 2)])
    display = MonitorDisplay.from_monitor(monitor.partial_fit(x), x)
    rows = monitor.rows_
    alarms = [row["time"] for row in rows if row["alarm"]]
    assert alarms
    assert_allclose([line.get_xdata()[0] for line in display.alarms_], alarms)
    labels = [text.get_text() for text in display.axes_[1].get_legend().texts]
    assert labels == ["A", "B", "C", "D"]
    # Bars of a window add up to one.
    heights = np.reshape([p.get_height() for p in display.axes_[1].patches], (4, -1))
    assert_allclose(heights.sum(axis=0), 1)
    distances = display.axes_[2].lines[0].get_ydata()
    assert_allclose(distances, [row["distance"] for row in rows])


def test_panels_without_a_recording_and_wrong_axes(plt, monitor):
    display = MonitorDisplay(
        monitor.rows_, monitor.calibration_scores_, 0.01, monitor.state_names_
    )
    assert len(display.plot().axes_) == 3
    with pytest.raises(ValueError, match=r"axes must hold 3 axes.*got 1"):
        display.plot([plt.gca()])


def test_a_monitor_without_rows(plt):
    fresh = HMMMonitor(length=100).fit([machine(1000, [0, 4, 8], 0)])
    with pytest.raises(ValueError, match="got 0 frames and length=100"):
        MonitorDisplay.from_monitor(fresh)


def test_recordings_are_coloured_by_the_regimes_of_windows(plt):
    x = np.arange(12.0)[:, None]
    windows = Windows(4).fit_transform([x[:8], x])
    display = SequenceDisplay.from_windows(windows, [0, 0, 1, 0, 1], x, index=1)
    assert display.path.tolist() == [1] * 4 + [0] * 4 + [1] * 4
    texts = [text.get_text() for text in display.ax_.get_legend().texts]
    assert texts == ["regime 0", "regime 1"]
    with pytest.raises(ValueError, match=r"recording must be recording 0.*\[8, 12\]"):
        SequenceDisplay.from_windows(windows, [0, 0, 1, 0, 1], x)


def test_many_new_states_share_one_colour_and_one_entry(plt):
    names = [chr(ord("A") + k) for k in range(12)]
    rows = [
        {
            "time": float(k),
            "states": (name,),
            "weights": (1.0,),
            "distance": 1.0,
            "evidence": 1.0,
            "alarm": False,
        }
        for k, name in enumerate(names)
    ]
    display = MonitorDisplay(rows, [0.5, 1.5], 0.01, ["A", "B"]).plot()
    states = display.axes_[0]
    labels = [text.get_text() for text in states.get_legend().get_texts()]
    n_named = len(labels) - 1
    assert labels == [*names[:n_named], f"{12 - n_named} others"]
    colors = {bar.get_facecolor() for bar in states.patches}
    assert len(colors) == len(labels)
    # Every window is filled up to 1.
    assert sum(bar.get_height() for bar in states.patches) == 12
