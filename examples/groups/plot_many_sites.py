"""
How do I compare recordings from many sites?
============================================

Every site has its own sensors. Their offsets and gains differ, so a plain distance
groups recordings by site instead of by activity. Standardising the frames of each site
removes this effect.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import Framewise, HMMTransformer, pairwise_hmm_distances
from skawhmm.datasets import make_hmm_sequences
from skawhmm.neighbors import average_precision
from skawhmm.plot import HMMMapDisplay

# %%
# Two kinds of activity, recorded at four sites.
X, y = make_hmm_sequences(96, n_features=3, separation=4, random_state=0)
rng = np.random.default_rng(0)
sites = rng.integers(4, size=len(X))
offsets, gains = rng.normal(scale=8, size=(4, 3)), rng.uniform(0.5, 3, (4, 3))
X = [x * gains[site] + offsets[site] for x, site in zip(X, sites, strict=True)]

# %%
# ``Framewise`` applies any scikit-learn transformer to the frames of sequences, by
# default :class:`sklearn.preprocessing.StandardScaler`.
scaled = [None] * len(X)
for site in range(4):
    members = np.flatnonzero(sites == site)
    for i, x in zip(
        members, Framewise().fit_transform([X[i] for i in members]), strict=True
    ):
        scaled[i] = x

# %%
names = np.array(["activity A", "activity B"])[y]
fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
hmm = HMMTransformer(n_components=3, random_state=0)
for ax, data, title in zip(
    axes, (X, scaled), ("as recorded", "site by site"), strict=True
):
    distances = pairwise_hmm_distances(hmm.fit_transform(data))
    precision = average_precision(distances, y).mean()
    HMMMapDisplay.from_distances(distances, names, ax=ax)
    ax.set_title(f"{title}: mean average precision {precision:.2f}")
plt.show()
