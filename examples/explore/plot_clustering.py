"""
How do I find groups without labels?
====================================

Medoids need only distances. The centre of each cluster is its most central sequence.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import adjusted_rand_score

from skawhmm import HMMKMedoids, HMMTransformer, pairwise_hmm_distances
from skawhmm.datasets import make_hmm_sequences
from skawhmm.plot import DistanceMatrixDisplay

X, y = make_hmm_sequences(90, n_classes=3, separation=4, random_state=0)
models = HMMTransformer(n_components=3, random_state=0).fit_transform(X)
distances = pairwise_hmm_distances(models)
medoids = HMMKMedoids(n_clusters=3, metric="precomputed").fit(distances)
agreement = adjusted_rand_score(y, medoids.labels_)
print(f"agreement with the kinds (adjusted Rand index): {agreement:.2f}")

# %%
# The distances, ordered by cluster, and below the sequence at the centre of each
# cluster.
display = DistanceMatrixDisplay.from_distances(distances, medoids.labels_)
display.ax_.set(xlabel="cluster", ylabel="cluster")
plt.show()

# %%
fig, axes = plt.subplots(3, 1, sharex=True, sharey=True, layout="constrained")
for cluster, (ax, i) in enumerate(zip(axes, medoids.medoid_indices_, strict=True)):
    ax.plot(X[i][:, 0], color="#0072B2", label="channel 0")
    ax.plot(X[i][:, 1], color="#D55E00", linestyle="--", label="channel 1")
    ax.set_ylabel(f"cluster {cluster}")
axes[0].set_title("medoids")
axes[-1].set_xlabel("frame")
axes[0].legend(ncols=2, fontsize="small")
plt.show()
