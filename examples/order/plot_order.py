"""
Does order matter?
==================

Before you choose a distance, measure how much the order of frames contributes, with
:func:`~skawhmm.classification.dynamics_gain`. If it matters, choose
:class:`~skawhmm.distances.JAW`: the figure shows why :class:`~skawhmm.distances.MAW`
sees less of it.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import (
    JAW,
    MAW,
    HMMBatch,
    HMMTransformer,
    KNeighborsHMMClassifier,
    KNeighborsHMMClassifierCV,
    dynamics_gain,
    pairwise_hmm_components,
)
from skawhmm.datasets import make_hmm_sequences

# %%
# Three classes share their states and differ in how they move between them. Sequences
# are short, so the time spent in each state varies a little.
X, y = make_hmm_sequences(
    150, differ_in="transitions", separation=0.6, n_timesteps=60, random_state=0
)
hmm = HMMTransformer(n_components=3, random_state=0)

# %%
# The first question: how much does the score drop if the frames are shuffled?
knn = KNeighborsHMMClassifier(n_neighbors=1, metric="jaw", hmm=hmm)
gain = dynamics_gain(X, y, estimator=knn, random_state=0)
print(gain)

# %%
# Order matters. Which distance sees it? The marginal component, ``alpha=0``, compares
# states only; to the right, transitions count more.
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for metric, color, marker in (("maw", "#D55E00", "s"), ("jaw", "#0072B2", "o")):
    search = KNeighborsHMMClassifierCV(n_neighbors=1, metric=metric, hmm=hmm)
    search.fit(X, y)
    ax.plot(
        search.alphas_,
        search.scores_.ravel(),
        color=color,
        marker=marker,
        markevery=0.1,
        markersize=5,
        label=metric.upper(),
    )
ax.set(xlabel="alpha", ylabel="accuracy of 1-NN, leaving one out", ylim=(0.4, 1))
ax.legend(loc="lower right", frameon=False)
plt.show()

# %%
# The reason is a blur. Here are two chains with the same three states. Both stay where
# they are with probability 0.9; the second is more often in its first state. MAW
# registers the two ends of a step independently. As the weights differ, it splits
# states, and a self-transition becomes a jump between two of them. The transition
# component then measures the weights. JAW transfers both ends of a step together:
# self-transitions stay self-transitions.
models = HMMBatch(
    transmats=[
        [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]],
        [[0.9, 0.05, 0.05], [0.1, 0.9, 0.0], [0.1, 0.0, 0.9]],
    ],
    means=np.tile([[[0.0], [5.0], [10.0]]], (2, 1, 1)),
    covars=np.ones((2, 3, 1)),
)
for metric in (MAW(), JAW()):
    _, transition = pairwise_hmm_components(models, metric=metric)
    print(type(metric).__name__, round(transition[0, 1], 2))
