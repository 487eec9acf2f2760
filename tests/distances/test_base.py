import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skawhmm import (
    IAW,
    JAW,
    KL,
    MAW,
    HMMTransformer,
    KNeighborsHMMClassifier,
    PairwiseHMMDistance,
    TransitionCoupling,
    pairwise_hmm_distances,
)
from skawhmm.datasets import make_hmm_sequences
from skawhmm.distances import (
    MMD,
    AggregatedDistance,
    Distance,
    LearnedDistance,
    RegisteringDistance,
)
from skawhmm.distances._base import BoundedDistance
from skawhmm.utils._digest import content_digest

KNOWN = {
    "MAW()": MAW(),
    "MAW(alpha=0.3)": MAW(0.3, 1),
    "MAW(p=2, registration='identity')": MAW(p=2, registration="identity"),
    "JAW()": JAW(0.5),
    "JAW(alpha=0.2, steps='independent')": JAW(0.2, steps="independent"),
    "IAW(n_samples=8, debias=True)": IAW(n_samples=8, debias=True),
    "IAW(random_state=None)": IAW(random_state=None),
    "KL()": KL(cap=None),
    "KL(method='variational', cap=3)": KL(method="variational", cap=3),
    "KL(symmetric=False)": KL(symmetric=False),
    "TransitionCoupling(gamma=0.5)": TransitionCoupling(gamma=0.5),
    "MMD()": MMD(bandwidth="median"),
    "MMD(order=1, bandwidth=1.5)": MMD(order=1, bandwidth=1.5),
}


@pytest.mark.parametrize("text", KNOWN)
def test_repr_of_a_distance_evaluates_to_an_equal_one(text):
    metric = KNOWN[text]
    assert repr(metric) == text
    again = eval(text)
    assert again == metric
    assert vars(again) == vars(metric)
    assert hash(again) == hash(metric)
    others = [other for other in KNOWN.values() if other is not metric]
    assert all(metric != other for other in others)


@pytest.mark.parametrize("metric", KNOWN.values(), ids=KNOWN)
def test_distances_are_parameter_objects(metric):
    params = metric.get_params()
    assert type(metric)(**params) == metric
    assert clone(metric) == metric
    assert clone(metric) is not metric
    fresh = type(metric)().set_params(**params)
    assert fresh == metric
    assert fresh.get_params() == params


def test_jaw_is_maw_with_joint_steps():
    one, two = JAW(), MAW(0.5, steps="joint")
    assert one == two
    assert hash(one) == hash(two)
    assert content_digest(one) == content_digest(two)
    assert one != MAW(0.5)
    assert content_digest(one) != content_digest(MAW(0.5))


def test_subclasses_differ_from_the_distance_they_extend():
    class Other(JAW):
        pass

    assert Other() != JAW()
    assert Other() != MAW(0.5, steps="joint")
    assert MAW() != "maw"


def test_estimators_print_their_distance():
    estimator = clone(PairwiseHMMDistance(MAW(alpha=0.3)))
    assert repr(estimator) == "PairwiseHMMDistance(metric=MAW(alpha=0.3))"


WRONG = [
    (MAW(), {"alpha": 7}, "alpha must be a number in .* got 7"),
    (MAW(), {"registration": "identity", "steps": "joint"}, "steps must be"),
    (JAW(), {"rows": "l2"}, "rows must be one of .* got 'l2'"),
    (IAW(), {"n_samples": 0}, "n_samples must be .* got 0"),
    (KL(), {"method": "data", "n_steps": 5}, "n_steps must be 2000 with method="),
    (TransitionCoupling(), {"gamma": 2}, "gamma must be .* got 2"),
    (MMD(bandwidth=1.0), {"order": 3}, "order must be 1 or 2, got 3"),
]


@pytest.mark.parametrize(("metric", "params", "message"), WRONG, ids=str)
def test_values_from_set_params_are_checked_when_the_distance_is_used(
    metric, params, message, make_batch
):
    changed = clone(metric).set_params(**params)
    models = make_batch(3)
    for use in (
        lambda: pairwise_hmm_distances(models, metric=changed),
        lambda: changed.prepare(models),
        lambda: PairwiseHMMDistance(changed).fit(models),
        lambda: type(metric)(**params),
    ):
        with pytest.raises(ValueError, match=message):
            use()


