"""
Which animal moves differently, and in what?
============================================

Eight animals alternate between foraging (short steps in all directions) and travelling
(long steps straight ahead). One of them travels as fast as the others, but on a winding
path. One model per animal has gamma distributions for the lengths of steps and von
Mises distributions for turning angles. Distances between the models find the animal,
and its states say in what it differs.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMTransformer, pairwise_hmm_distances
from skawhmm.emissions import ByChannel, Gamma, VonMises

N_ANIMALS, N_STEPS = 8, 600

# %%
# Steps in kilometres, turns in radians. Some steps are exactly 0, as the resolution of
# the tags is limited. Animal 5 is the one that winds.
rng = np.random.default_rng(0)
tracks = []
for animal in range(N_ANIMALS):
    travels = np.cumsum(rng.random(N_STEPS) < 0.05) % 2
    steps = rng.gamma(2, np.where(travels, 1.5, 0.15)) * (rng.random(N_STEPS) > 0.02)
    straight = 0.8 if animal == 5 else 4.0
    turns = rng.vonmises(0, np.where(travels, straight, 0.2))
    tracks.append(np.column_stack([steps, turns]))

# %%
# One model per animal, and the distances between them. Both blocks are scaled by their
# spread over all tracks, so that kilometres and radians are comparable.
emission = ByChannel([("step", Gamma(zero_mass=True), [0]), ("turn", VonMises(), [1])])
hmm = HMMTransformer(2, emission=emission, n_init=3, random_state=0)
models = hmm.fit_transform(tracks)
distances = pairwise_hmm_distances(models, metric="jaw")
outlier = np.argmax(np.median(distances, axis=1))
print(f"Animal {outlier} is the farthest from the others.")

# %%
# In what does it differ? The states of each animal, the one with short steps first.
step, turn = models.emission.block("step"), models.emission.block("turn")
order = np.argsort(step.means[:, :, 0], axis=1)
parts = {
    "mean step (km)": step.means,
    "concentration of turns": turn.concentrations,
}
fig, axes = plt.subplots(1, 3, figsize=(9.6, 3.4), layout="constrained")
image = axes[0].imshow(distances, cmap="viridis_r")
axes[0].set(title="distance (JAW)", xlabel="animal", ylabel="animal")
fig.colorbar(image, ax=axes[0], shrink=0.8)
for ax, (title, values) in zip(axes[1:], parts.items(), strict=True):
    ordered = np.take_along_axis(values[:, :, 0], order, axis=1)
    for state, color in ((0, "#4477aa"), (1, "#ee6677")):
        ax.plot(ordered[:, state], "o", color=color)
    ax.axvspan(outlier - 0.4, outlier + 0.4, color="0.92", zorder=0)
    ax.set(title=title, xlabel="animal", ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
axes[1].legend(["forages", "travels"], frameon=False, loc="center right")
plt.show()

# %%
# Its steps are those of the others. When it travels, its turns are hardly concentrated.
for name, values in parts.items():
    own = values[np.arange(N_ANIMALS), order[:, 1], 0]
    others = np.delete(own, outlier)
    print(
        f"{name}, travelling: {own[outlier]:.1f}, others {others.min():.1f} "
        f"to {others.max():.1f}"
    )
