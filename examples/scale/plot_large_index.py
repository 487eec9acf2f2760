"""
How do I search a large collection?
===================================

The exact search skips models by lower bounds of MAW and JAW. Other distances, such as
MMD, have no bounds. For these, a graph of near models proposes candidates, and the
distance is computed only to them.
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
# The exact answer needs all distances.
n_neighbors = 10
exact = HMMRetriever(n_neighbors, metric="mmd").fit(models)
true = exact.kneighbors(queries, return_distance=False)

# %%
# The approximate search measures its recall when it is fitted, on models that it holds
# out, and compares as many candidates as the recall that we ask for needs.
targets = [0.5, 0.8, 0.9, 0.99]
recalls, compared = [], []
print(f"{'min_recall':>10}{'recall_':>9}{'these queries':>15}{'compared':>10}")
for target in targets:
    fast = HMMRetriever(
        n_neighbors, metric="mmd", algorithm="approximate", min_recall=target
    ).fit(models)
    found = fast.kneighbors(queries, return_distance=False)
    pairs = zip(true, found, strict=True)
    recalls.append(np.mean([np.isin(*pair).mean() for pair in pairs]))
    compared.append(fast.n_distance_evaluations_ / len(queries))
    print(f"{target:10}{fast.recall_:9.3f}{recalls[-1]:15.3f}{compared[-1]:10.0f}")

# %%
fig, ax = plt.subplots(layout="constrained")
ax.plot(np.array(compared) / len(models), recalls, marker="o")
ax.set(
    xlabel="fraction of the collection compared with a query",
    ylabel=f"recall of {n_neighbors} neighbours",
)
plt.show()
