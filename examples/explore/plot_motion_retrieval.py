"""
How do I find similar motions?
==============================

We look for the recordings nearest to a query. Motions are cycles of two joint angles,
each with its own pace, size and starting point. Nothing has to be aligned.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMRetriever, HMMTransformer
from skawhmm.sequences import Deltas

# %%
# Three kinds of motion: loops, eights and swings.
rng = np.random.default_rng(0)
kinds = {
    "loop": lambda t: (np.cos(t), np.sin(t)),
    "eight": lambda t: (np.sin(t), np.sin(2 * t)),
    "swing": lambda t: (np.sin(t), 0.3 * np.cos(2 * t)),
}
X, y = [], []
for kind, angles in kinds.items():
    for _ in range(20):
        n_timesteps = rng.integers(80, 200)
        pace = rng.uniform(0.15, 0.25)
        t = rng.uniform(0, 6) + pace * np.arange(n_timesteps)
        motion = rng.uniform(0.8, 1.2) * np.transpose(angles(t))
        X.append(motion + 0.08 * rng.normal(size=motion.shape))
        y.append(kind)
y = np.array(y)

# %%
# Derivatives say in which direction a motion goes; positions alone do not.
moving = Deltas(lags=2).fit_transform(X)
models = HMMTransformer(n_components=6, random_state=0).fit_transform(moving)
retriever = HMMRetriever(n_neighbors=5).fit(models)
distances, neighbors = retriever.kneighbors()
same = np.mean(y[neighbors] == y[:, None])
print(f"fraction of neighbours of the same kind: {same:.2f}")

# %%
# One query of each kind on the left, with its neighbours to the right.
fig, axes = plt.subplots(3, 5, figsize=(9, 5.6), layout="constrained")
for row, query in zip(axes, (0, 20, 40), strict=True):
    found = [query, *neighbors[query, :4]]
    for rank, (ax, i) in enumerate(zip(row, found, strict=True)):
        ax.plot(*X[i].T, color="#D55E00" if rank == 0 else "#0072B2", linewidth=1)
        away = f"{distances[query, rank - 1]:.2f} away" if rank else "query"
        ax.set(title=f"{y[i]}, {away}", xticks=[], yticks=[], aspect="equal")
        ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5))
plt.show()
