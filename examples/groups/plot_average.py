"""
What is the average of several models?
======================================

States are matched before they are averaged. So the average of models is again a model,
and its states are as distinct as in the original models.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMTransformer, hmm_barycenter
from skawhmm.datasets import make_hmm_sequences

# %%
# Eight sequences of one kind, and their models. The states have no common order.
X, _ = make_hmm_sequences(8, n_classes=1, n_timesteps=300, random_state=3)
models = HMMTransformer(n_components=3, random_state=0).fit_transform(X)
average, objective = hmm_barycenter(models, random_state=0)
naive = models.means.mean(axis=0)

# %%
fig, ax = plt.subplots(layout="constrained")
points = np.concatenate(models.means)
ax.scatter(*points.T, s=24, color="0.6", label="states of the models")
ax.scatter(*naive.T, s=110, marker="X", color="#D55E00", label="mean by position")
ax.scatter(*average.means[0].T, s=160, marker="*", color="#0072B2", label="barycentre")
ax.set(xlabel="feature 0", ylabel="feature 1")
ax.legend()
plt.show()
