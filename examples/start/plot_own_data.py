"""
How do I bring my own data?
===========================

A table with one row per time step becomes a list of arrays, one array per recording.
Here the table holds one recording from each of three machines. Each gets a model.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMTransformer, as_sequences

# %%
# A table: one column names the run, one holds the time, the others are measurements. It
# may be a pandas, polars or pyarrow table, or, as here, a dict of columns.
rng = np.random.default_rng(0)
run = np.repeat(["pump", "fan", "mill"], [160, 120, 200])
level = {"pump": (0.0, 4.0), "fan": (2.0, 3.0), "mill": (1.0, 6.0)}
on = np.sin(np.arange(run.size) / 12) > 0
pressure = np.array(
    [level[name][busy] for name, busy in zip(run, on.astype(int), strict=True)]
)
table = {
    "run": run,
    "second": np.arange(run.size),
    "pressure": pressure + 0.3 * rng.normal(size=run.size),
}

# %%
# The rows of each run, sorted by time, become a sequence of shape (n_timesteps,
# n_features). Gaps in time would raise a warning, repeated times an error.
X, names = as_sequences(table, id="run", time="second")
print({str(name): x.shape for name, x in zip(names, X, strict=True)})

# %%
# One model per run, and the most likely path through its states: each machine
# alternates between two levels.
models = HMMTransformer(n_components=2, random_state=0).fit_transform(X)
fig, axes = plt.subplots(3, 1, figsize=(7, 5.6), sharey=True, layout="constrained")
for i, (ax, name, x) in enumerate(zip(axes, names, X, strict=True)):
    (path,), _ = models[i].decode([x])
    ax.plot(x[:, 0], ".", color="0.6", markersize=4, label="measured")
    ax.step(
        np.arange(len(x)),
        models[i].means[0, np.ravel(path), 0],
        color="#0072B2",
        where="mid",
        label="mean of the state",
    )
    ax.set_ylabel(f"{name}: pressure")
axes[0].legend(loc="upper right", ncols=2, fontsize="small")
axes[-1].set_xlabel("frame")
plt.show()
