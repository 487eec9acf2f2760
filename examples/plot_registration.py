"""
Which state corresponds to which?
=================================

States of two models have no common order, and not even a common number. Optimal
transport of their probabilities finds which state of one stands for which of the other.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMBatch, HMMTransformer, RegistrationDisplay

# %%
# A process with three states, and a recording of it by a sensor that is a little off,
# described with two: the second model has merged two states of the first.
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
# Lines are as wide as the probability that they move.
RegistrationDisplay.from_models(three, two, names=("model a", "model b"))
plt.show()
