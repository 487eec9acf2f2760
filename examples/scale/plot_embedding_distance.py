"""
Do vectors keep the distance between models?
============================================

The distance between two vectors of :class:`~skawhmm.features.HMMEmbedding` is, to first
order, the marginal component of MAW, provided that states have the same probability in
both models. Vectors leave out the cost of moving probability from state to state.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

from skawhmm import MAW, HMMBatch, HMMEmbedding, HMMTransformer, pairwise_hmm_distances
from skawhmm.datasets import make_model_sequences

# %%
# Variations of one model: every sequence has its own means and standard deviations.
rng = np.random.default_rng(0)
n_models = 60
truth = {
    "transmats": np.tile(np.full((3, 3), 0.1) + 0.7 * np.eye(3), (n_models, 1, 1)),
    "means": 6 * np.eye(3) + rng.normal(scale=0.5, size=(n_models, 3, 3)),
    "covars": np.exp(rng.normal(scale=0.3, size=(n_models, 3, 3))),
}
X, _ = make_model_sequences(truth, 1, n_timesteps=200, random_state=0)

# %%
# Without normalization the vectors keep the units of the distance.
embedding = HMMEmbedding(
    3, blocks=("means", "scales"), normalize=False, random_state=0
).fit(X)
between_vectors = pdist(embedding.transform(X))

# %%
# 200 frames are too few to estimate the state probabilities exactly, so they differ a
# little from model to model. For comparison, we also use the same models with equally
# probable states.
models = HMMTransformer(3, random_state=0).fit_transform(X)
equal = HMMBatch(
    models.transmats, models.means, models.covars, weights=np.full((n_models, 3), 1 / 3)
)

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, batch, title in zip(
    axes, (equal, models), ("states equally probable", "states as fitted"), strict=True
):
    between_models = squareform(pairwise_hmm_distances(batch, metric=MAW(0, 2)))
    rank = spearmanr(between_models, between_vectors)[0]
    print(f"{title}: rank correlation {rank:.2f}")
    ax.plot(between_models, between_vectors, ".", color="#0072B2", alpha=0.3)
    ax.axline((1, 1), slope=1, color="black", linestyle="--", label="equal")
    ax.set(title=f"{title}: rank correlation {rank:.2f}", xlabel="MAW (alpha=0, p=2)")
axes[0].set_ylabel("distance between vectors")
axes[0].legend(loc="lower right")
plt.show()
