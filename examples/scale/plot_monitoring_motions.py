"""
Where does one activity end?
============================

A watch records acceleration and rotation. A monitor learns what walking looks like, and
watches a stream of recordings: walking, then running, walking again, then badminton.
The boundaries are known, so we can see how soon each is found.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMMonitor, HMMTransformer
from skawhmm.datasets import load_basic_motions
from skawhmm.plot import MonitorDisplay

# %%
# Fourteen recordings of walking, each of 100 frames, are the reference. Recordings
# differ from each other, so whole recordings calibrate the alarms
# (``split="recordings"``).
X, y = load_basic_motions(return_X_y=True)
motions = {
    name: [x for x, label in zip(X, y, strict=True) if label == name] for name in y
}
monitor = HMMMonitor(
    length=25,
    false_alarm_rate=0.02,
    n_neighbors=3,
    split="recordings",
    hmm=HMMTransformer(2, init="pooled", random_state=0),
).fit(motions["Walking"][:14])

# %%
# The stream, and where its activities begin.
parts = [
    motions["Walking"][14:17],
    motions["Running"][:3],
    motions["Walking"][17:20],
    motions["Badminton"][:3],
]
lengths = [sum(map(len, part)) for part in parts]
bounds = np.cumsum([0, *lengths])
stream = np.concatenate([x for part in parts for x in part])
rows = monitor.partial_fit(stream).rows_

# %%
# Alarms within each part. Under walking there should be at most one per 50 windows on
# average.
names = ["walking", "running", "walking", "badminton"]
for name, low, high in zip(names, bounds[:-1], bounds[1:], strict=True):
    alarms = [row for row in rows if row["alarm"] and low < row["end"] <= high]
    text = f"{name} from frame {low}: {len(alarms)} alarms"
    if alarms:
        text += f", the first at {alarms[0]['end']}, began at {alarms[0]['began']:.0f}"
    print(text)

# %%
# Black lines are the boundaries, red lines alarms.
display = MonitorDisplay.from_monitor(monitor, stream)
for ax in display.axes_:
    for bound in bounds[1:-1]:
        ax.axvline(bound, color="black", linewidth=1, linestyle="--")
plt.show()
