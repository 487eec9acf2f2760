"""Kinds of cases: each draws a call and knows the laws that its result must obey."""

import inspect
import pickle
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import clone

import skawhmm as sk
from fuzzing.draw import (
    container,
    discrete_arguments,
    gaussian_arguments,
    odd_sequences,
    pick,
    plain_sequences,
    power,
    spoilt,
)
from fuzzing.judge import (
    LAW,
    MISREAD,
    NOT_FINITE,
    BreachError,
    Trial,
    check_same,
)
from fuzzing.params import CLASSES, METRICS, OWN, drawn_metric, drawn_params, known
from skawhmm import HMMBatch, HMMTransformer

# A distance of a model to itself may be this share of the size of its parameters: the
# cross term of full covariances has such a rounding.
SELF_TOLERANCE = 1e-6
# Renamed states change the order of sums.
RENAMED_TOLERANCE = 1e-7

X_NAMES = {"X", "y", "sequences", "data"}
FITTED = {"X", "y", "n_neighbors", "radius", "mode", "return_distance"}


def arguments_of(*functions):
    """Return the names of all arguments of functions."""
    names = set()
    for function in functions:
        names |= inspect.signature(function).parameters.keys()
    return (names - {"self", "args", "kwargs"}) | {"metric_params"}


# What is done with sequences


def _labels(X):
    # What has no length is refused whatever the labels are.
    has_length = isinstance(X, list | tuple) or getattr(X, "ndim", 0) > 0
    return np.arange(len(X) if has_length and not sparse.issparse(X) else 3) % 2


def _fit_transform(estimator):
    return lambda X: clone(estimator).fit_transform(X)


def _changed(estimator):
    """Return a step that changes sequences; arrays it returns are unpadded."""

    def use(X):
        found = clone(estimator).fit_transform(X)
        if isinstance(found, list):
            return found
        counts = [np.flatnonzero(~np.isnan(x).all(axis=1))[-1] + 1 for x in found]
        return [x[:count] for x, count in zip(found, counts, strict=True)]

    return use


def _knn(X):
    knn = sk.KNeighborsHMMClassifier(1, hmm=HMMTransformer(1, random_state=0))
    return knn.fit(X, _labels(X)).kneighbors(X)


def _class_distances(X):
    step = sk.HMMClassDistance(hmm=HMMTransformer(1, random_state=0))
    return step.fit(X, _labels(X)).transform(X)


def _scores(X):
    # What cannot be indexed is refused whatever the models are.
    is_list = isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.ndim)
    shape = getattr(X[0], "shape", ()) if is_list and len(X) else ()
    d = shape[-1] if len(shape) == 2 else 1
    models = HMMBatch(np.full((1, 2, 2), 0.5), np.zeros((1, 2, d)), np.ones((1, 2, d)))
    return models.score(X), models.decode(X), models.predict_proba(X)


def _views(X):
    view = [("x", sk.HMMEmbedding((1,), random_state=0))]
    model = sk.HMMViewRegressor(view, cv=2, gammas=(0.0,), alphas=(1.0,))
    return model.fit(X, _labels(X) / 2.0).predict(X)


USES = {
    "HMMTransformer": _fit_transform(HMMTransformer(2, random_state=0)),
    "HMMTransformer, full": _fit_transform(HMMTransformer(2, "full", random_state=0)),
    "Deltas": _changed(sk.Deltas(1)),
    "TimeChannel": _changed(sk.TimeChannel()),
    "Framewise": _changed(sk.Framewise()),
    "HMMEmbedding": _fit_transform(sk.HMMEmbedding((1, 2), random_state=0)),
    "PairwiseHMMDistance": _fit_transform(
        sk.PairwiseHMMDistance(hmm=HMMTransformer(1))
    ),
    "KNeighborsHMMClassifier": _knn,
    "HMMClassDistance": _class_distances,
    "HMMKMedoids": _fit_transform(sk.HMMKMedoids(2, hmm=HMMTransformer(1))),
    "HMMViewRegressor": _views,
    "as_sequences": lambda X: sk.as_sequences(X)[0],
    "HMMBatch.score": _scores,
}
# What the results of these hold may be missing as it was in the input.
KEEP_NAN = {"Deltas", "TimeChannel", "Framewise", "as_sequences"}
# What reads more forms than estimators do: named rows, and strings, which are symbols.
READERS = {"as_sequences"}
# Forms in which strings are symbols, or which hold named rows.
READABLE = {"strings", "text among numbers", "one structured", "structured", "text"}


def containers(rng):
    """Draw sequences in a random container, and something that reads it."""
    box = container(rng)
    name = pick(rng, [*USES])
    use = USES[name]
    wrong = None if name in READERS and box.text in READABLE else box.wrong
    must = f"{box.text} is a documented form" if box.must else None

    def verify(result):
        if box.wrong is not None:
            return
        check_same(result, use(box.plain), "read as a plain list", MISREAD)

    return Trial(
        f"{name} of {box.text}",
        lambda: use(box.value),
        [box.value] if box.lasting else [],
        X_NAMES,
        verify,
        finite=name not in KEEP_NAN,
        wrong=wrong and f"{name} of {wrong}",
        must=must,
    )


