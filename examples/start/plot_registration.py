"""
Which state corresponds to which?
=================================

The states of two models have no common order, and their numbers may differ. Optimal
transport finds which state of one model corresponds to which state of the other.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMBatch, HMMTransformer
from skawhmm.plot import RegistrationDisplay

# %%
# The first model has three states. The second is fitted to the same recording, shifted
# a little, with only two states: it merges two states of the first.
process = HMMBatch(
    transmats=[[[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.1, 0.0, 0.9]]],
    means=[[[0.0, 0.0], [2.0, 0.0], [1.0, 5.0]]],
    covars=[[[0.3, 0.3], [0.3, 0.3], [0.5, 0.2]]],
)
X, _ = process.sample(400, random_state=0)
three = HMMTransformer(n_components=3, random_state=0).fit_transform(X)
shifted = [x + np.array([0.3, 0.7]) for x in X]
two = HMMTransformer(n_components=2, random_state=0).fit_transform(shifted)

# %%
# The width of a line is proportional to the probability that it moves.
RegistrationDisplay.from_models(three, two, names=("model a", "model b"))
plt.show()
