"""Groups hold every model once, and balls the states of their groups."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skawhmm import MAW, HMMBatch
from skawhmm.neighbors._balls import (
    grown_balls,
    kept_balls,
    make_balls,
    regrouped_balls,
    state_vectors,
)
from skawhmm.neighbors._search_kernels import from_tiles


def grouped(n_models, seed=0):
    rng = np.random.default_rng(seed)
    shape = n_models, 3, 4
    means = 3 * rng.normal(size=(8, 3, 4))[rng.integers(8, size=n_models)]
    return HMMBatch(
        rng.dirichlet(np.ones(3), shape[:2]),
        means + 0.5 * rng.normal(size=shape),
        rng.uniform(0.2, 1.5, shape),
    )


def check_balls(balls, models):
    assert_array_equal(np.sort(balls.order), np.arange(len(models)))
    assert_array_equal(balls.starts[[0, -1]], [0, len(models)])
    vectors = (state_vectors(models)[balls.order] - balls.origin) / balls.scale
    assert np.abs(vectors).max() <= 1.000001 * balls.largest
    rounding = 1e-6 * balls.largest
    stored = from_tiles(balls.tiles, len(models))
    np.testing.assert_allclose(stored, vectors, atol=rounding)
    np.testing.assert_allclose(balls.margins, models.weights[balls.order])
    centres = from_tiles(balls.centres, balls.n_groups)
    for g, (first, last) in enumerate(
        zip(balls.starts, balls.starts[1:], strict=False)
    ):
        own = stored[first:last, :, None].astype(float)
        gaps = np.linalg.norm(own - centres[g], axis=3)
        nearest = np.where(balls.used[g], gaps, np.inf).min(axis=2)
        spreads = (balls.margins[first:last] * nearest).sum(axis=1)
        # Rounded up, and the farthest first.
        assert np.all(spreads <= balls.spreads[first:last] + 1e-9)
        np.testing.assert_allclose(balls.spreads[first:last], spreads, rtol=1e-5)
        assert np.all(np.diff(balls.spreads[first:last]) <= 0)
    assert_array_equal(balls.chains, models.transmats[balls.order].astype("f4"))
    below = np.tril_indices(3, -1)
    apart = np.linalg.norm(vectors[:, below[0]] - vectors[:, below[1]], axis=2)
    np.testing.assert_allclose(balls.apart, apart, atol=3 * rounding)


def test_spreads_are_the_costs_of_moving_models_to_their_centres():
    models = grouped(300)
    balls = make_balls(models, MAW())
    check_balls(balls, models)
    assert balls.largest == 1
    assert balls.n_groups < 100


def test_balls_stay_right_as_models_come_and_go():
    models, others = grouped(200), grouped(90, seed=1)
    # Far from the models that set the scale.
    others = HMMBatch(others.transmats, 20 * others.means, others.covars)
    both = HMMBatch.concatenate([models, others])
    balls = grown_balls(make_balls(models, MAW()), others, MAW())
    assert balls.largest > 1
    check_balls(balls, both)
    rows = np.arange(0, 290, 3)
    check_balls(kept_balls(balls, rows, 1), both[rows])
    rows = np.delete(np.arange(290), [3, 77, 210])
    balls = kept_balls(balls, rows, 1)
    check_balls(balls, both[rows])
    check_balls(regrouped_balls(balls, 1), both[rows])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_jobs_make_the_same_balls(n_jobs, monkeypatch):
    monkeypatch.setattr("skawhmm.neighbors._balls.BUILD_BLOCK", 50)
    one = make_balls(grouped(200), MAW(), n_jobs)
    two = make_balls(grouped(200), MAW())
    for mine, theirs in zip(one, two, strict=True):
        assert_array_equal(mine, theirs)


def test_index_is_smaller_than_the_models():
    models = grouped(3000)
    balls = make_balls(models, MAW())
    keys = 8 * len(models)
    assert sum(np.asarray(x).nbytes for x in balls) + keys < models.nbytes
