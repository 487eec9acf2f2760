"""
MAW, IAW, coupling or KL?
=========================

Four distances retrieve sequences of the same kind. The curves show how many of the
nearest sequences are of that kind (precision) while the list grows until it contains
all of them (recall).
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import (
    HMMBatch,
    HMMTransformer,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.datasets import make_hmm_sequences
from skawhmm.plot import RetrievalDisplay

X, y = make_hmm_sequences(60, n_classes=4, separation=2, random_state=0)
models = HMMTransformer(n_components=3, random_state=0).fit_transform(X)

# %%
# In a short sequence, how often each state is visited is partly chance. This affects
# MAW and IAW, which pay for moving probability between states, but hardly affects KL.
# In the long run these chains visit all states equally often, so the models are also
# compared with equal weights.
equal = HMMBatch(
    models.transmats,
    models.means,
    models.covars,
    weights=np.full((len(models), 3), 1 / 3),
)

# %%
# The same call works for every distance. KL uses random sequences of 500 steps; IAW
# registers states by sampling, MAW exactly.
options = {
    "maw": {},
    "iaw": {"n_samples": 128},
    "coupling": {},
    "kl": {"n_steps": 500},
}
styles = [("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."), ("#000000", ":")]
pairwise_hmm_components(models[:2])
fig, ax = plt.subplots(layout="constrained")
for (metric, params), (color, style) in zip(options.items(), styles, strict=True):
    start = time.perf_counter()
    distances = pairwise_hmm_distances(models, metric=metric, metric_params=params)
    print(f"{metric:9} {time.perf_counter() - start:6.2f} s")
    RetrievalDisplay.from_distances(
        distances, y, name=metric, ax=ax, color=color, linestyle=style, linewidth=2
    )
RetrievalDisplay.from_distances(
    pairwise_hmm_distances(equal), y, name="maw, equal weights", ax=ax, color="#CC79A7"
)
chance = np.mean(y == y[0])
ax.axhline(chance, color="0.6", linewidth=1, label="chance")
ax.legend(loc="center left", bbox_to_anchor=(0, 0.47))
plt.show()
