"""Parameters of every estimator and distance: good values and wrong ones."""

import inspect
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

import skawhmm as sk
from fuzzing.draw import pick
from fuzzing.names import PUBLIC
from skawhmm.emissions import Gaussian

NAN, INF = np.nan, np.inf
# Beyond the range of floats.
HUGE = [10**400, -(10**400), Fraction(10**400)]
# Wrong wherever a number is expected.
NO_NUMBER: list[Any] = ["many", None, NAN, [1], {}, 1j, True, b"1", np.array("1")]
NO_NUMBER += [np.True_, np.array([1.0]), "0.5", *HUGE]
NO_COUNT: list[Any] = [0, -1, 2.5, "few", NAN, INF, [], True, -(10**20), "2", 2.0]
NO_COUNT += [np.True_, np.float64(2), np.int8(-1), np.uint8(0), *HUGE]
NO_CHOICE: list[Any] = ["other", 3, "", [], True]
NO_FLAG: list[Any] = ["yes", 3, None, []]

# Good and wrong values by the name of the parameter.
SHARED: dict[str, tuple[list[Any], list[Any]]] = {
    "metric": (
        [
            "maw",
            "iaw",
            "jaw",
            "kl",
            "coupling",
            "mmd",
            sk.MAW(0.3),
            sk.distances.MMD(order=1),
        ],
        ["far", 3, None, sk.MAW, "", ["maw"], {}],
    ),
    "alpha": (
        [None, 0, 0.1, 0.5, 1, np.float32(0.25), Fraction(1, 3)],
        [-0.1, 1.5, "much", NAN, INF, [0.5], True, 1e308, 1j, b"", *HUGE],
    ),
    "p": (
        [None, 1, 2, 0.5, 1.5, np.float32(1)],
        [0, -1, 2.5, "two", NAN, INF, True, *HUGE],
    ),
    "metric_params": ([None, {}], [3, {"far": 1}, [1], "x", {3: 4}]),
    "hmm": (
        [sk.HMMTransformer(1), sk.HMMTransformer(2, random_state=0)],
        [3, "hmm", sk.HMMTransformer, BaseEstimator(), True],
    ),
    "n_jobs": ([None, 1, 2], [0, 1.5, "all", True, NAN, [], 0.0]),
    "verbose": ([0, False], [-1, "yes", None, 2.5, []]),
    "random_state": (
        [0, 1, 2**32 - 1, np.int64(3)],
        ["now", -1, 0.5, 2**32, 2**64, NAN, [1], -(2**70), *HUGE],
    ),
    "algorithm": (["auto", "brute", "pruned"], ["fast", None, 3]),
    "max_iter": ([1, 5, 100], NO_COUNT),
    "tol": ([0, 1e-3, 1.0], [-1, *NO_NUMBER]),
    "relevance": ([0.5, 4.0], [0, -1, *NO_NUMBER]),
    "n_clusters": ([1, 2], [*NO_COUNT, 10**6]),
}
NEIGHBORS = ([1, 2], [*NO_COUNT, 10**6, None])
FEW_VIEWS = [("x", sk.HMMEmbedding((1,), random_state=0))]
RIDGES: dict[str, tuple[list[Any], list[Any]]] = {
    "views": (
        [FEW_VIEWS],
        [
            3,
            [],
            [3],
            [("x",)],
            [("x", 3)],
            [("x", sk.features.NGrams)],
            "views",
            {},
            [()],
        ],
    ),
    "penalties": ([(1.0,), 0.1, [0.1, 1]], [0, (), (1, -1), "small", NAN, [NAN]]),
    "gammas": ([(0.0,), 0.5], [-1, (), (0, "wide"), NAN, None]),
    "cv": ([2], [1, 2.5, "five", None, 0, -1, [], NAN]),
    "solver": (["auto"], NO_CHOICE),
    "max_rank": ([1, 512], NO_COUNT),
}
VOTERS = {
    "n_neighbors": NEIGHBORS,
    "weights": (["uniform", "distance", None], ["rank", 3, "", []]),
}
OWN: dict[str, dict[str, tuple[list[Any], list[Any]]]] = {
    "HMMTransformer": {
        "n_components": ([1, 2, 3, "bic", "aic"], [*NO_COUNT, "symbol", None]),
        "covariance_type": (["diag", "full", "spherical", "tied"], NO_CHOICE),
        "emission": (
            ["gaussian", Gaussian(), Gaussian(reg_covar=0.01)],
            [*NO_CHOICE, Gaussian, Gaussian("round"), Gaussian(reg_covar=-1)],
        ),
        "n_mix": ([1, 2], [*NO_COUNT, None]),
        "topology": (["ergodic", "left-to-right", "linear"], NO_CHOICE),
        "init": (["kmeans", "pooled"], NO_CHOICE),
        "prior": ([None, "pooled"], ["flat", -1, 0.5, [], True]),
        "n_init": ([1, 2], [*NO_COUNT, None]),
        "max_iter": ([0, 1, 20], [-1, 2.5, "few", NAN, None, True]),
        "weights": (["occupancy", "stationary", "uniform"], NO_CHOICE),
        "missing": (["zero", "common"], NO_CHOICE),
        "engine": (["batched", "hmmlearn"], ["fast", 3, None, BaseEstimator()]),
        "keep_sequences": ([True, False], NO_FLAG),
    },
    "MarkovChainTransformer": {
        "symbols": ([None], ["aa", 3, [0.5]]),
        "costs": ([None], [np.eye(2), 3, "x"]),
        "prior": ([None, "pooled", 0.5], ["flat", -1, 0, [], True]),
        "weights": (["occupancy", "stationary", "uniform"], NO_CHOICE),
        "keep_sequences": ([True, False], NO_FLAG),
    },
    "PairwiseHMMDistance": {
        "output": (["distance", "kernel", "psd_kernel", "components"], NO_CHOICE),
        "gamma": (["scale", 0.5, 2], [0, -1, "auto", None, [1.0], NAN]),
    },
    "HMMAligner": {
        "reference": (["barycenter"], ["mean", None, 3, []]),
        "n_components": ([None, 1, 2], [0, 2.5, "few", NAN, []]),
        "max_distance": ([None, 1.0, 100], [-1, "far", NAN, []]),
        "n_resamples": ([0], [-1, 2.5, "x", None]),
    },
    "HMMClassDistance": {
        "groups": (
            [None, [[0]], {"all": [0]}],
            [3, "all", {}, [[7]], [["x"]], [], [[]], [[-9]], [[0.5]], {"a": "b"}],
        ),
        "hmm": ([sk.HMMTransformer(1)], [3, BaseEstimator(), sk.HMMTransformer]),
    },
    "HMMEmbedding": {
        "n_components": ([1, (1, 2), [2]], [0, (), (2, 2.5), "many", None, NAN, {}]),
        "blocks": ([None, "means", ("means",)], ["mean", (), 3, (3,), {}]),
        "emission": (["gaussian"], ["text", None, 3]),
        "reference": (["hmm", "mixture"], ["gmm", None, 3]),
        "normalize": ([True, False], ["yes", 1.5, None]),
        "max_iter": ([None, 1, 5], [0, 2.5, "few", NAN]),
        "dtype": ([np.float64, np.float32, "f4"], [int, "wide", None, complex, object]),
    },
    "HMMViewClassifier": {
        **RIDGES,
        "class_weight": (["balanced", None], ["equal", 3, {0: -1}, {0: "x"}]),
    },
    "HMMViewRegressor": RIDGES,
    "NGrams": {
        "order": ([1, 2, (1, 2)], [*NO_COUNT, (2, 1), (0, 1), (1, 2, 3)]),
        "lag": ([1, 2], NO_COUNT),
        "max_features": ([1, 100], [0, 2.5, None, NAN]),
        "n_features": ([None, 1, 16], [0, 2.5, "few", NAN]),
        "idf": ([True, False], ["yes", None, 3]),
        "sparse_output": ([True, False], ["yes", None, 3]),
    },
    "HMMRetriever": {
        "n_neighbors": ([1, 2], [*NO_COUNT, None]),
        "radius": ([0, 1.0, 50], [-1, *NO_NUMBER]),
        "min_recall": ([0.99], [0, -0.1, 1.5, *NO_NUMBER]),
    },
    "HMMNoveltyDetector": {
        "n_neighbors": NEIGHBORS,
        "false_alarm_rate": ([0.05, 0.5], [0, 1.5, "low", NAN, None]),
    },
    "KNeighborsHMMClassifier": VOTERS,
    "KNeighborsHMMRegressor": VOTERS,
    "KNeighborsHMMClassifierCV": {
        "alphas": (
            [None, [0, 0.5], (0.1,)],
            [2, [0.5, -1], [], "all", ["x"], [NAN], {}],
        ),
        "n_neighbors": ([1, (1, 2)], [0, [], [1, 2.5], [10**6], "few", None]),
        "weights": (["uniform", "distance"], ["rank", np.exp, 3]),
        "scoring": (["accuracy"], ["f1", None, 3]),
    },
    "HMMKMeans": {
        "metric": (["maw", "jaw", "coupling"], ["precomputed", "far", 3]),
        "init": (["k-means++", "random"], ["best", None, 3]),
        "n_init": ([1, 2], NO_COUNT),
    },
    "HMMKMedoids": {},
    "Delays": {"n": ([1, 2], NO_COUNT)},
    "Deltas": {
        "order": ([1, 2], NO_COUNT),
        "lags": ([1, 2, (1, 2)], [0, -1, 2.5, "few", (), [0], None, {}]),
    },
    "TimeChannel": {"scale": ([1.0, 2], [NAN, "long", None, [1], 1j, INF])},
    "Framewise": {
        "transformer": ([None, StandardScaler()], [3, "scaler", StandardScaler, []])
    },
}
METRICS: dict[str, dict[str, tuple[list[Any], list[Any]]]] = {
    "maw": {
        "steps": (["independent", "joint"], NO_CHOICE),
        "rows": (["transport", "hellinger"], NO_CHOICE),
        "registration": (["transport"], NO_CHOICE),
    },
    "jaw": {
        "steps": (["independent", "joint"], NO_CHOICE),
        "rows": (["transport", "hellinger"], NO_CHOICE),
    },
    "iaw": {
        "n_samples": ([8, 16], NO_COUNT),
        "sampling": (["sobol", "iid"], NO_CHOICE),
        "coupling": (["exact", "sinkhorn"], NO_CHOICE),
        "debias": ([True, False], NO_FLAG),
        "random_state": ([0, 7], ["now", -1, 0.5, NAN, [1]]),
    },
    "kl": {
        "method": (["monte_carlo", "variational"], NO_CHOICE),
        "n_steps": ([10, 50], NO_COUNT),
        "symmetric": ([True, False], NO_FLAG),
        "cap": ([None, 5.0], [-1, "x", NAN, []]),
        "random_state": ([0, 7], ["now", -1, 0.5, NAN, [1]]),
    },
    "coupling": {"gamma": ([0, 0.5, 0.9], [-1, 1, 2, "x", NAN, None, True])},
    "mmd": {
        "order": ([1, 2], [0, 3, 1.5, "x", None]),
        "bandwidth": (["median", 0.5, 3.0], [0, -1, "x", NAN, None, []]),
    },
}
CLASSES = {
    "maw": sk.MAW,
    "jaw": sk.JAW,
    "iaw": sk.IAW,
    "kl": sk.KL,
    "coupling": sk.TransitionCoupling,
    "mmd": sk.distances.MMD,
}


