"""
What does alpha do?
===================

The distance mixes two components: ``alpha`` is the weight of the dynamics, ``1 -
alpha`` the weight of the states. The best weight depends on what distinguishes the
classes.
"""

import matplotlib.pyplot as plt

from skawhmm import HMMTransformer, KNeighborsHMMClassifierCV
from skawhmm.datasets import make_hmm_sequences
from skawhmm.plot import AlphaCurveDisplay

# %%
# Two data sets: classes with different states, and classes that share their states and
# differ only in the order in which they visit them. All alphas are scored from one set
# of components, so the whole curve takes as long as a single point.
hmm = HMMTransformer(n_components=3, random_state=0)
fig, axes = plt.subplots(1, 2, figsize=(7, 3.4), sharey=True, layout="constrained")
for ax, differ_in in zip(axes, ("means", "transitions"), strict=True):
    X, y = make_hmm_sequences(
        150, differ_in=differ_in, separation=1.2, n_timesteps=100, random_state=0
    )
    knn = KNeighborsHMMClassifierCV(n_neighbors=[1, 5], hmm=hmm).fit(X, y)
    AlphaCurveDisplay.from_estimator(knn, ax=ax)
    ax.set_title(f"classes differ in {differ_in}")
axes[1].set_ylabel("")
plt.show()
