"""A public function with random arguments."""

import inspect

import numpy as np
from sklearn.base import clone

import skawhmm as sk
from fuzzing.draw import pick, plain_sequences, power
from fuzzing.judge import Trial, check_same
from fuzzing.names import arguments_of
from fuzzing.params import (
    CLASSES,
    HUGE,
    METRICS,
    drawn_params,
    maybe_numpy,
    plain,
    shown,
)
from fuzzing.uses import closed_figures
from skawhmm import HMMTransformer


def trial(rng):
    """Draw a public function with random arguments."""
    name = pick(rng, [*FUNCTIONS])
    return FUNCTIONS[name](rng)


def _called(function, given, inputs, *, wrong=None, finite=True, extra=()):
    """Return a trial of a function, which is called twice."""

    def verify(result):
        check_same(function(**given), result, "called twice")
        check_same(function(**plain(given)), result, "numbers of Python")

    words = {
        key: value if np.isscalar(value) or value is None else type(value).__name__
        for key, value in given.items()
    }
    return Trial(
        f"{function.__name__}({shown(words)})",
        lambda: function(**given),
        inputs,
        arguments_of(function) | {*extra},
        verify,
        finite=finite,
        wrong=wrong,
    )


def _values(rng, good, bad, chance=0.3):
    """Return a value, and whether it is wrong."""
    numbers = [value for value in good if isinstance(value, int | float)]
    if rng.random() < chance:
        return pick(rng, [*bad, *(HUGE if numbers else [])]), True
    return maybe_numpy(rng, pick(rng, good)), False


def _mfcc(rng):
    signal = rng.normal(size=int(rng.integers(1, 400))) * power(rng, 100)
    with np.errstate(over="ignore"):
        single = signal.astype(np.float32)
    bad = ["abc", None, signal + 1j, signal[:0], [np.nan] * 50, [np.inf] * 50]
    bad += [signal[:, None, None], {}, [[1], [2, 3]], np.zeros(9, "M8[s]"), ["a"] * 9]
    table = {
        "signal": ([signal, single, signal.tolist()], bad),
        "sample_rate": ([100, 8000.0], [0, -1, "x", None, np.nan, np.inf, True]),
        "n_coefficients": ([1, 5, 13], [0, 2.5, "x", None, 10**6, True]),
        "window": ([0.025, 0.2], [0, -1, "x", np.nan, None, np.inf]),
        "hop": ([0.01, 0.1], [0, -1, "x", np.nan, None, np.inf]),
        "n_filters": ([13, 26], [0, 2.5, "x", None, True]),
        "preemphasis": ([0, 0.97], ["x", np.nan, None, 1j]),
        "deltas": ([0, 1, 2], [-1, 2.5, "x", None]),
    }
    given = {key: maybe_numpy(rng, pick(rng, good)) for key, (good, _) in table.items()}
    wrong = None
    if rng.random() < 0.5:
        key = pick(rng, [*table])
        given[key] = pick(rng, [*table[key][1], *HUGE])
        wrong = f"{key}={given[key]!r:.30}"
    return _called(sk.sequences.mfcc, given, [signal], wrong=wrong)


def _some_models(rng, n=8):
    """Return ordinary models fitted to sequences."""
    X = plain_sequences(rng, n_sequences=n, n_features=2)
    return HMMTransformer(2, random_state=0, keep_sequences=True).fit_transform(X)


SEEDS = ([0, 1, 2**32 - 1], ["now", -1, 0.5, 2**32, [1], np.nan])


