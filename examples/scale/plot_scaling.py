"""
How does a search grow with the collection?
===========================================

We look for the five nearest neighbours by MAW among more and more models. The full
search computes every distance. The pruned search skips models whose lower bound already
exceeds the fifth distance found. Both give the same neighbours.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMBatch, HMMRetriever


# %%
# The models come in groups, so that every query has close neighbours.
def make_models(n_models, seed):
    rng = np.random.default_rng(seed)
    centres = 2 * np.random.default_rng(0).normal(size=(200, 3, 12))
    means = centres[rng.integers(200, size=n_models)]
    return HMMBatch(
        rng.dirichlet(np.full(3, 3.0), (n_models, 3)),
        means + 0.5 * rng.normal(size=means.shape),
        rng.uniform(0.3, 1.5, means.shape),
    )


# %%
# Milliseconds and full distances per query. ``benchmarks/bench_scale.py`` measures the
# same for up to 100 000 models.
queries = make_models(20, seed=1)
sizes = [500, 1000, 2000, 4000, 8000]
rows = {"brute": [], "pruned": []}
for size in sizes:
    models, found = make_models(size, seed=0), []
    for algorithm, row in rows.items():
        retriever = HMMRetriever(n_neighbors=5, algorithm=algorithm).fit(models)
        retriever.kneighbors(queries)  # the index is made once
        start = time.perf_counter()
        found.append(retriever.kneighbors(queries)[1])
        seconds = time.perf_counter() - start
        computed = retriever.n_distance_evaluations_
        row.append((1000 * seconds / len(queries), computed / len(queries)))
    print(f"{size:5} models: the same neighbours: {np.array_equal(*found)}")

# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
styles = {
    "brute": ("o-", "#D55E00", "all models"),
    "pruned": ("s-", "#0072B2", "pruned"),
}
for algorithm, row in rows.items():
    marker, color, label = styles[algorithm]
    for ax, values in zip(axes, np.transpose(row), strict=True):
        ax.loglog(sizes, values, marker, color=color, label=label)
axes[0].set(xlabel="number of models", ylabel="ms per query")
axes[1].set(xlabel="number of models", ylabel="full distances per query")
for ax in axes:
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
axes[0].legend(frameon=False)
plt.show()
