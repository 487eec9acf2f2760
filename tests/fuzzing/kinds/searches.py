"""Models and a search, which must agree with a full search."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import clone

import skawhmm as sk
from fuzzing.draw import gaussian_arguments, pick
from fuzzing.judge import Trial, check_same
from fuzzing.names import MODELS, arguments_of
from fuzzing.params import METRICS, drawn_metric, drawn_mixture, shown
from skawhmm import HMMBatch
from skawhmm.neighbors import HMMShards


def trial(rng):
    """Draw models and a search, which must agree with a full search."""
    given, text = gaussian_arguments(rng, largest=20)
    n = int(rng.integers(6, 30))
    m, d = given["means"].shape[1:]
    given = {
        "transmats": rng.dirichlet(np.ones(m), size=(n, m)),
        "means": np.resize(given["means"], (n, m, d))
        + 0.1 * rng.integers(0, 3, (n, 1, d)),
        "covars": np.resize(given["covars"], (n, *given["covars"].shape[1:])),
    }
    if rng.random() < 0.5:
        weights = rng.dirichlet(np.ones(m), size=n)
        given["weights"] = weights
    metric, params = drawn_metric(rng, ("maw", "jaw", "coupling", "mmd", "iaw"))
    # It takes up to a tenth of a second per pair.
    params = {k: v for k, v in params.items() if v != "sinkhorn"}
    settings = {"metric": metric, "metric_params": params}
    settings |= drawn_mixture(rng, metric)
    k = int(rng.integers(1, 6))
    radius = pick(rng, [0.0, 1.0, 5.0, 1e30])
    search = sk.HMMRetriever(k, **settings, algorithm=pick(rng, ["auto", "pruned"]))
    brute = sk.HMMRetriever(k, **settings, algorithm="brute")
    built: dict = {}

    def found(retriever):
        models = built["models"]
        retriever = clone(retriever).fit(models)
        return (
            retriever.kneighbors(models[:4]),
            retriever.kneighbors(),
            [
                np.sort(rows)
                for rows in retriever.radius_neighbors(models[:4], radius)[1]
            ],
        )

    def in_shards():
        models, cut = built["models"], n // 2
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, name) for name in ("one.npz", "two.npz")]
            for part, path in zip((models[:cut], models[cut:]), paths, strict=True):
                clone(search).fit(part).save(path)
            return HMMShards(paths).kneighbors(models[:4])

    def agree(result):
        expected = found(brute)
        check_same(result, expected, f"search by {metric}")
        # What MMD learns from the models of one file is not what it learns from all.
        if metric != "mmd":
            check_same(in_shards(), expected[0], f"shards by {metric}")

    def call():
        built["models"] = HMMBatch(**given)
        return found(search)

    return Trial(
        f"search {k} of {n}, {shown(settings)}; {text}",
        call,
        [given],
        MODELS | arguments_of(sk.HMMRetriever, search.kneighbors) | {*METRICS[metric]},
        agree,
    )
