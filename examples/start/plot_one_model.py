"""
What does one model look like?
==============================

A smart watch recorded someone running. One model with four states is fitted to the
recording. What are its states, how does it move between them, and which state is the
watch in at which time?
"""

import matplotlib.pyplot as plt

from skawhmm import HMMTransformer
from skawhmm.datasets import load_basic_motions
from skawhmm.plot import HMMDisplay, SequenceDisplay

# %%
# The models keep their sequences. A notebook shows a batch as a table with a small
# picture per model.
X, y = load_basic_motions(split="train", return_X_y=True)
X = [x for x, label in zip(X, y, strict=True) if label == "Running"]
hmm = HMMTransformer(n_components=4, keep_sequences=True, random_state=0)
models = hmm.fit_transform(X)
models

# %%
# The states of the first model, along the two principal axes of its six channels, and
# its transitions. The strides of a runner repeat: the model goes through its states in
# a cycle.
HMMDisplay.from_model(models[0])
plt.show()

# %%
# Bars show all channels, as means in standard deviations of all frames.
channels = ["accel x", "accel y", "accel z", "gyro x", "gyro y", "gyro z"]
HMMDisplay.from_model(models[0], states="bars", channel_names=channels)
plt.show()

# %%
# The recording, coloured by the most probable states. One cycle is one stride.
display = SequenceDisplay.from_model(models[0], channel_names=channels)
plt.show()

# %%
# How long is a stride? A cycle begins whenever the state changes to the first one.
path = display.path
visits = sum((path[1:] == path[0]) & (path[:-1] != path[0]))
print(f"{visits} strides in 100 frames: one stride takes {100 / visits:.0f} frames.")
