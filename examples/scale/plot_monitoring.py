"""
Has the machine changed?
========================

A machine goes through three states in order. A monitor that was fitted while it ran
well watches it. Four times something changes for a while: only the order of the states,
the level of a state, a state that was never seen before, and all levels, slowly. Means,
variances and the time spent in each state do not change with the order, so
charts of levels stay silent there.
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


monitor = HMMMonitor(length=150).fit([machine(60_000, seed=0)])

# %%
# The four changes, each between two times at which the machine runs well.
changes = {
    "order": machine(1500, seed=1, up=0.01, down=0.09),
    "jump": machine(1500, seed=2, levels=(0.0, 3.0, 8.0)),
    "new state": machine(1500, seed=3, levels=(0.0, 3.0, 14.0)),
    "drift": machine(3000, seed=4) + np.linspace(0, 2, 3000)[:, None],
}
parts, begins = [machine(3000, seed=5)], {}
for k, (name, frames) in enumerate(changes.items()):
    begins[name] = sum(map(len, parts))
    parts += [frames, machine(3000, seed=6 + k)]
stream = np.concatenate(parts)

# %%
# Frames come in pieces of any size. Every 150 frames the monitor appends a row.
for part in np.array_split(stream, 40):
    monitor.partial_fit(part)

# %%
# All four are found. The monitor says when each began, and what differs most from the
# reference. A drift has no moment at which it begins: it is found once levels are far
# enough from what they were.
for name, begin in begins.items():
    rows = [row for row in monitor.rows_ if row["end"] > begin and row["alarm"]]
    first = rows[0]
    print(
        f"{name} at {begin}: alarm at {first['end']}, began at {first['began']:.0f}, "
        f"state {first['state']}, transition {first['transition']}"
    )
n_before = sum(row["alarm"] for row in monitor.rows_ if row["end"] <= begins["order"])
print(f"alarms before the first change: {n_before}")

# %%
# The table of all rows is ``monitor.to_frame()``; this is what it looks like. Dotted
# lines are the times at which changes began. A state that jumps farther than states of
# windows usually move gets a name of its own (D), and so does the new one (E). In the
# drift states keep their names until they are nearly as far from the reference as
# states are from each other: fits begin with the states of the reference, and two of
# them then share a state.
MonitorDisplay.from_monitor(monitor, stream)
plt.show()
