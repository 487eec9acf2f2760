"""A method of `HMMBatch`, or a function of models, with random arguments."""

import tempfile
from pathlib import Path

import numpy as np

import skawhmm as sk
from fuzzing.draw import gaussian_arguments, pick, plain_sequences
from fuzzing.judge import Trial, check_same
from fuzzing.names import MODELS
from skawhmm import HMMBatch, as_models


def trial(rng):
    """Draw a method of `HMMBatch` with random arguments."""
    given, text = gaussian_arguments(rng, largest=60)
    models = HMMBatch(**given)
    X = plain_sequences(rng, n_sequences=len(models), n_features=models.n_features)
    name = pick(rng, ["index", "sample", "score", "decode", "proba", "save", "join"])
    name = pick(rng, [name, name, "hmmlearn", "arrays", "table", "center", "register"])
    values = _arguments(rng, X)
    call, words = _calls(rng, models, given, **values)[name]

    def verify(result):
        if name == "save":
            check_same(result, models, "saved and loaded")
        if name == "sample":
            check_same(call(), result, "sampled twice")

    return Trial(
        f"{words} of {text}",
        call,
        [models, X],
        MODELS
        | {*("X", "index", "n_timesteps", "random_state", "n_components", "metric")}
        | {*("sample_weight", "batches", "models", "path", "mask", "reference", "key")}
        | {"HMMBatch", "max_iter", "a", "b"},
        verify,
        finite=name in {"sample", "center", "register", "save", "join"},
    )


def _arguments(rng, X):
    """Return an argument of each kind, right or wrong, by name."""
    n = len(X)
    keys = [
        *(0, -1, n, -n - 1, slice(None), slice(3, 1), slice("a", None), [0], []),
        *([True] * n, [True] * (n + 1), [False] * n, "a", 1.5, None, [[0]], ["a"]),
        *(np.array([], int), np.array([1.0]), (0, ...), (0, 0), {}, {0}, 2**70),
        *(np.array(0), np.array([0], np.uint8), [True, 0], [None], np.nan, ...),
    ]
    sequences = [X, X[:1], [X[0][:, :0]], 3, None, "abc", [], X[0]]
    sequences += [[x[:0] for x in X], [None]]
    weights = [None, [1] * n, [0] * n, [-1] * n, [1], "x", [np.nan] * n, 3]
    return {
        "key": pick(rng, keys),
        "sequences": pick(rng, sequences),
        "steps": pick(rng, [1, 5, 0, -1, 2.5, "x", None, [3], 10**3, np.nan, True]),
        "seed": pick(rng, [0, 1, -1, 2**32, 0.5, "x", 2**64, np.nan, [1], np.int8(3)]),
        "amount": pick(rng, [None, 1, 2, 0, -1, 2.5, "x", 50, np.nan]),
        "weights": pick(rng, weights),
        "metric": pick(rng, ["maw", "kl", "jaw", "iaw", "mmd", "coupling", 3]),
    }


def _calls(rng, models, given, *, key, sequences, steps, seed, amount, weights, metric):
    """Return every call with its words, by name."""
    return {
        "index": (lambda: models[key], f"models[{key!r}]"),
        "sample": (
            lambda: models.sample(steps, random_state=seed),
            f"sample({steps!r}, random_state={seed!r})",
        ),
        "score": (
            lambda: models.score(sequences),
            f"score({type(sequences).__name__})",
        ),
        "decode": (lambda: models.decode(sequences), "decode"),
        "proba": (lambda: models.predict_proba(sequences), "predict_proba"),
        "save": (lambda: _saved(models), "save and load"),
        "join": (
            lambda: HMMBatch.concatenate(
                pick(rng, [[models, models], [], [3], 3, None])
            ),
            "concatenate",
        ),
        "hmmlearn": (
            lambda: as_models([models.to_hmmlearn(key)]),
            f"to_hmmlearn({key!r})",
        ),
        "arrays": (
            lambda: HMMBatch.from_arrays(pick(rng, [[given], [], [{}], 3, None, [3]])),
            "from_arrays",
        ),
        "table": (
            lambda: (sk.groups.state_table(models), sk.groups.transition_table(models)),
            "tables",
        ),
        "center": (
            lambda: sk.hmm_barycenter(
                models, weights, n_components=amount, random_state=seed, max_iter=5
            ),
            f"hmm_barycenter({weights!r}, n_components={amount!r}, {seed!r})",
        ),
        "register": (
            lambda: sk.register_states(models[0], models[1], metric),
            f"register_states({metric!r})",
        ),
    }


def _saved(models):
    path = Path(tempfile.mkdtemp(prefix="fuzz")) / "models.npz"
    models.save(path)
    loaded = HMMBatch.load(path)
    path.unlink()
    path.parent.rmdir()
    return loaded
