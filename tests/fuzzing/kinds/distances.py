"""Models and a distance, whose matrix must have the properties of the distance."""

import pickle

import numpy as np

import skawhmm as sk
from fuzzing.channels import family_arguments
from fuzzing.draw import discrete_arguments, gaussian_arguments, pick
from fuzzing.judge import NOT_FINITE, ORDER, PROPERTY, BreachError, Trial, check_same
from fuzzing.names import MODELS, arguments_of
from fuzzing.params import METRICS, drawn_metric, drawn_mixture, shown
from fuzzing.uses import built

# A distance of a model to itself may be this fraction of the size of its parameters:
# the cross term of full covariances has such rounding errors.
SELF_TOLERANCE = 1e-6
# Renamed states change the order of sums.
RENAMED_TOLERANCE = 1e-7


def _size(models):
    """Return the size of the parameters, in which distances are measured."""
    parameters = models.emission.parameters
    if models.emission.name == "gaussian":
        return np.abs(models.means).max() + np.sqrt(np.abs(models.covars).max())
    arrays = [np.abs(array).max() for array in parameters.values()]
    return 1 + max(arrays, default=0.0)


def _renamed(rng, models):
    """Return the models with their states in another order."""
    m = models.transmats.shape[1]
    order = rng.permutation(m)
    return models._changed(
        emission=models.emission.like(
            *(array[:, order] for array in models.emission.parameters.values()),
            observed=models.observed,
        ),
        transmats=models.transmats[:, order][:, :, order],
        weights=models.weights[:, order],
        startprobs=models.startprobs[:, order],
    )


def trial(rng):
    """Draw models and a distance, and check the properties of its matrix."""
    kind = rng.random()
    if kind < 0.5:
        maker, (given, text) = None, gaussian_arguments(rng)
    elif kind < 0.75:
        maker, (given, text) = "from_arrays", family_arguments(rng)
    else:
        maker, given, text = discrete_arguments(rng)
    metric, params = drawn_metric(rng)
    settings = {"metric": metric, "metric_params": params}
    settings |= drawn_mixture(rng, metric)
    kept: dict = {}

    def call():
        kept["models"] = built(maker, given)
        return sk.pairwise_hmm_distances(kept["models"], **settings)

    def verify(matrix):
        models = kept["models"]
        exact = metric in {"maw", "jaw", "coupling", "mmd"}
        size = _size(models)
        if metric == "mmd" or params.get("rows") == "hellinger":
            # These are measured between probabilities.
            size = max(size, 1.0)
        _check_matrix(matrix, size, settings, zero=exact)
        _check_one_property(rng, models, matrix, settings, size if exact else None)

    return Trial(
        f"distances {shown(settings)} of {text}",
        call,
        [given, settings],
        MODELS | arguments_of(sk.pairwise_hmm_distances) | {*METRICS[metric]},
        verify,
        finite=metric != "kl",
    )


def _check_matrix(matrix, size, settings, *, zero):
    if np.isnan(matrix).any():
        raise BreachError(NOT_FINITE, "NaN among the distances")
    params = settings["metric_params"]
    is_signed = params.get("debias") or not params.get("symmetric", True)
    is_signed |= settings["metric"] == "kl"
    if (matrix < 0).any() and not is_signed:
        raise BreachError(PROPERTY, f"negative distance {matrix.min():.3g}")
    if params.get("symmetric", True) and not np.array_equal(matrix, matrix.T):
        raise BreachError(PROPERTY, "not symmetric")
    if zero:
        own = np.abs(np.diag(matrix)).max()
        if own > SELF_TOLERANCE * size:
            raise BreachError(
                PROPERTY, f"distance of a model to itself {own:.3g} of size {size:.3g}"
            )


def _check_one_property(rng, models, matrix, settings, size):
    n = len(models)
    i, j = (int(k) for k in rng.integers(n, size=2))
    claim = pick(rng, ["pair", "twice", "jobs", "order", "copy", "renamed", "chunks"])
    if claim == "pair" and settings["metric"] != "mmd":
        alone = sk.hmm_distance(models[i], models[j], **settings)
        check_same(alone, matrix[i, j], f"a pair alone ({settings['metric']})")
    elif claim == "twice":
        check_same(sk.pairwise_hmm_distances(models, **settings), matrix, "twice")
    elif claim == "jobs":
        found = sk.pairwise_hmm_distances(models, **settings, n_jobs=2)
        check_same(found, matrix, "two jobs")
    elif claim == "order":
        order = rng.permutation(n)
        found = sk.pairwise_hmm_distances(models[order], **settings)
        tolerance = 1e-12 if settings["metric"] == "mmd" else 0.0
        check_same(
            found, matrix[np.ix_(order, order)], "another order", tolerance=tolerance
        )
    elif claim == "copy":
        copied = pickle.loads(pickle.dumps(models))
        check_same(sk.pairwise_hmm_distances(copied, **settings), matrix, "pickled")
    elif claim == "renamed" and size is not None and models.emission.name != "custom":
        found = sk.pairwise_hmm_distances(_renamed(rng, models), **settings)
        gap = np.abs(found - matrix).max()
        if gap > RENAMED_TOLERANCE * size:
            raise BreachError(
                ORDER, f"renamed states change {settings['metric']} by {gap:.3g}"
            )
    elif claim == "chunks" and settings["metric"] != "mmd":
        rows = sk.distances.pairwise_hmm_distances_chunked(
            models, **settings, max_memory=1e-4
        )
        check_same(np.vstack([block for _, block in rows]), matrix, "in chunks")