# Degenerate data


def _models_of(estimator, X):
    return clone(estimator).fit(X).transform(X)


def _peak(X):
    return max((np.nanmax(np.abs(x), initial=0.0) for x in X if x.size), default=0.0)


def degenerate(rng):
    """Draw degenerate sequences and an estimator that fits models to them."""
    X, text = odd_sequences(rng)
    values = {
        key: (good, [])
        for key, (good, _) in known("HMMTransformer").items()
        if key not in {"emission", "symbols", "symbol_costs", "verbose", "engine"}
    }
    params = {"random_state": 0, **drawn_params(rng, values, wrong=False)[0]}
    params["n_jobs"] = None
    hmm = HMMTransformer(**params)
    law = pick(rng, ["twice", "order", "alone", "jobs", "scaled", "copy", "proper"])

    def verify(models):
        _check_proper(models)
        if law == "twice":
            check_same(clone(hmm).fit(X).transform(X), models, "fitted twice")
        elif law == "order":
            order = rng.permutation(len(X))
            fitted = clone(hmm).fit(X)
            check_same(
                fitted.transform([X[i] for i in order]), models[order], "another order"
            )
        elif law == "alone":
            check_same(_alone(clone(hmm).fit(X), X), _alone_of(models), "fitted alone")
        elif law == "jobs":
            check_same(
                clone(hmm).set_params(n_jobs=2).fit(X).transform(X), models, "two jobs"
            )
        elif law == "copy":
            check_same(pickle.loads(pickle.dumps(models)), models, "pickled")

    return Trial(
        f"{hmm!r:.300} on {text}; law: {law}",
        lambda: _models_of(hmm, X),
        [X],
        arguments_of(HMMTransformer, hmm.fit),
        verify,
    )


def _alone(fitted, X):
    """Return the parameters of each model, fitted without the others."""
    return [_trimmed(fitted.transform([x])) for x in X]


def _alone_of(models):
    return [_trimmed(model) for model in models]


def _trimmed(model):
    size = int(model.n_components[0])
    arrays = {
        name: getattr(model, name)[0, :size]
        for name in ("weights", "startprobs", *model.emission.parameters)
    }
    return {**arrays, "transmats": model.transmats[0, :size, :size]}


def _check_proper(models):
    """Raise unless models have probabilities, and log likelihoods that are numbers."""
    for name in ("transmats", "weights", "startprobs"):
        array = getattr(models, name)
        if (array < 0).any() or not np.allclose(array.sum(axis=-1), 1):
            raise BreachError(LAW, f"{name} are no probabilities")
    if np.isnan(models.info["log_likelihood"]).any():
        raise BreachError(NOT_FINITE, "NaN in info['log_likelihood']")


def pipelines(rng):
    """Draw degenerate sequences for any use of sequences."""
    X, text = odd_sequences(rng)
    name = pick(rng, [*USES])
    use = USES[name]

    def verify(result):
        check_same(use([x.copy() for x in X]), result, "called twice")

    return Trial(
        f"{name} of {text}",
        lambda: use(X),
        [X],
        X_NAMES | {"n_neighbors", "n_clusters"},
        verify,
        finite=name not in KEEP_NAN and name != "HMMBatch.score",
    )


# Parameters


def _used(estimator, X, y):
    """Return what a fitted estimator says about new sequences."""
    fitted = estimator.fit(X, y)
    for member in ("transform", "predict_proba", "predict", "kneighbors"):
        if hasattr(fitted, member):
            return getattr(fitted, member)(X)
    return fitted.kneighbors_graph(X)


def parameters(rng):
    """Draw an estimator with random parameters, one of which may be wrong."""
    name = pick(rng, [*OWN])
    kind = getattr(sk, name)
    params, fault = drawn_params(rng, known(name), wrong=rng.random() < 0.5)
    defaults = {"n_neighbors": 2, "n_clusters": 2, "random_state": 0}
    defaults |= {"hmm": HMMTransformer(1), "cv": 2, "gammas": (0.0,)}
    defaults |= {"views": [("x", sk.HMMEmbedding((1,), random_state=0))]}
    own = kind().get_params(deep=False)
    params = {key: value for key, value in defaults.items() if key in own} | params
    if name == "HMMEmbedding":
        params.setdefault("n_components", (1, 2))
    X = plain_sequences(rng, n_sequences=6)
    if name == "NGrams":
        X = [np.rint(np.abs(x[:, 0])).astype(int) for x in X]
    y = np.arange(6) % 2
    inner = [arguments_of(HMMTransformer)] if "hmm" in own else []
    estimator = kind(**params)

    def verify(result):
        if own.keys() & {"random_state"} and params.get("random_state") is None:
            return
        check_same(_used(clone(estimator), X, y), result, "fitted twice")

    infinite = "kl" in str(params.get("metric"))
    return Trial(
        f"{name}({_shown(params)})",
        lambda: _used(kind(**params), X, y),
        [X, y, {k: v for k, v in params.items() if k != "views"}],
        arguments_of(kind, kind.fit).union(FITTED, *inner),
        verify,
        finite=not infinite,
        wrong=fault,
    )


def _shown(params):
    return ", ".join(f"{key}={value!r:.60}" for key, value in params.items())