def test_distances_keep_numpy_parameters_and_use_their_values(make_batch):
    alpha, models = np.float32(0.1), make_batch(4)
    metric = MAW(alpha, p=np.int64(1))
    assert metric.alpha is alpha
    found = pairwise_hmm_distances(models, metric=metric)
    assert_array_equal(found, pairwise_hmm_distances(models, alpha=float(alpha)))


def test_a_grid_search_reaches_the_parameters_of_a_distance():
    X, y = make_hmm_sequences(24, differ_in="transitions", random_state=0)
    models = HMMTransformer(2, random_state=0).fit_transform(X)
    alphas = [0.0, 0.5, 1.0]
    scores = [
        GridSearchCV(estimator, grid, cv=3).fit(models, y).cv_results_
        for estimator, grid in (
            (KNeighborsHMMClassifier(1, metric=MAW()), {"metric__alpha": alphas}),
            (KNeighborsHMMClassifier(1), {"alpha": alphas}),
        )
    ]
    found, wanted = (result["mean_test_score"] for result in scores)
    assert_array_equal(found, wanted)
    assert len(set(found)) > 1


def test_a_grid_search_does_not_change_the_distance_it_is_given(make_batch):
    models, metric = make_batch(8), MAW()
    knn = KNeighborsHMMClassifier(1, metric=metric)
    GridSearchCV(knn, {"metric__alpha": [0.7]}, cv=2).fit(models, np.arange(8) % 2)
    assert metric == MAW()


def test_a_matrix_file_continues_with_an_equal_distance(make_batch, tmp_path):
    models, path = make_batch(5), tmp_path / "matrix.npy"
    wanted = pairwise_hmm_distances(models, metric=JAW(), out=path)
    for metric in (MAW(0.5, steps="joint"), JAW(np.float32(0.5), p=np.int64(1))):
        assert_array_equal(
            pairwise_hmm_distances(models, metric=metric, out=path), wanted
        )
    with pytest.raises(ValueError, match="other models or parameters"):
        pairwise_hmm_distances(models, metric=MAW(0.5), out=path)


@pytest.mark.parametrize("metric", KNOWN.values(), ids=KNOWN)
def test_every_distance_follows_the_protocols(metric):
    assert isinstance(metric, Distance)
    is_aggregated = isinstance(metric, MAW | IAW)
    assert isinstance(metric, AggregatedDistance) == is_aggregated
    assert isinstance(metric, RegisteringDistance) == is_aggregated
    assert isinstance(metric, LearnedDistance) == isinstance(metric, MMD)
    has_bounds = isinstance(metric, MAW | IAW | TransitionCoupling)
    assert isinstance(metric, BoundedDistance) == has_bounds


# A distance of a user, in which `{name}` stands for the name of one of its members.
SCRIPT = """
import numpy as np

from skawhmm import HMMBatch, pairwise_hmm_distances
from skawhmm.distances import Distance


class MeanDistance:
    symmetric: bool = True

    def prepare(self, models: HMMBatch) -> np.ndarray:
        return np.einsum("nk,nkd->nd", models.weights, models.means)

    def {name}(self, means: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.linalg.norm(means[a] - means[b], axis=1)


def matrix(models: HMMBatch) -> np.ndarray:
    metric: Distance = MeanDistance()
    return pairwise_hmm_distances(models, metric=MeanDistance())
"""


def test_mypy_checks_the_distance_of_a_user(tmp_path):
    pytest.importorskip("mypy")
    files = {name: tmp_path / f"{name}.py" for name in ("distances", "gaps")}
    for name, file in files.items():
        file.write_text(dedent(SCRIPT.format(name=name)))
    root = Path(__file__).parents[2]
    settings = root / "pyproject.toml"
    command = [sys.executable, "-m", "mypy", f"--config-file={settings}"]
    command += ["--follow-imports=silent", f"--cache-dir={tmp_path / 'cache'}"]
    ran = subprocess.run(
        [*command, *map(str, files.values())],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(root)},
        check=False,
    )
    lines = ran.stdout.splitlines()
    assert not [line for line in lines if line.startswith("distances.py")], ran.stdout
    missing = [line for line in lines if line.startswith("gaps.py") and "error" in line]
    assert len(missing) == 2, ran.stdout + ran.stderr
    assert (
        '"MeanDistance" is missing following "Distance" protocol member' in ran.stdout
    )