def known(name):
    """Return good and wrong values of every parameter of an estimator."""
    own = OWN[name]
    params = PUBLIC[name]().get_params(deep=False)
    return {key: own.get(key, SHARED.get(key, ([], []))) for key in params}


def drawn_params(rng, values, *, wrong):
    """Return random values of some parameters, and the wrong one among them or None."""
    params = {
        key: maybe_numpy(rng, pick(rng, good))
        for key, (good, _) in values.items()
        if good and rng.random() < 0.3
    }
    faulty = [key for key, (_, bad) in values.items() if bad]
    if not wrong or not faulty:
        return params, None
    key = pick(rng, faulty)
    params[key] = pick(rng, values[key][1])
    return params, f"{key}={params[key]!r:.40}"


def maybe_numpy(rng, value):
    """Return a number unchanged, or as a NumPy scalar, often of a small type."""
    if not isinstance(value, bool | int | float) or rng.random() < 0.7:
        return value
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, float):
        return pick(rng, [np.float16, np.float32, np.float64])(value)
    types = [t for t in (np.int8, np.uint8, np.int64) if value <= np.iinfo(t).max]
    return pick(rng, types)(value) if types else value


def plain(params):
    """Return parameters with NumPy scalars converted to Python numbers."""
    return {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in params.items()
    }


def drawn_metric(rng, names=tuple(METRICS)):
    """Return the name of a distance and valid parameters for it."""
    name = pick(rng, [*names])
    params = drawn_params(rng, METRICS[name], wrong=False)[0]
    if name == "iaw":
        params.setdefault("n_samples", 8)
    if name == "kl" and params.get("method", "monte_carlo") == "monte_carlo":
        params.setdefault("n_steps", 20)
    elif name == "kl":
        # Nothing is drawn.
        params = {
            key: params[key] for key in params.keys() - {"n_steps", "random_state"}
        }
    return name, params


def drawn_mixture(rng, metric):
    """Return values of alpha and p, as far as a distance has them."""
    known = inspect.signature(CLASSES[metric]).parameters
    drawn = {"alpha": pick(rng, [None, 0, 0.5, 1]), "p": pick(rng, [None, 1, 2, 0.5])}
    return {key: value for key, value in drawn.items() if key in known}


def shown(params):
    """Return values by name, formatted as in a call and truncated."""
    return ", ".join(f"{key}={value!r:.60}" for key, value in params.items())
