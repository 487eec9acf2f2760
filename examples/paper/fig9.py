"""Fig. 9: maps of phonemes by t-SNE on the distances between their models.

The models and distances are taken from Table 3, training and test together, at the
alpha chosen there on the training part. The paper judges by eye how distinct the
clusters are; we measure it as the fraction of equal labels among the ten nearest points
of a map, and by the silhouette of the classes in it; both are means over several
starts.
"""

import numpy as np
from common import (
    MISSING,
    NO_RANKING,
    PAPER,
    STYLES,
    Result,
    better,
    chosen_alpha,
    main,
    mixed,
    panels,
    progress,
    save_csv,
    save_figure,
)
from matplotlib.patheffects import withStroke
from scipy.spatial.distance import cdist
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score
from table3 import phoneme_values
from threadpoolctl import threadpool_limits

from skawhmm.neighbors import precision_at_k

STARTS = {"smoke": 2, "quick": 3, "full": 10}
# Broad classes of sounds, by which the points are coloured.
KINDS = {
    "vowels": [
        "aa",
        "ae",
        "ah",
        "aw",
        "ay",
        "eh",
        "er",
        "ey",
        "ih",
        "iy",
        "ow",
        "oy",
        "uh",
        "uw",
    ],
    "stops": ["b", "d", "g", "p", "t", "k", "dx"],
    "fricatives": ["ch", "jh", "f", "v", "th", "dh", "s", "z", "sh", "hh"],
    "nasals": ["m", "n", "ng"],
    "glides": ["l", "r", "w", "y"],
    "silence": ["sil"],
}
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#999999")
MARKS = "os^DvX"


def placed(distances, seed):
    """Return the map of a distance matrix."""
    square = (distances + distances.T) / 2
    np.fill_diagonal(square, 0)
    perplexity = min(20, len(square) // 4)
    tsne = TSNE(
        metric="precomputed", init="random", perplexity=perplexity, random_state=seed
    )
    # For so few points, several threads are slower than one. Infinite or negative
    # values (KL, by sampling) cannot be mapped.
    with threadpool_limits(1):
        return tsne.fit_transform(np.clip(square, 0, 1e9))


def run(args):
    """Make the maps, measure them, draw the paper's three."""
    values, (_, y, train, _, note) = phoneme_values(args)
    n_starts = STARTS[args.size]
    bar = progress(n_starts * len(values), "fig9")
    quality, maps = {}, {}
    for name, value in values.items():
        alpha = chosen_alpha(value[np.ix_(train, train)], y[train])
        for start in range(n_starts):
            points = placed(mixed(value, alpha), args.seed + start)
            maps.setdefault(name, points)
            near = precision_at_k(cdist(points, points), y, n_retrieved=10)
            quality.setdefault(name, []).append((near, silhouette_score(points, y)))
            bar.update()
    bar.close()
    rows = []
    for name in STYLES:
        if name in quality:
            near, silhouettes = zip(*quality[name], strict=True)
            rows.append([name, np.mean(near), np.mean(silhouettes)])
        elif name == "DTW":
            rows.append([name, MISSING, MISSING])
        elif name == "SVM on MAW":
            rows.append([name, NO_RANKING, NO_RANKING])
    points = [
        [name, label, *place]
        for name, found in maps.items()
        for label, place in zip(y, found, strict=True)
    ]
    save_csv(args, "fig9_points", ["method", "phoneme", "x", "y"], points)
    return Result(
        "fig9",
        "Fig. 9: maps of phonemes",
        ["method", "equal labels among 10 nearest", "silhouette"],
        rows,
        _orderings(quality),
        [note, f"Means over {n_starts} starts of t-SNE."],
        [_picture(args, maps, y)],
    )


def spread_out(places):
    """Return positions of texts, moved up or down until none overlap."""
    width, height = np.ptp(places, axis=0) * (0.07, 0.04)
    for _ in range(100):
        gaps = places[:, None] - places
        close = (np.abs(gaps[..., 0]) < width) & (np.abs(gaps[..., 1]) < height)
        np.fill_diagonal(close, val=False)
        if not close.any():
            break
        # Of two at the same height, the first goes up.
        sign = np.sign(gaps[..., 1]) + np.triu(gaps[..., 1] == 0, 1)
        places = places + [0, height / 4] * (close * sign).sum(axis=1)[:, None]
    return places


def _picture(args, maps, y):
    names = [name for name in PAPER if name in maps] or list(maps)[:1]
    figure, axes = panels(1, len(names), width=4.6, height=4.4)
    for ax, name in zip(axes[0], names, strict=True):
        points = maps[name]
        for (kind, members), color, mark in zip(
            KINDS.items(), COLORS, MARKS, strict=True
        ):
            chosen = np.isin(y, members)
            ax.plot(*points[chosen].T, mark, color=color, ms=4, alpha=0.7, label=kind)
        labels = np.unique(y)
        middles = np.array([np.median(points[y == label], axis=0) for label in labels])
        for label, place in zip(labels, spread_out(middles), strict=True):
            text = ax.text(*place, label, fontsize=8, weight="bold", ha="center")
            text.set_path_effects([withStroke(linewidth=2, foreground="white")])
        ax.set(title=name, xticks=[], yticks=[])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return save_figure(args, "fig9", figure)


def _orderings(quality):
    if set(PAPER) - set(quality):
        return []
    near = {
        name: np.mean([points for points, _ in found], axis=0)
        for name, found in quality.items()
    }
    return [
        better(
            f"{name}: clusters more distinct than with KL",
            near[name],
            near["KL"],
            (name, "KL"),
        )
        for name in ("MAW", "IAW")
    ]


if __name__ == "__main__":
    main(run, __doc__)