def stale(rng):
    """Draw a fitted estimator with a parameter that is made wrong before its use."""
    name = pick(
        rng,
        [
            *("HMMTransformer", "PairwiseHMMDistance", "HMMRetriever", "HMMKMedoids"),
            *("KNeighborsHMMClassifier", "HMMEmbedding", "HMMNoveltyDetector"),
            *("HMMKMeans", "HMMClassDistance", "Deltas", "TimeChannel", "HMMAligner"),
        ],
    )
    kind = getattr(sk, name)
    own = kind().get_params(deep=False)
    start = {"n_neighbors": 2, "n_clusters": 2, "hmm": HMMTransformer(1)}
    start |= {"random_state": 0}
    start = {key: value for key, value in start.items() if key in own}
    if name == "HMMEmbedding":
        start["n_components"] = (1, 2)
    X = plain_sequences(rng, n_sequences=6)
    estimator = kind(**start).fit(X, np.arange(6) % 2)
    key = pick(rng, [k for k, (_, bad) in known(name).items() if bad])
    value = pick(rng, known(name)[key][1])

    def call():
        estimator.set_params(**{key: value})
        member = "transform" if hasattr(estimator, "transform") else "kneighbors"
        return getattr(estimator, member)(X)

    return Trial(
        f"{name} fitted, then {key}={value!r:.40}",
        call,
        [X],
        arguments_of(kind, kind.fit) | FITTED,
    )


def queries(rng):
    """Draw a search with odd arguments of the query."""
    name = pick(rng, ["HMMRetriever", "KNeighborsHMMClassifier", "HMMNoveltyDetector"])
    X = plain_sequences(rng, n_sequences=5, n_features=2)
    estimator = getattr(sk, name)(2, hmm=HMMTransformer(1))
    if rng.random() < 0.85:
        estimator.fit(X, np.arange(5) % 2)
    odd = [None, 1, 2, 4, 5, 6, 0, -1, 2.5, "few", np.nan, [], True, 10**9]
    member = pick(rng, ["kneighbors", "kneighbors_graph", "radius_neighbors"])
    if not hasattr(estimator, member):
        member = "kneighbors"
    amount = pick(rng, odd)
    amounts = {"radius_neighbors": "radius"}
    given = {amounts.get(member, "n_neighbors"): amount}
    if member == "kneighbors_graph":
        given["mode"] = pick(rng, ["connectivity", "distance", "other", None, 3])
    elif rng.random() < 0.3:
        given["return_distance"] = pick(rng, [True, False, "yes", None, 2])
    query = pick(rng, [None, X[:2], X, [X[0][:, :1]], X[0], [], "text", 3, [X]])
    return Trial(
        f"{name}(2).{member}({_shown(given)}), X of type {type(query).__name__}",
        lambda: getattr(estimator, member)(query, **given),
        [X],
        FITTED | {"n_neighbors"},
    )


# Models and distances


def _built(maker, given):
    return HMMBatch(**given) if maker is None else getattr(HMMBatch, maker)(**given)


MODEL_NAMES = arguments_of(HMMBatch) | {
    *("emissionprobs", "rates", "cost", "states", "symbols", "symbol_costs", "models"),
}


def spoilt_models(rng):
    """Draw the arguments of a batch, one of which is wrong."""
    if rng.random() < 0.6:
        maker, (given, text) = None, gaussian_arguments(rng, largest=100)
    else:
        maker, given, text = discrete_arguments(rng)
    if "symbol_costs" in given or "cost" in given:
        given = {k: v for k, v in given.items() if k != "symbol_costs"}
    given, fault = spoilt(rng, given)
    maybe = {"fewer models", "other shape", "objects", "number"}
    is_sure = fault.split(": ")[1] not in maybe
    return Trial(
        f"HMMBatch of {text}; {fault}",
        lambda: _built(maker, given),
        [given],
        MODEL_NAMES,
        wrong=fault if is_sure else None,
        finite=False,
    )


def _size(models):
    """Return the size of the parameters, in which distances are measured."""
    parameters = models.emission.parameters
    if "means" in parameters:
        return np.abs(models.means).max() + np.sqrt(np.abs(models.covars).max())
    if "rates" in parameters:
        return 1 + np.abs(models.rates).max()
    return 1.0


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


