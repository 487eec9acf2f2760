"""Start values of states: clusters of frames."""

import numpy as np

# Frames that clusters are found from; others only join them.
MOST_FRAMES = 2000

# Steps of k-means: EM follows.
N_STEPS = 10

# Weight that a frame gives to the states of other clusters, so that no state starts
# with too few frames.
SPREAD_WEIGHT = 0.1


def unit_points(points):
    """Return points of unit variance, however many coordinates they have."""
    spread = points.std(axis=0)
    n_varied = int(np.count_nonzero(spread))
    unit = np.where(spread > 0, spread, 1.0) * np.sqrt(max(n_varied, 1))
    return (points - points.mean(axis=0)) / unit


def clustered_posteriors(points, n_states, rng):
    """Return probabilities (n_components, n_timesteps) of states, from clusters.

    Parameters
    ----------
    points : ndarray of shape (n_timesteps, n_dimensions)
        Frames as points.

    n_states : int
        Number of clusters.

    rng : numpy.random.Generator
        Source of the first centres, which are frames that are far apart (k-means++).

    Returns
    -------
    post : ndarray of shape (n_components, n_timesteps)
        Mostly 1 for the state of the nearest centre and 0 for others.
    """
    few = points
    if len(points) > MOST_FRAMES:
        few = points[np.sort(rng.choice(len(points), MOST_FRAMES, replace=False))]
    centers = few[rng.integers(len(few), size=1)]
    while len(centers) < n_states:
        gaps = _squared_gaps(few, centers).min(axis=0)
        levels = np.cumsum(gaps)
        place = np.searchsorted(levels, rng.random() * levels[-1], "right")
        centers = np.vstack([centers, few[min(place, len(few) - 1)]])
    for _ in range(N_STEPS):
        labels = _squared_gaps(few, centers).argmin(axis=0)
        for k in np.unique(labels):
            centers[k] = few[labels == k].mean(axis=0)
    labels = _squared_gaps(points, centers).argmin(axis=0)
    post = (labels == np.arange(n_states)[:, None]).astype(float)
    return (1 - SPREAD_WEIGHT) * post + SPREAD_WEIGHT / n_states


def _squared_gaps(points, centers):
    """Return squared distances (n_centers, n_points)."""
    return np.sum((points - centers[:, None]) ** 2, axis=2)
