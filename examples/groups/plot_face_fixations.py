"""
Do viewers look at faces in their own way?
==========================================

32 viewers looked at faces, some of which they had seen before. Each trial has at most
three fixations, far too few for a model. All trials of a viewer together are enough:
they are one :class:`~skawhmm.sequences.Trials`, and one model is learned from them.

Each viewer gets two models here, one of the faces that he or she judged correctly and
one of the others. If viewers have a style of their own, the two are similar, though
they come from different faces.

The fixations are those of the EMHMM toolbox (Chuk, Chan and Hsiao, Journal of Vision,
2014), if the folder named by the environment variable ``SKAWHMM_DATA`` contains them;
otherwise they are drawn from random models of 32 viewers.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from skawhmm import HMMBatch, HMMTransformer, as_sequences, pairwise_hmm_distances

# %%
# The data: fixations in a row, the length of each trial, its viewer and its outcome.


def drawn_fixations(n_viewers=32, n_trials=40, seed=0):
    """Draw fixations of viewers who prefer the eyes, the nose or the mouth."""
    rng = np.random.default_rng(seed)
    places = np.array([[120.0, 175.0], [150.0, 230.0], [180.0, 175.0]])
    viewers = HMMBatch(
        rng.dirichlet(np.ones(3), size=(n_viewers, 3)),
        places + rng.normal(scale=18, size=(n_viewers, 3, 2)),
        np.full((n_viewers, 3, 2), 250.0),
        startprobs=rng.dirichlet(np.ones(3), size=n_viewers),
    )
    X, _ = viewers.sample(3, n_trials=n_trials, random_state=seed)
    trials = [trial for x in X for trial in x]
    lengths = rng.choice([1, 2, 3], size=len(trials), p=[0.1, 0.2, 0.7])
    frames = [x[:length] for x, length in zip(trials, lengths, strict=True)]
    outcome = np.where(rng.random(len(trials)) < 0.74, "correct", "wrong")
    return np.concatenate(frames), lengths, np.arange(len(trials)) // n_trials, outcome


path = Path(os.environ.get("SKAWHMM_DATA", ".")) / "trials_face_fixations.npz"
if path.exists():
    data = np.load(path)
    frames, lengths, viewer, outcome = (data[k] for k in ("X", "lengths", "group", "y"))
else:
    frames, lengths, viewer, outcome = drawn_fixations()
print(f"{len(lengths)} trials of {len(np.unique(viewer))} viewers:")
print(f"{np.bincount(lengths)[1:]} of them have 1, 2 and 3 fixations.")

# %%
# A unit is a viewer in one condition. One model is fitted per unit; the prior lends
# those with few trials the states of all viewers.
units = [f"{v} {kind}" for v, kind in zip(viewer, outcome, strict=True)]
X, ids = as_sequences(frames, lengths=lengths, unit=units)
models = HMMTransformer(3, prior="pooled", random_state=0).fit_transform(X)
owner = np.array([int(name.split()[0]) for name in ids])
is_correct = np.array([name.endswith("correct") for name in ids])
print(f"{len(models)} models of {models.info['n_trials'].min()} to ", end="")
print(f"{models.info['n_trials'].max()} trials each")

# %%
# Distances between the models of correctly judged faces and those of the others. Most
# viewers are nearest to themselves, where chance would find one of them.
order = [np.flatnonzero(is_correct == kind) for kind in (True, False)]
correct, wrong = (rows[np.argsort(owner[rows])] for rows in order)
distances = pairwise_hmm_distances(models[correct], models[wrong], metric="maw")
nearest = distances.argmin(axis=1)
n_found = np.count_nonzero(owner[wrong][nearest] == owner[correct])
own = np.diagonal(distances)
others = distances[~np.eye(len(distances), dtype=bool)]
print(f"{n_found} of {len(correct)} viewers are nearest to themselves")
print(f"median distance to oneself {np.median(own):.1f}, to others ", end="")
print(f"{np.median(others):.1f}")

# %%
# The two viewers who differ most, and all distances. Dots are fixations, ellipses are
# the states of the two models of a viewer, and the dot in a row marks its least value.
apart = distances + distances.T
one, two = np.unravel_index(apart.argmax(), apart.shape)
colors = {"correct": "C0", "wrong": "C1"}
figure, axes = plt.subplots(1, 3, figsize=(10.5, 4), layout="constrained")
for ax, k in zip(axes, (one, two), strict=False):
    for rows, kind in ((correct, "correct"), (wrong, "wrong")):
        points = np.concatenate([*X[rows[k]]])
        ax.plot(*points.T, ".", color=colors[kind], alpha=0.3, markersize=4)
        model = models[rows[k]]
        for weight, mean, variance in zip(
            model.weights[0], model.means[0], model.covars[0], strict=True
        ):
            size = 2 * np.sqrt(variance)
            ellipse = Ellipse(mean, *size, edgecolor=colors[kind], facecolor="none")
            ellipse.set(linewidth=0.5 + 4 * weight)
            ax.add_patch(ellipse)
        ax.plot([], [], "o", color=colors[kind], label=kind)
    low, high = np.quantile(frames, [0.002, 0.998], axis=0)
    ax.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]), aspect="equal")
    ax.set(title=f"viewer {owner[correct][k]}", xlabel="x (pixels)")
axes[0].set_ylabel("y (pixels)")
axes[0].legend(title="judged", fontsize="small")
image = axes[2].imshow(distances, cmap="viridis_r")
axes[2].plot(nearest, np.arange(len(nearest)), ".", color="white", markersize=4)
axes[2].set(
    title=f"{n_found} of {len(correct)} nearest to themselves",
    xlabel="viewer, judged wrong",
    ylabel="viewer, judged correctly",
)
figure.colorbar(image, ax=axes[2], label="MAW distance", shrink=0.8)
plt.show()
