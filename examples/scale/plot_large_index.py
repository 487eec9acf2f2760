"""
How do I search a large collection?
===================================

With MAW and JAW the search is exact, although it computes few distances: lower bounds
rule out most models. Other distances, such as MMD, have no bounds. For these, models
are grouped, and a query is compared with the models of the nearest groups only.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMRetriever, HMMTransformer
from skawhmm.datasets import make_hmm_sequences

# %%
# Models of sequences of forty classes; thirty are the queries.
X, y = make_hmm_sequences(
    n_sequences=2030, n_classes=40, n_features=3, separation=2.0, random_state=0
)
models = HMMTransformer(random_state=0).fit_transform(X)
queries, models = models[:30], models[30:]

# %%
# The approximate search measures its recall on models that it holds out when it is
# fitted, and compares as many candidates as ``min_recall`` needs.
searches = {
    "MAW, exact": {"metric": "maw"},
    "JAW, exact": {"metric": "jaw"},
    "MMD, min_recall=0.9": {
        "metric": "mmd",
        "algorithm": "approximate",
        "min_recall": 0.9,
    },
    "MMD, min_recall=0.99": {
        "metric": "mmd",
        "algorithm": "approximate",
        "min_recall": 0.99,
    },
    "MMD, all distances": {"metric": "mmd"},
}

# %%
# The recall is the fraction of the ten nearest models that are found.
n_neighbors = 10
compared, recalls = [], []
for name, options in searches.items():
    full = HMMRetriever(n_neighbors, metric=options["metric"], algorithm="brute")
    true = full.fit(models).kneighbors(queries, return_distance=False)
    search = HMMRetriever(n_neighbors, **options).fit(models)
    found = search.kneighbors(queries, return_distance=False)
    compared.append(search.n_distance_evaluations_ / len(queries))
    recalls.append(
        np.mean([np.isin(*pair).mean() for pair in zip(true, found, strict=True)])
    )
    print(f"{name:22}{compared[-1]:7.0f} distances, recall {recalls[-1]:.2f}")

# %%
# ``benchmarks/bench_scale.py`` measures times, up to a million models.
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
colors = ["#0072B2" if "exact" in name else "#D55E00" for name in searches]
colors[-1] = "0.6"
bars = ax.barh(list(searches), compared, color=colors)
ax.bar_label(bars, [f" recall {recall:.2f}" for recall in recalls])
ax.invert_yaxis()
ax.set(xscale="log", xlim=(10, 12_000))
ax.set_xlabel(f"distances computed per query, of {len(models)}")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
