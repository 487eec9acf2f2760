"""
What if sensors fail?
=====================

In some recordings a whole channel is missing. If it is filled with zeros, as is often
done, recordings look similar because they lack the same sensor. This does not happen
if two models are compared on the channels that both observed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from skawhmm import HMMTransformer, KNeighborsHMMClassifier
from skawhmm.datasets import make_hmm_sequences

X, y = make_hmm_sequences(80, n_features=6, separation=1.5, random_state=0)
# Sensors have an offset, so that zero is not a typical value.
X = [x + 3 for x in X]


def broken(fraction, rng):
    """Sequences without a random fraction of their channels; the first never fails."""
    parts = []
    for x in X:
        lost = rng.random(x.shape[1]) < fraction
        lost[0] = False
        parts.append(np.where(lost, np.nan, x))
    return parts


# %%
fractions = [0, 0.15, 0.3, 0.45, 0.6]
fig, ax = plt.subplots(layout="constrained")
for missing, marker, style in (("zero", "s", "--"), ("common", "o", "-")):
    hmm = HMMTransformer(n_components=3, missing=missing, random_state=0)
    pipe = make_pipeline(hmm, KNeighborsHMMClassifier(n_neighbors=5))
    scores = [
        cross_val_score(
            pipe, broken(fraction, np.random.default_rng(0)), y, cv=5
        ).mean()
        for fraction in fractions
    ]
    color = "#0072B2" if missing == "common" else "#D55E00"
    ax.plot(
        fractions,
        scores,
        style,
        color=color,
        marker=marker,
        label=f'missing="{missing}"',
    )
ax.axhline(0.5, color="0.6", linewidth=1, label="chance")
ax.set(xlabel="fraction of channels missing", ylabel="accuracy", ylim=(0.2, 1.02))
ax.legend(loc="lower left")
plt.show()
