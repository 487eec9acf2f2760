"""
How does a search grow with the collection?
===========================================

We look for the five nearest neighbours by MAW among more and more models. The full
search computes every distance. The pruned search skips models whose lower bound already
exceeds the fifth distance found. Both give the same neighbours.
"""

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
# Full distances per query. ``benchmarks/bench_scale.py`` also measures times, up to a
# million models.
queries = make_models(20, seed=1)
sizes = [500, 1000, 2000, 4000, 8000]
computed = {"brute": [], "pruned": []}
for size in sizes:
    models, found = make_models(size, seed=0), []
    for algorithm, row in computed.items():
        retriever = HMMRetriever(n_neighbors=5, algorithm=algorithm).fit(models)
        found.append(retriever.kneighbors(queries)[1])
        row.append(retriever.n_distance_evaluations_ / len(queries))
    print(f"{size:5} models: the same neighbours: {np.array_equal(*found)}")

# %%
fig, ax = plt.subplots(layout="constrained")
ax.loglog(sizes, computed["brute"], "o-", color="#D55E00", label="all models")
ax.loglog(sizes, computed["pruned"], "s-", color="#0072B2", label="pruned")
ax.set(xlabel="number of models", ylabel="full distances per query")
ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