def distances(rng):
    """Draw models and a distance; the matrix obeys the laws of the distance."""
    is_gaussian = rng.random() < 0.7
    if is_gaussian:
        maker, (given, text) = None, gaussian_arguments(rng)
    else:
        maker, given, text = discrete_arguments(rng)
    metric, params = drawn_metric(rng)
    settings = {"metric": metric, "metric_params": params}
    settings |= {"alpha": pick(rng, [None, 0, 0.5, 1]), "p": pick(rng, [1, 1, 2, 0.5])}
    built: dict = {}

    def call():
        built["models"] = _built(maker, given)
        return sk.pairwise_hmm_distances(built["models"], **settings)

    def verify(matrix):
        models = built["models"]
        exact = metric in {"maw", "jaw", "coupling", "law"}
        size = _size(models)
        if metric == "law" or params.get("rows") == "hellinger":
            # These are measured between probabilities.
            size = max(size, 1.0)
        _check_matrix(matrix, size, settings, zero=exact)
        _check_one_law(rng, models, matrix, settings, size if exact else None)

    return Trial(
        f"distances {_shown(settings)} of {text}",
        call,
        [given, settings],
        MODEL_NAMES | arguments_of(sk.pairwise_hmm_distances) | {*METRICS[metric]},
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
        raise BreachError(LAW, f"negative distance {matrix.min():.3g}")
    if params.get("symmetric", True) and not np.array_equal(matrix, matrix.T):
        raise BreachError(LAW, "not symmetric")
    if zero:
        own = np.abs(np.diag(matrix)).max()
        if own > SELF_TOLERANCE * size:
            raise BreachError(
                LAW, f"distance of a model to itself {own:.3g} of size {size:.3g}"
            )


def _check_one_law(rng, models, matrix, settings, size):
    n = len(models)
    i, j = (int(k) for k in rng.integers(n, size=2))
    law = pick(rng, ["pair", "twice", "jobs", "order", "copy", "renamed", "chunks"])
    if law == "pair" and settings["metric"] != "law":
        alone = sk.hmm_distance(models[i], models[j], **settings)
        check_same(alone, matrix[i, j], f"a pair alone ({settings['metric']})")
    elif law == "twice":
        check_same(sk.pairwise_hmm_distances(models, **settings), matrix, "twice")
    elif law == "jobs":
        found = sk.pairwise_hmm_distances(models, **settings, n_jobs=2)
        check_same(found, matrix, "two jobs")
    elif law == "order":
        order = rng.permutation(n)
        found = sk.pairwise_hmm_distances(models[order], **settings)
        tolerance = 1e-12 if settings["metric"] == "law" else 0.0
        check_same(
            found, matrix[np.ix_(order, order)], "another order", tolerance=tolerance
        )
    elif law == "copy":
        copied = pickle.loads(pickle.dumps(models))
        check_same(sk.pairwise_hmm_distances(copied, **settings), matrix, "pickled")
    elif law == "renamed" and size is not None and not _is_ambiguous(models, settings):
        found = sk.pairwise_hmm_distances(_renamed(rng, models), **settings)
        gap = np.abs(found - matrix).max()
        if gap > RENAMED_TOLERANCE * size:
            raise BreachError(
                LAW, f"renamed states change {settings['metric']} by {gap:.3g}"
            )
    elif law == "chunks" and settings["metric"] != "law":
        rows = sk.pairwise_hmm_distances_chunked(models, **settings, max_memory=1e-4)
        check_same(np.vstack([block for _, block in rows]), matrix, "in chunks")


def _is_ambiguous(models, settings):
    """Whether values may depend on the order of states, as documented."""
    if models.emission.name == "custom":
        return True
    # Rows tell equal states apart, but their registration cannot.
    params = settings.get("metric_params") or {}
    if params.get("rows") != "hellinger" or models.emission.name != "gaussian":
        return False
    states = np.concatenate(
        [models.means, models.covars.reshape(*models.means.shape[:2], -1)], axis=2
    )
    return any(len(np.unique(s, axis=0)) < len(s) for s in states)


def searches(rng):
    """Draw models and a search; it finds what comparing all of them finds."""
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
    metric, params = drawn_metric(rng, ("maw", "jaw", "coupling", "law", "iaw"))
    # It takes up to a tenth of a second per pair.
    params = {k: v for k, v in params.items() if v != "sinkhorn"}
    settings = {"metric": metric, "metric_params": params}
    settings |= {"alpha": pick(rng, [None, 0, 0.5, 0.9]), "p": pick(rng, [1, 2])}
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

    def call():
        built["models"] = HMMBatch(**given)
        return found(search)

    return Trial(
        f"search {k} of {n}, {_shown(settings)}; {text}",
        call,
        [given],
        MODEL_NAMES
        | arguments_of(sk.HMMRetriever, search.kneighbors)
        | {*METRICS[metric]},
        lambda result: check_same(result, found(brute), f"search by {metric}"),
    )


# Methods of a batch


def methods(rng):
    """Draw a method of `HMMBatch` with random arguments."""
    given, text = gaussian_arguments(rng, largest=60)
    models = HMMBatch(**given)
    n, d = len(models), models.n_features
    X = plain_sequences(rng, n_sequences=n, n_features=d)
    odd = [
        X,
        X[:1],
        [X[0][:, :0]],
        3,
        None,
        "abc",
        [],
        X[0],
        [x[:0] for x in X],
        [None],
    ]
    name = pick(rng, ["index", "sample", "score", "decode", "proba", "save", "join"])
    name = pick(rng, [name, name, "hmmlearn", "arrays", "table", "center", "register"])
    key = pick(
        rng,
        [
            *(0, -1, n, -n - 1, slice(None), slice(3, 1), slice("a", None), [0], []),
            *([True] * n, [True] * (n + 1), [False] * n, "a", 1.5, None, [[0]], ["a"]),
            *(np.array([], int), np.array([1.0]), (0, ...), (0, 0), {}, {0}, 2**70),
            *(np.array(0), np.array([0], np.uint8), [True, 0], [None], np.nan, ...),
        ],
    )
    sequences = pick(rng, odd)
    steps = pick(rng, [1, 5, 0, -1, 2.5, "x", None, [3], 10**3, np.nan, True])
    seed = pick(rng, [0, 1, -1, 2**32, 0.5, "x", 2**64, np.nan, [1], np.int8(3)])
    amount = pick(rng, [None, 1, 2, 0, -1, 2.5, "x", 50, np.nan])
    weights = pick(rng, [None, [1] * n, [0] * n, [-1] * n, [1], "x", [np.nan] * n, 3])
    metric = pick(rng, ["maw", "kl", "jaw", "iaw", "law", "coupling", 3])
    calls = {
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
            lambda: HMMBatch.from_hmmlearn([models.to_hmmlearn(key)]),
            f"to_hmmlearn({key!r})",
        ),
        "arrays": (
            lambda: HMMBatch.from_arrays(pick(rng, [[given], [], [{}], 3, None, [3]])),
            "from_arrays",
        ),
        "table": (
            lambda: (sk.state_table(models), sk.transition_table(models)),
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
    call, words = calls[name]

    def verify(result):
        if name == "save":
            check_same(result, models, "saved and loaded")
        if name == "sample":
            check_same(models.sample(steps, random_state=seed), result, "sampled twice")

    return Trial(
        f"{words} of {text}",
        call,
        [models, X],
        MODEL_NAMES
        | {*("X", "index", "n_timesteps", "random_state", "n_components", "metric")}
        | {*("sample_weight", "batches", "models", "path", "mask", "reference", "key")}
        | {"HMMBatch", "max_iter", "a", "b"},
        verify,
        finite=name in {"sample", "center", "register", "save", "join"},
    )


def _saved(models):
    path = Path(tempfile.mkdtemp(prefix="fuzz")) / "models.npz"
    models.save(path)
    loaded = HMMBatch.load(path)
    path.unlink()
    path.parent.rmdir()
    return loaded


# Matrices of distances


def _matrix(rng):
    """Return a matrix, whether it must be refused, what it is, and its size."""
    n = int(rng.integers(2, 8))
    points = rng.normal(size=(n, 2))
    D = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
    hole = np.where(np.arange(n * n).reshape(n, n) == 1, np.nan, D)
    forms = {
        "plain": (D, False),
        "scaled": (D * power(rng), False),
        "near the largest float": (D / max(D.max(), 1) * 1.7e308, False),
        "infinite": (np.where(np.median(D) < D, np.inf, D), False),
        "all infinite": (np.full((n, n), np.inf), False),
        "zeros": (np.zeros((n, n)), False),
        "ties": (np.rint(D), False),
        "integers": (np.rint(D).astype(int), False),
        "float32": (D.astype(np.float32), False),
        "list": (D.tolist(), False),
        "not symmetric": (rng.random((n, n)), False),
        "components": (np.stack([D, D], axis=-1), False),
        "read-only Fortran": (_frozen(D), False),
        "one": (np.zeros((1, 1)), False),
        "empty": (np.empty((0, 0)), True),
        "NaN": (hole, True),
        "strings": (D.astype(str), True),
        "complex": (D + 1j, True),
        "dates": (np.rint(D).astype(int).astype("M8[s]"), True),
        "1-D": (D[0], True),
        "None": (None, True),
        "text": ("far", True),
        "negative": (-D, False),
        "objects": (D.astype(object), False),
        "rows missing": (D[:-1], False),
        "masked": (np.ma.array(D, mask=np.median(D) < D), False),
        "DataFrame": (_table(D), False),
        "bool": (D > 1, False),
        "4-D": (D[None, None], True),
        "ragged": ([[0.0, 1.0], [1.0]], True),
        "set": ({1.0, 2.0}, True),
        "dict": ({"a": 1}, True),
        "generator": ((row for row in D), True),
    }
    name = pick(rng, [*forms])
    return *forms[name], name, n


def _frozen(D):
    out = np.asfortranarray(D)
    out.flags.writeable = False
    return out


def _table(D):
    import pandas as pd

    return pd.DataFrame(D)


def _given_labels(rng, n):
    """Return labels, often good ones, and what they are."""
    y = np.arange(n) % 2
    odd = [y[:-1], y.astype(float), y.astype(str), [None] * n, np.full(n, np.nan), 5]
    odd += ["ab", y[:, None], [], y.astype(object), None, [[0, 1]] * n, {0, 1}, {}]
    odd += [np.arange(n) / 2, y.astype("M8[s]"), y + 0j, y > 0, np.zeros(n), [0, "a"]]
    return y if rng.random() < 0.6 else pick(rng, odd)


def _precomputed(kind, **params):
    def use(D, y):
        return _used(kind(metric="precomputed", **params), D, y)

    return use


def _mixer(D, y):
    return sk.AlphaMixer(0.3).fit(D).transform(D)


DISTANCE_USES = {
    "KNeighborsHMMClassifier": _precomputed(sk.KNeighborsHMMClassifier, n_neighbors=1),
    "KNeighborsHMMRegressor": _precomputed(sk.KNeighborsHMMRegressor, n_neighbors=1),
    "KNeighborsHMMClassifierCV": _precomputed(
        sk.KNeighborsHMMClassifierCV, n_neighbors=1
    ),
    "HMMRetriever": _precomputed(sk.HMMRetriever, n_neighbors=1),
    "HMMNoveltyDetector": _precomputed(sk.HMMNoveltyDetector, n_neighbors=1, level=0.5),
    "HMMKMedoids": _precomputed(sk.HMMKMedoids, n_clusters=2),
    "AlphaMixer": _mixer,
    "average_precision": sk.average_precision,
    "precision_at_k": sk.precision_at_k,
    "retrieval_auc": sk.retrieval_auc,
    "retrieval_curve": sk.retrieval_curve,
    "hmm_group_test": lambda D, y: sk.hmm_group_test(
        D, y, n_permutations=19, random_state=0
    ),
    "DistanceMatrixDisplay": lambda D, y: sk.DistanceMatrixDisplay.from_distances(
        D, y
    ).im_.get_array(),
    "HMMMapDisplay": lambda D, y: (
        sk.HMMMapDisplay.from_distances(D, y, method="mds").positions
    ),
    "HMMMapDisplay, tsne": lambda D, y: (
        sk.HMMMapDisplay.from_distances(D, y, method="tsne").positions
    ),
    "RetrievalDisplay": lambda D, y: sk.RetrievalDisplay.from_distances(D, y).precision,
}
# Their results may be NaN or infinite where there is nothing to say.
OPEN_RESULTS = {
    *("average_precision", "precision_at_k", "retrieval_auc", "retrieval_curve"),
    *("AlphaMixer", "HMMRetriever", "hmm_group_test", "RetrievalDisplay"),
    *("DistanceMatrixDisplay", "HMMKMedoids", "HMMNoveltyDetector"),
}


def matrices(rng):
    """Draw a matrix of distances and something that takes it."""
    D, is_wrong, text, n = _matrix(rng)
    y = _given_labels(rng, n)
    name = pick(rng, [*DISTANCE_USES])
    use = DISTANCE_USES[name]
    lasting = text != "generator"

    def verify(result):
        if lasting:
            check_same(use(D, y), result, "called twice")
        if text in {"float32", "list", "integers", "objects", "read-only Fortran"}:
            plain = np.array(D, dtype=np.float64)
            check_same(use(plain, y), result, f"read as float64 ({text})", MISREAD)

    return Trial(
        f"{name} of {text}, {n} items, y {y!r:.60}",
        lambda: use(D, y),
        [D, y] if lasting else [y],
        {"X", "y", "distances", "groups", "y_query", "n_neighbors", "n_clusters"}
        | {"level", "method"},
        verify,
        finite=name not in OPEN_RESULTS,
        # In a picture, what is missing has no colour.
        wrong=f"{name} of {text}"
        if is_wrong and (name, text) != ("DistanceMatrixDisplay", "NaN")
        else None,
    )


# Functions


def functions(rng):
    """Draw a public function with random arguments."""
    name = pick(rng, [*FUNCTIONS])
    return FUNCTIONS[name](rng)


def _called(function, given, inputs, *, wrong=None, finite=True, twice=True, extra=()):
    def verify(result):
        if twice:
            check_same(function(**given), result, "called twice")

    words = {
        key: value if np.isscalar(value) or value is None else type(value).__name__
        for key, value in given.items()
    }
    return Trial(
        f"{function.__name__}({_shown(words)})",
        lambda: function(**given),
        inputs,
        arguments_of(function) | {*extra},
        verify,
        finite=finite,
        wrong=wrong,
    )


def _values(rng, good, bad, chance=0.3):
    """Return a value, and whether it is wrong."""
    if rng.random() < chance:
        return pick(rng, bad), True
    return pick(rng, good), False


def _mfcc(rng):
    signal = rng.normal(size=int(rng.integers(1, 400))) * power(rng, 100)
    bad = ["abc", None, signal + 1j, signal[:0], [np.nan] * 50, [np.inf] * 50]
    bad += [signal[:, None, None], {}, [[1], [2, 3]], np.zeros(9, "M8[s]"), ["a"] * 9]
    table = {
        "signal": ([signal, signal.astype(np.float32), signal.tolist()], bad),
        "sample_rate": ([100, 8000.0], [0, -1, "x", None, np.nan, np.inf, True]),
        "n_coefficients": ([1, 5, 13], [0, 2.5, "x", None, 10**6, True]),
        "window": ([0.025, 0.2], [0, -1, "x", np.nan, None, np.inf]),
        "hop": ([0.01, 0.1], [0, -1, "x", np.nan, None, np.inf]),
        "n_filters": ([13, 26], [0, 2.5, "x", None, True]),
        "preemphasis": ([0, 0.97], ["x", np.nan, None, 1j]),
        "deltas": ([0, 1, 2], [-1, 2.5, "x", None]),
    }
    given = {key: pick(rng, good) for key, (good, _) in table.items()}
    wrong = None
    if rng.random() < 0.5:
        key = pick(rng, [*table])
        given[key] = pick(rng, table[key][1])
        wrong = f"{key}={given[key]!r:.30}"
    return _called(sk.mfcc, given, [signal], wrong=wrong)


def _some_models(rng, n=8):
    """Return models of fitted sequences: ordinary ones."""
    X = plain_sequences(rng, n_sequences=n, n_features=2)
    return HMMTransformer(2, random_state=0, keep_sequences=True).fit_transform(X)


SEEDS = ([0, 1, 2**32 - 1], ["now", -1, 0.5, 2**32, [1], np.nan])


def _group_arguments(rng, n):
    groups = _values(
        rng,
        [np.arange(n) % 2, list("ab" * (n // 2)), np.arange(n) % 3],
        [None, [0] * n, [0, 1], 3, "x", [[0]] * n, [np.nan] * n, [], {}, {1, 2}],
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
        "level": _values(rng, [0.95, 0.5], [0, 2, "x", None, np.nan]),
        "n_permutations": _values(rng, [9, 19], [0, -1, 2.5, "x", None]),
        "random_state": _values(rng, *SEEDS),
        "reference": _values(rng, ["barycenter"], ["x", 3]),
    }
    values, wrong = _finished(given)
    return _called(
        sk.state_effects,
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
        "level": _values(rng, [0.9, 0.5], [0, 2, "x", None, np.nan], 0.15),
        "random_state": _values(rng, *SEEDS),
    }
    values, wrong = _finished(given)
    return _called(
        sk.distance_interval,
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
        sk.stability_curve,
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
        "estimator": _values(rng, [knn], [3, "x", sk.NGrams], 0.2),
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
            *(sk.average_precision, sk.precision_at_k, sk.retrieval_auc),
            sk.retrieval_curve,
        ],
    )
    y = np.arange(n) % 2
    given = {
        "distances": (D, False),
        "y": _values(rng, [y, y.astype(str)], [y[:-1], 5, None, [[0]] * n, {}], 0.2),
        "y_query": _values(rng, [None, y], [5, y[:-1], "x", [[0]] * n, {}], 0.2),
    }
    if function is sk.precision_at_k:
        given["n_retrieved"] = _values(
            rng, [1, n - 1, n + 1], [0, -1, 2.5, "x", None], 0.2
        )
    if function is sk.retrieval_curve:
        given["n_levels"] = _values(rng, [2, 11], [0, 1, -1, 2.5, "x", None], 0.2)
    values, wrong = _finished(given)
    return _called(function, values, [D], wrong=wrong, finite=False)


def _pairs(rng):
    models = _some_models(rng, 3)
    function = pick(
        rng,
        [
            *(sk.pairwise_hmm_distances, sk.pairwise_hmm_components, sk.hmm_distance),
            *(sk.register_states, sk.pairwise_hmm_distances_chunked),
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
        "p": _values(rng, [1, 2], [0, 3, "x", np.nan, None, True], 0.1),
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
    model = sk.HMMViewClassifier(view, cv=2, gammas=(0.0,), alphas=(1.0,))
    model.fit(X, _labels(X))
    given = {
        "estimator": _values(rng, [model], [3, None, clone(model)], 0.1),
        "X": _values(rng, [X, X[:1]], [3, None, [], "x"], 0.1),
        "by": _values(rng, ["view", ("view", "block")], ["x", (), 3, ("x",)]),
        "label": _values(rng, [None, 0, 1], ["x", 2, []]),
        "max_groups": _values(rng, [1, 20], [0, -1, 2.5, "x", None]),
    }
    values, wrong = _finished(given)

    def called(**values):
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt

        try:
            return sk.ExplanationDisplay.from_estimator(**values).explanation
        finally:
            plt.close("all")

    trial = _called(called, values, [X], wrong=wrong)
    trial.names |= {*given}
    trial.text = f"ExplanationDisplay.from_estimator({_shown(values)})"
    return trial


def _makers(rng):
    function = pick(rng, [sk.make_classifier, sk.make_regressor, sk.make_views])
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
        if function is sk.make_views or wrong is None:
            return type(made).__name__
        return made.fit(X, np.arange(6) % 2)

    called.__name__ = function.__name__
    is_lazy = function is sk.make_views
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


# Symbols and counts


def symbols(rng):
    """Draw sequences of symbols or counts, and something that reads them."""
    n = int(rng.integers(1, 6))
    words = ["".join(rng.choice([*"abc"], int(rng.integers(1, 9)))) for _ in range(n)]
    codes = [np.frombuffer(word.encode(), np.uint8).astype(int) - 97 for word in words]
    forms = {
        "words": words,
        "lists": [[*word] for word in words],
        "codes": codes,
        "floats": [c.astype(float) for c in codes],
        "columns": [c[:, None] for c in codes],
        "uint8": [c.astype(np.uint8) for c in codes],
        "string arrays": [np.array([*word]) for word in words],
        "objects": [np.array([*word], object) for word in words],
        "tuples": [tuple(word) for word in words],
        "object array": np.array([*words, "a"], object)[:-1],
        "gaps": [np.where(np.arange(len(c)) == 1, np.nan, c) for c in codes],
    }
    wrongs = {
        "halves": [c + 0.5 for c in codes],
        "infinite": [np.append(np.inf, c) for c in codes],
        "mixed": [["a", 1], *words],
        "empty": ["", *words],
        "none": [],
        "one text": "abc",
        "bytes": [word.encode() for word in words],
        "complex": [c + 1j for c in codes],
        "dates": [c.astype("M8[s]") for c in codes],
        "NaN only": [[np.nan, np.nan]],
        "None": None,
        "number": 3,
        "dict": {"a": 1},
        "set": {"ab", "c"},
        "nested": [[["a"], ["b", "c"]]],
        "None member": [None, *words],
        "matrix": [np.zeros((3, 2), int)],
        "bool": [c > 0 for c in codes],
        "generator": (word for word in words),
    }
    name, wrong = pick(rng, [*forms]), None
    X = forms[name]
    if rng.random() < 0.4:
        name = pick(rng, [*wrongs])
        X, wrong = wrongs[name], name
    uses = {
        "HMMTransformer": HMMTransformer(2, emission="categorical", random_state=0),
        "chains": HMMTransformer("symbols", emission="categorical"),
        "smoothed chains": HMMTransformer(
            "symbols", emission="categorical", prior="pooled"
        ),
        "counts": HMMTransformer(2, emission="poisson", random_state=0),
        "NGrams": sk.NGrams(pick(rng, [1, 2]), sparse_output=False),
        "HMMEmbedding": sk.HMMEmbedding((1, 2), emission="categorical", random_state=0),
    }
    use = pick(rng, [*uses])
    estimator = uses[use]
    # Texts are no counts; true and false may be.
    fault = wrong if wrong not in {"bool", "matrix"} else None
    is_number = name in {"codes", "floats", "columns", "uint8", "gaps"}
    must = None
    if wrong is None and use != "counts" and name != "gaps":
        must = f"{name} are symbols"

    def fitted(X):
        return clone(estimator).fit(X).transform(X)

    def verify(result):
        if wrong is None and name != "gaps":
            plain = codes if is_number else words
            check_same(fitted(plain), result, f"read as symbols ({name})", MISREAD)

    return Trial(
        f"{use} of {name} {X!r:.80}",
        lambda: fitted(X),
        [X] if name != "generator" else [],
        X_NAMES | arguments_of(type(estimator)) - {"symbols"},
        verify,
        wrong=fault and f"{use} of {fault}",
        must=must,
    )


# Displays


def displays(rng):
    """Draw the arguments of a display, and plot it."""
    n = int(rng.integers(0, 5))
    a, b, c = rng.random((3, n)) * power(rng, 30)
    square = rng.random((n, n))
    sizes = pick(rng, [[1, 2], [], [[1]], "x", 3])
    makers = {
        "AlphaCurveDisplay": lambda: sk.AlphaCurveDisplay(a, square, a),
        "DistanceIntervalDisplay": lambda: sk.DistanceIntervalDisplay(1, 1, 0, 2, a),
        "DistanceMatrixDisplay": lambda: sk.DistanceMatrixDisplay(square),
        "DynamicsGainDisplay": lambda: sk.DynamicsGainDisplay(a, b, 0.1),
        "EffectsDisplay": lambda: sk.EffectsDisplay([*"abcde"[:n]], a, b, c, a),
        "GroupTestDisplay": lambda: sk.GroupTestDisplay(1.0, a, 0.5),
        "HMMDisplay": lambda: sk.HMMDisplay(square, a, b),
        "HMMMapDisplay": lambda: sk.HMMMapDisplay(rng.random((n, 2))),
        "RegistrationDisplay": lambda: sk.RegistrationDisplay(square),
        "RetrievalDisplay": lambda: sk.RetrievalDisplay(a, b),
        "SequenceDisplay": lambda: sk.SequenceDisplay(square, np.arange(n)),
        "StabilityDisplay": lambda: sk.StabilityDisplay(sizes, a, b),
        "StateSummaryDisplay": lambda: sk.StateSummaryDisplay(square, np.arange(n) % 2),
        "TransitionGraphDisplay": lambda: sk.TransitionGraphDisplay(square, square, a),
    }
    name = pick(rng, [*makers])

    def call():
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt

        try:
            display = makers[name]()
            display.plot()
            display.figure_.canvas.draw()
        finally:
            plt.close("all")
        return name

    return Trial(
        f"{name} of {n} values",
        call,
        [a, b, c, square],
        arguments_of(getattr(sk, name)),
    )


# Kinds and how often they are drawn.
KINDS = {
    "containers": (containers, 22),
    "degenerate": (degenerate, 12),
    "pipelines": (pipelines, 8),
    "parameters": (parameters, 13),
    "stale": (stale, 3),
    "queries": (queries, 3),
    "spoilt models": (spoilt_models, 5),
    "distances": (distances, 12),
    "searches": (searches, 4),
    "methods": (methods, 5),
    "matrices": (matrices, 8),
    "functions": (functions, 7),
    "symbols": (symbols, 5),
    "displays": (displays, 1),
}


def kind_of(seed, number):
    """Return the kind of a case."""
    weights = np.array([weight for _, weight in KINDS.values()], dtype=float)
    rng = np.random.default_rng([seed, number, 0])
    return [*KINDS][int(rng.choice(len(KINDS), p=weights / weights.sum()))]


def trial_of(seed, number):
    """Return the kind of a case and its trial."""
    name = kind_of(seed, number)
    return name, KINDS[name][0](np.random.default_rng([seed, number, 1]))
