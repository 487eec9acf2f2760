"""
Has the machine changed?
========================

A machine goes through three states in order. A monitor that was fitted while it ran
well watches it. Later it goes through the same states in the opposite order: means,
variances and the time spent in each state stay the same, so charts of levels stay
silent. Then one of its levels jumps.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMBatch, HMMMonitor
from skawhmm.plot import MonitorDisplay

# %%
# The machine, when it runs well, goes from a state to the next one nine times as often
# as back.


def machine(n_timesteps, seed, *, up=0.09, down=0.01, levels=(0.0, 3.0, 6.0)):
    chain = [[0.9, up, down], [down, 0.9, up], [up, down, 0.9]]
    means = np.repeat(np.array(levels)[:, None], 2, axis=1)
    model = HMMBatch([chain], [means], np.ones((1, 3, 2)))
    return model.sample(n_timesteps, random_state=seed)[0][0]


monitor = HMMMonitor(length=150).fit([machine(30_000, seed=0)])

# %%
# Frames come in pieces of any size. Every 150 frames the monitor appends a row.
stream = np.concatenate(
    [
        machine(6000, seed=1),
        machine(2000, seed=2, up=0.01, down=0.09),
        machine(2000, seed=3, levels=(0.0, 3.0, 12.0)),
    ]
)
for part in np.array_split(stream, 40):
    monitor.partial_fit(part)

# %%
# The first alarm comes soon after the change of order, and dates it to within a few
# frames. The last part of the stream has a state with a new name.
first = next(row for row in monitor.rows_ if row["alarm"])
print(f"alarm at {first['time']:.0f}: the change began at {first['began']:.0f}")
last = monitor.rows_[-1]
print("states of the last window:", *last["states"])

# %%
# The table of all rows is ``monitor.to_frame()``; this is what it looks like.
MonitorDisplay.from_monitor(monitor, stream)
plt.show()
