"""
Can states differ in frequency only?
====================================

A signal switches between two rhythms of the same strength. In single frames they look
the same, so states that describe frames cannot separate them. With
:class:`~skawhmm.sequences.Delays` a frame also holds its neighbours, and the covariance
of neighbours is the rhythm: this is the time-delay embedded HMM of neuroscience.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from skawhmm import Framewise, HMMTransformer
from skawhmm.sequences import Delays

RATE = 100

# %%
# Twenty seconds at 100 frames per second: 5 Hz and 11 Hz in turn, with noise.
rng = np.random.default_rng(0)
is_fast = np.arange(20 * RATE) // (2 * RATE) % 2
phase = 2 * np.pi * np.cumsum(np.where(is_fast, 11, 5)) / RATE
signal = np.sin(phase) + 0.4 * rng.standard_normal(len(phase))
X = [signal[:, None]]

# %%
# Two states, of single frames, and of frames with 15 neighbours on each side. A rhythm
# is a plane among these 31 channels, that of its sine and cosine: PCA keeps two planes.
# Their number matters: with 6 or 10 components, states followed the phase of a rhythm
# instead, so look at the states before you trust them.
frames = X
delayed = make_pipeline(Delays(15), Framewise(PCA(4))).fit_transform(X)
hmm = HMMTransformer(2, covariance_type="full", n_init=10, random_state=0)
paths = {}
for name, values in (("frames", frames), ("delays", delayed)):
    path = hmm.fit_transform(values).decode(values)[0][0]
    agreement = np.mean(path == is_fast)
    paths[name] = path if agreement > 0.5 else 1 - path
    print(f"{name}: {max(agreement, 1 - agreement):.0%} of frames in their rhythm")

# %%
# The first eight seconds, coloured by state.
time, shown = np.arange(len(signal)) / RATE, slice(0, 8 * RATE)
fig, axes = plt.subplots(2, 1, figsize=(8, 4), sharex=True, layout="constrained")
titles = "states of single frames", "states of frames with their neighbours"
for ax, title, path in zip(axes, titles, paths.values(), strict=True):
    ax.plot(time[shown], signal[shown], color="0.25", linewidth=0.8)
    for state, color in ((0, "#4477aa"), (1, "#ee6677")):
        here = path[shown] == state
        ax.fill_between(
            time[shown], -2.6, 2.6, where=here, step="mid", color=color, alpha=0.35,
            linewidth=0, label=("5 Hz", "11 Hz")[state],
        )  # fmt: skip
    ax.set(title=title, ylim=(-2.6, 2.6), yticks=[])
    ax.spines[["top", "right", "left"]].set_visible(False)
axes[0].legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
axes[1].set(xlabel="seconds", xlim=(0, 8))
plt.show()