def _group_arguments(rng, n):
    groups = _values(
        rng,
        [np.arange(n) % 2, list("ab" * (n // 2)), np.arange(n) % 3],
        [
            *(None, [0] * n, [0, 1], 3, "x", [[0]] * n, [np.nan] * n, [], {}, {1, 2}),
            ["a", *[0] * (n - 1)],
        ],
    )
    units = _values(
        rng,
        [None, np.arange(n)],
        [[0], 3, "x", [[0]] * n, np.full(n, np.nan), {}],
        0.15,
    )
    strata = _values(
        rng, [None, np.repeat([0, 1], n // 2)], [[0], 3, "x", [[0]] * n, {}], 0.15
    )
    return {"groups": groups, "units": units, "strata": strata}


def _finished(given):
    """Return arguments, and which of them are wrong."""
    wrong = [key for key, (_, is_wrong) in given.items() if is_wrong]
    values = {key: value for key, (value, _) in given.items()}
    return values, ", ".join(f"{k}={values[k]!r:.30}" for k in wrong) or None


def _group_test(rng):
    models = _some_models(rng)
    n = len(models)
    given = _group_arguments(rng, n) | {
        "statistic": _values(rng, ["pseudo_f"], ["t", None, 3]),
        "n_permutations": _values(rng, [9, 19], [0, -1, 2.5, "x", None, True]),
        "random_state": _values(rng, *SEEDS),
        "covariates": _values(
            rng,
            [None, np.arange(n) / 3.0],
            ["x", [np.nan] * n, [1], ["a"] * n, np.arange(n) + 1j, [[1], [2, 3]]],
            0.15,
        ),
    }
    values, wrong = _finished(given)
    return _called(
        sk.hmm_group_test, {"X": models, **values}, [models], wrong=wrong, finite=False
    )


def _effects(rng):
    models = _some_models(rng)
    given = _group_arguments(rng, len(models)) | {
        "measures": _values(rng, ["occupancy", ("dwell_time",)], ["x", (), 3, ("x",)]),
        "confidence": _values(rng, [0.95, 0.5], [0, 1, 2, "x", None, np.nan]),
        "n_permutations": _values(rng, [9, 19], [0, -1, 2.5, "x", None]),
        "random_state": _values(rng, *SEEDS),
        "reference": _values(rng, ["barycenter"], ["x", 3]),
    }
    values, wrong = _finished(given)
    return _called(
        sk.groups.state_effects,
        {"models": models, **values},
        [models],
        wrong=wrong,
        finite=False,
    )


def _interval(rng):
    models = _some_models(rng, 2)
    good = [models[0]]
    given = {
        "a": _values(rng, good, [models, 3, None, "x", []], 0.15),
        "b": _values(rng, [models[1]], [models, 3, None, "x", []], 0.15),
        "n_timesteps": _values(rng, [None, 5, 10], [0, -1, 2.5, "x", True], 0.15),
        "method": _values(rng, ["parametric", "blocks"], ["x", None, 3], 0.15),
        "block_length": _values(rng, [None, 3], [0, -1, 2.5, "x"], 0.15),
        "n_resamples": _values(rng, [2, 5], [0, -1, 2.5, "x", None], 0.15),
        "confidence": _values(rng, [0.9, 0.5], [0, 1, 2, "x", None, np.nan], 0.15),
        "random_state": _values(rng, *SEEDS),
    }
    values, wrong = _finished(given)
    functions = sk.groups.distance_interval, sk.groups.registration_interval
    return _called(
        pick(rng, functions),
        values,
        [models],
        wrong=wrong,
        extra=arguments_of(HMMTransformer),
    )


def _stability(rng):
    X = plain_sequences(rng, n_sequences=4)
    given = {
        "X": _values(rng, [X], [X[:1], 3, None, "x", [], [x[:1] for x in X]], 0.2),
        "n_components": _values(
            rng, [1, (1, 2)], [0, (), "x", 2.5, None, [0], {}], 0.2
        ),
        "hmm": _values(rng, [None, HMMTransformer(max_iter=5)], [3, "x"], 0.2),
        "random_state": _values(rng, *SEEDS),
    }
    values, wrong = _finished(given)
    return _called(
        sk.groups.stability_curve,
        values,
        [X],
        wrong=wrong,
        finite=False,
        extra=arguments_of(HMMTransformer),
    )


def _dynamics(rng):
    X = plain_sequences(rng, n_sequences=8)
    y = np.arange(8) % 2
    knn = sk.KNeighborsHMMClassifier(1, hmm=HMMTransformer(1, random_state=0))
    given = {
        "X": _values(rng, [X], [X[:1], 3, None, "x", []], 0.2),
        "y": _values(rng, [y], [y[:3], None, 3, "x", [np.nan] * 8, np.zeros(8)], 0.2),
        "groups": _values(rng, [None, np.arange(8) // 2], [[0], 3, "x"], 0.2),
        "estimator": _values(rng, [knn], [3, "x", sk.features.NGrams], 0.2),
        "n_permutations": _values(rng, [1, 2], [0, -1, 2.5, "x", None], 0.2),
        "cv": _values(rng, [2], [1, 0, -1, "x", 2.5, 100], 0.2),
        "scoring": _values(rng, ["accuracy"], ["x", 3], 0.2),
        "random_state": _values(rng, *SEEDS),
    }
    values, wrong = _finished(given)
    return _called(
        sk.dynamics_gain,
        values,
        [X, y],
        wrong=wrong,
        extra=arguments_of(HMMTransformer, sk.KNeighborsHMMClassifier),
    )


def _retrieval(rng):
    n = int(rng.integers(2, 7))
    D = rng.random((n, n))
    function = pick(
        rng,
        [
            *(
                sk.neighbors.average_precision,
                sk.neighbors.precision_at_k,
                sk.neighbors.retrieval_auc,
            ),
            sk.neighbors.retrieval_curve,
        ],
    )
    y = np.arange(n) % 2
    given = {
        "distances": (D, False),
        "y": _values(rng, [y, y.astype(str)], [y[:-1], 5, None, [[0]] * n, {}], 0.2),
        "y_query": _values(rng, [None, y], [5, y[:-1], "x", [[0]] * n, {}], 0.2),
    }
    if function is sk.neighbors.precision_at_k:
        given["n_retrieved"] = _values(
            rng, [1, n - 1, n + 1], [0, -1, 2.5, "x", None], 0.2
        )
    if function is sk.neighbors.retrieval_curve:
        given["n_levels"] = _values(rng, [2, 11], [0, 1, -1, 2.5, "x", None], 0.2)
    values, wrong = _finished(given)
    return _called(function, values, [D], wrong=wrong, finite=False)


def _pairs(rng):
    models = _some_models(rng, 3)
    function = pick(
        rng,
        [
            *(sk.pairwise_hmm_distances, sk.pairwise_hmm_components, sk.hmm_distance),
            *(sk.register_states, sk.distances.pairwise_hmm_distances_chunked),
        ],
    )
    known = inspect.signature(function).parameters
    metric = pick(rng, [*METRICS])
    params, fault = drawn_params(rng, METRICS[metric], wrong=rng.random() < 0.5)
    is_single = "a" in known
    good = [models[0]] if is_single else [models, models[:1]]
    bad = [3, None, "x", [], models[:0], [models], np.eye(3)]
    bad += [models] if is_single else []
    first, second = ("a", "b") if is_single else ("X", "Y")
    given = {
        first: _values(rng, good, bad, 0.1),
        second: _values(rng, good, [b for b in bad if b is not None], 0.1),
        "metric": (metric, False),
        "metric_params": (params, fault is not None),
        "p": _values(rng, [None, 1, 2], [0, 3, "x", np.nan, True], 0.1),
    }
    if "alpha" in known:
        given["alpha"] = _values(rng, [None, 0.5], [-1, 2, "x", np.nan, True], 0.1)
    if "n_jobs" in known:
        given["n_jobs"] = _values(rng, [None, 2], [0, 1.5, "x", True], 0.1)
        given["verbose"] = _values(rng, [0], [-1, "x", None, 2.5], 0.1)
    if "max_memory" in known:
        given["max_memory"] = _values(rng, [1.0], [0, -1, "x", np.nan, None], 0.2)
    if "dtype" in known:
        given["dtype"] = _values(
            rng, [np.float64, "f4"], [int, "x", complex, "M8"], 0.2
        )
        given["out"] = _values(
            rng, [None], [3, [], np.zeros((1, 2, 3)), "/no/where"], 0.2
        )
    values, wrong = _finished(given)
    is_object = rng.random() < 0.3

    def called(**values):
        if is_object:
            values["metric"] = CLASSES[metric](**values["metric_params"])
            values["metric_params"] = None
        found = function(**values)
        return [*found] if "max_memory" in known else found

    called.__name__ = function.__name__
    trial = _called(called, values, [models], wrong=wrong, finite=metric != "kl")
    trial.names |= arguments_of(function) | {*METRICS[metric]}
    trial.text += f", {params}"
    return trial


def _explanation(rng):
    X = plain_sequences(rng, n_sequences=6)
    view = [("x", sk.HMMEmbedding((1,), random_state=0))]
    model = sk.classification.HMMViewClassifier(
        view, cv=2, gammas=(0.0,), penalties=(1.0,)
    )
    model.fit(X, np.arange(6) % 2)
    given = {
        "estimator": _values(rng, [model], [3, None, clone(model)], 0.1),
        "X": _values(rng, [X, X[:1]], [3, None, [], "x"], 0.1),
        "by": _values(rng, ["view", ("view", "block")], ["x", (), 3, ("x",)]),
        "label": _values(rng, [None, 0, 1], ["x", 2, []]),
        "max_groups": _values(rng, [1, 20], [0, -1, 2.5, "x", None]),
    }
    values, wrong = _finished(given)

    def called(**values):
        with closed_figures():
            return sk.plot.ExplanationDisplay.from_estimator(**values).explanation

    trial = _called(called, values, [X], wrong=wrong)
    trial.names |= {*given}
    trial.text = f"ExplanationDisplay.from_estimator({shown(values)})"
    return trial


def _makers(rng):
    function = pick(
        rng, [sk.make_classifier, sk.make_regressor, sk.classification.make_views]
    )
    names = inspect.signature(function).parameters
    table = {
        "emission": (["gaussian", "categorical"], ["x", 3, None]),
        "cv": ([2, 5], [1, "x", 2.5, None]),
        "random_state": SEEDS,
        "n_jobs": ([None], [0, "x", 1.5]),
    }
    given = {key: _values(rng, *table[key]) for key in names if key in table}
    values, wrong = _finished(given)
    X = plain_sequences(rng, n_sequences=6)

    def called(**values):
        made = function(**values)
        if function is sk.classification.make_views or wrong is None:
            return type(made).__name__
        return made.fit(X, np.arange(6) % 2)

    called.__name__ = function.__name__
    is_lazy = function is sk.classification.make_views
    trial = _called(called, values, [X], wrong=None if is_lazy else wrong)
    trial.names |= arguments_of(function)
    return trial


def _reading(rng):
    """Draw a table and columns of it for `as_sequences`."""
    n = int(rng.integers(1, 9))
    columns = {
        "id": np.arange(n) // 3,
        "t": np.arange(n),
        "x": rng.normal(size=n),
        "z": rng.normal(size=n),
        "label": np.array(["a", "b"])[(np.arange(n) // 3) % 2],
    }
    form = pick(rng, ["dict", "pandas", "polars", "arrow", "structured", "array"])
    data = {**columns}
    if form == "pandas":
        import pandas as pd

        data = pd.DataFrame(columns)
    elif form == "polars":
        import polars as pl

        data = pl.DataFrame(columns)
    elif form == "arrow":
        import pyarrow as pa

        data = pa.table(columns)
    elif form == "structured":
        kinds = [(key, value.dtype) for key, value in columns.items()]
        data = np.array([*zip(*columns.values(), strict=True)], dtype=kinds)
    elif form == "array":
        data = np.stack([columns["x"], columns["z"]], axis=1)
    odd = ["none", 3, ["id", "none"], {}, np.nan, [], True, ("id",), [["x"]], "x"]
    given = {
        "id": pick(rng, ["id", "id", None, ["id"], *odd]),
        "time": pick(rng, ["t", "t", None, *odd]),
        "channels": pick(rng, [None, "x", ["x", "z"], *odd]),
        "labels": pick(rng, [None, "label", *odd]),
        "lengths": pick(rng, [None] * 12 + [[n], [1] * n, 3, "x", [-1], [0.5], [n, 0]]),
        "layout": pick(rng, ["time_first"] * 6 + ["channels_first", "x", None, 3]),
    }
    return _called(
        sk.as_sequences,
        {"data": data, **given},
        [data],
        finite=False,
        extra={"column", "columns", "Columns"},
    )


FUNCTIONS = {
    "mfcc": _mfcc,
    "hmm_group_test": _group_test,
    "state_effects": _effects,
    "distance_interval": _interval,
    "stability_curve": _stability,
    "dynamics_gain": _dynamics,
    "retrieval": _retrieval,
    "pairs": _pairs,
    "explanation": _explanation,
    "makers": _makers,
    "as_sequences": _reading,
}
