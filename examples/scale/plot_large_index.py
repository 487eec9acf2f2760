"""
How do I search a large collection?
===================================

Computing a distance between models means solving a few small transport problems. In a
large collection, an index of vectors proposes candidates, and the distance is computed
only to these.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import NearestNeighbors

from skawhmm import HMMEmbedding, HMMTransformer, pairwise_hmm_distances
from skawhmm.datasets import make_hmm_sequences

# %%
# Sequences of a hundred classes; thirty sequences are the queries.
X, y = make_hmm_sequences(
    n_sequences=4030, n_classes=100, n_features=4, separation=2.0, random_state=0
)
queries, X = X[:30], X[30:]
y_queries, y = y[:30], y[30:]

# %%
# The models that the distance compares.
hmm = HMMTransformer(random_state=0).fit(X)
models, query_models = hmm.transform(X), hmm.transform(queries)

# %%
# The vectors are computed piece by piece, in single precision; the vector of a sequence
# does not depend on the others. Without normalization they keep the units of the
# distance. For larger collections replace this index by an approximate one, such as
# ``pynndescent.PyNNDescentTransformer``.
embedding = HMMEmbedding(
    blocks=("means", "scales"), normalize=False, dtype=np.float32, random_state=0
).fit(X[:1000])
pieces = [embedding.transform(X[i : i + 500]) for i in range(0, len(X), 500)]
index = NearestNeighbors(algorithm="brute").fit(np.concatenate(pieces))

# %%
# The exact answer, from all distances.
n_neighbors = 10
start = time.process_time()
exact = np.argsort(pairwise_hmm_distances(query_models, models), axis=1)
exact = exact[:, :n_neighbors]
exact_ms = 1000 * (time.process_time() - start) / len(queries)


def searched(n_candidates):
    """Neighbours of each query among the candidates of the index."""
    candidates = index.kneighbors(
        embedding.transform(queries), n_candidates, return_distance=False
    )
    found = []
    for i, members in enumerate(candidates):
        distances = pairwise_hmm_distances(query_models[i : i + 1], models[members])[0]
        found.append(members[np.argsort(distances)[:n_neighbors]])
    return np.array(found)


def precision(neighbors):
    """Fraction of the neighbours that have the query's class."""
    return np.mean(y[neighbors] == y_queries[:, None])


# %%
# The more candidates, the more of the exact neighbours are found.
sizes = [10, 20, 50, 100, 200, 500]
recalls = []
print(f"{'candidates':>12}{'recall':>8}{'precision':>11}{'ms/query':>10}")
for size in sizes:
    start = time.process_time()
    found = searched(size)
    ms = 1000 * (time.process_time() - start) / len(queries)
    pairs = zip(found, exact, strict=True)
    recalls.append(np.mean([np.isin(e, f).mean() for f, e in pairs]))
    print(f"{size:12}{recalls[-1]:8.3f}{precision(found):11.3f}{ms:10.2f}")
print(f"{'all, exact':>12}{1:8.3f}{precision(exact):11.3f}{exact_ms:10.2f}")

# %%
fig, ax = plt.subplots()
ax.semilogx(np.array(sizes) / len(X), recalls, marker="o")
ax.set(xlabel="fraction of the collection compared", ylabel="recall of 10 neighbours")
plt.show()
