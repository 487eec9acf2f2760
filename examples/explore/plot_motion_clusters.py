"""
What does the centre of a cluster of motions look like?
=======================================================

Motions of a leg, hip angle against knee angle, are grouped by their models. The centre
of a group is the model of its most typical motion. Its states are postures, and its
transitions say which posture follows which.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from skawhmm import HMMKMedoids, HMMTransformer
from skawhmm.datasets import data_home, load_cmu_mocap

# %%
# The data are recordings of CMU's motion capture database if they are in the data
# folder, otherwise generated motions of four kinds: strides, hops, squats and kicks.
if (data_home() / "cmu_mocap329_30fps.npz").exists():
    motions = load_cmu_mocap()
    joints = [list(motions.feature_names).index(n) for n in ("rfemur_rx", "rtibia_rx")]
    X, y = [x[:, joints] for x in motions.data], motions.target
else:
    rng = np.random.default_rng(0)
    kinds = {
        "stride": lambda t: (25 * np.sin(t) - 5, 30 - 25 * np.cos(t + 0.6)),
        "hop": lambda t: (-15 + 10 * np.sin(t), 30 + 25 * np.sin(t)),
        "squat": lambda t: (-40 + 40 * np.cos(t), 55 - 50 * np.cos(t)),
        "kick": lambda t: (-30 * np.sin(t) ** 3, 40 + 35 * np.cos(t)),
    }
    X, y = [], []
    for kind, angles in kinds.items():
        for _ in range(25):
            t = rng.uniform(0, 6) + rng.uniform(0.1, 0.2) * np.arange(150)
            motion = rng.uniform(0.8, 1.2) * np.transpose(angles(t))
            X.append(motion + 3 * rng.normal(size=motion.shape))
            y.append(kind)
    y = np.array(y)

# %%
# Groups of models and, for comparison, groups of means and standard deviations.
n_clusters = len(np.unique(y))
models = HMMTransformer(n_components=4, random_state=0).fit_transform(X)
groups = HMMKMedoids(n_clusters).fit(models)
summary = [np.concatenate([x.mean(axis=0), x.std(axis=0)]) for x in X]
plain = KMeans(n_clusters, n_init=10, random_state=0)
plain.fit(StandardScaler().fit_transform(summary))
print(f"{len(X)} motions of {n_clusters} kinds; agreement (adjusted Rand index)")
print(
    f"  of groups of models:             {adjusted_rand_score(y, groups.labels_):.2f}"
)
print(f"  of groups of means and spreads:  {adjusted_rand_score(y, plain.labels_):.2f}")

# %%
# Each centre is drawn over some motions of its group. The size of an ellipse shows the
# standard deviations of a state; the width of an arrow shows how often that transition
# is taken when the state is left.
n_rows = -(-n_clusters // 4)
fig, axes = plt.subplots(
    n_rows, 4, figsize=(10, 3 * n_rows), sharex=True, sharey=True, layout="constrained"
)
for cluster, ax in enumerate(axes.flat):
    if cluster >= n_clusters:
        ax.axis("off")
        continue
    members = np.flatnonzero(groups.labels_ == cluster)
    for i in members[:5]:
        ax.plot(*X[i].T, color="0.8", linewidth=0.6, zorder=1)
    centre = groups.cluster_centers_[cluster]
    means, spreads = centre.means[0], 2 * np.sqrt(centre.covars[0])
    for mean, spread, weight in zip(means, spreads, centre.weights[0], strict=True):
        if weight > 0.02:
            shade = 0.2 + 0.6 * weight
            ax.add_patch(Ellipse(mean, *spread, color="#0072B2", alpha=shade, zorder=2))
    leaving = centre.transmats[0] * (1 - np.eye(len(means)))
    leaving /= leaving.sum(axis=1, keepdims=True)
    for i, j in np.argwhere(leaving > 0.2):
        if centre.weights[0, [i, j]].min() > 0.02:
            arrow = {"arrowstyle": "->", "connectionstyle": "arc3,rad=0.25"}
            arrow |= {"color": "#D55E00", "linewidth": 2 * leaving[i, j]}
            ax.annotate("", means[j], means[i], arrowprops=arrow, zorder=3)
    kinds, counts = np.unique(y[members], return_counts=True)
    fraction = counts.max() / counts.sum()
    ax.set_title(f"{kinds[counts.argmax()]}: {fraction:.0%} of {len(members)}", size=9)
fig.supxlabel("hip angle (degrees)")
fig.supylabel("knee angle (degrees)")
plt.show()
