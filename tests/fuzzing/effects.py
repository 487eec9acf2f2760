"""Effects of parameters: what is called, in which contexts, and with which values.

A parameter that is set to a value other than its default must have an effect or raise
an error that names it. `SUBJECTS` has one entry per estimator and function; `VALUES`
has values of parameters; `SILENT` says why some of them may change nothing.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import skawhmm as sk
from fuzzing.effect_data import (
    HMM,
    OTHER,
    VIEW,
    chains,
    components,
    counts,
    cube,
    distances,
    drawn,
    few,
    frames,
    gaps,
    models,
    recording,
    signal,
    table,
    texts,
)
from fuzzing.effect_values import INSTEAD, silence, values_of
from fuzzing.judge import BreachError, check_same
from fuzzing.names import PUBLIC
from skawhmm import HMMBatch, HMMTransformer
from skawhmm.emissions import Categorical
from skawhmm.fitting import MarkovChainTransformer


@dataclass(frozen=True, eq=False)
class Context:
    """Data, and parameters that all calls in the context have."""

    data: Callable[..., Any]
    params: dict = field(default_factory=dict)

    def __str__(self):
        shown = (f"{key}={value!r:.30}" for key, value in self.params.items())
        return ", ".join([self.data.__name__, *shown])


@dataclass(frozen=True)
class Subject:
    """An estimator or function, and the contexts in which its parameters are set."""

    name: str
    contexts: tuple[Context, ...]
    # Takes data and parameters, and returns all that the parameters may change.
    call: Callable[..., Any]
    # Arguments that hold data.
    inputs: frozenset = frozenset()

    @property
    def parameters(self):
        """Names of the parameters."""
        known = inspect.signature(PUBLIC[self.name]).parameters
        return [name for name in known if name not in self.inputs]

    def default(self, name):
        """Return the default of a parameter."""
        return inspect.signature(PUBLIC[self.name]).parameters[name].default


# Methods that are called on fitted estimators.
MEMBERS = ("transform", "predict_proba", "predict", "pvalues", "kneighbors", "align")
LEARNED = (
    "labels_",
    "n_iter_",
    "scores_",
    "offset_",
    "view_weights_",
    "inner_score_",
    "pooled_model_",
)


def said(estimator, X):
    """Return the output of a fitted estimator, and its fitted attributes."""
    learned = {name: getattr(estimator, name, None) for name in LEARNED}
    return learned | asked(estimator, X)


def asked(estimator, queries):
    """Return the output of the methods of a fitted estimator."""
    found: dict[str, Any] = {}
    for name in MEMBERS:
        if hasattr(estimator, name):
            found[name] = getattr(estimator, name)(queries)
    if hasattr(estimator, "radius_neighbors"):
        found["near"] = estimator.radius_neighbors(queries)
    if hasattr(estimator, "get_feature_names_out"):
        found["names"] = estimator.get_feature_names_out()
    if isinstance(found.get("transform"), HMMBatch):
        models_ = found["transform"]
        found["carried"] = [
            *(models_.sequences or []),
            dict(models_.info),
            dict(models_.emission.extras),
        ]
    return found | {"types": [type(value).__name__ for value in found.values()]}


def metric_call(name):
    """Return a call that computes all distances by an object."""
    return lambda X, params: sk.pairwise_hmm_distances(X, metric=PUBLIC[name](**params))


def fitted(name):
    """Return a call that fits an estimator and calls its methods."""

    def call(X, params):
        estimator = PUBLIC[name](**params)
        y = np.arange(len(X)) % 2
        return said(estimator.fit(X, y), X)

    return call


def called(name, *inputs):
    """Return a call of a function with data, and further arguments."""

    def call(data, params):
        return PUBLIC[name](**dict(zip(inputs, data, strict=True)), **params)

    return call


CHAIN = MarkovChainTransformer()
OBJECTS = (sk.MAW(0.3), sk.KL(n_steps=30), sk.distances.MMD(order=1))
NAMES: dict[str, dict[str, Any]] = {
    "jaw": {},
    "iaw": {"metric_params": {"n_samples": 16}},
    "kl": {"metric_params": {"n_steps": 20}},
    "coupling": {},
    "mmd": {},
}


def metric_contexts(data=models, **params):
    """Return contexts with models and each distance."""
    return (
        Context(data, params),
        *(
            Context(data, {**params, "metric": name, **more})
            for name, more in NAMES.items()
        ),
        *(Context(data, {**params, "metric": metric}) for metric in OBJECTS),
    )


def plain_contexts(data=models, **params):
    """Return contexts of what has no `metric_params`."""
    contexts = metric_contexts(data, **params)
    return (*(c for c in contexts if "metric_params" not in c.params),)


def matrix_contexts(**params):
    """Return contexts with precomputed distances and components."""
    given = {**params, "metric": "precomputed"}
    return Context(distances, given), Context(components, {**given, "alpha": 0.3})


def neighbors(name, **params):
    """Return a nearest-neighbour estimator in all its contexts."""
    sequences = Context(frames, {**params, "hmm": HMM})
    takes_params = "metric_params" in inspect.signature(PUBLIC[name]).parameters
    metrics = metric_contexts if takes_params else plain_contexts
    contexts = *metrics(**params), sequences, *matrix_contexts(**params)
    return Subject(name, contexts, fitted(name))


def _cv_contexts():
    params = {"n_neighbors": (2, 3)}
    given = {**params, "metric": "precomputed"}
    return (
        *metric_contexts(**params),
        Context(frames, {**params, "hmm": HMM}),
        Context(distances, given),
        Context(components, given),
    )


def _view_contexts():
    few = {"cv": 2, "gammas": (0.0, 1.0), "random_state": 0}
    return (
        Context(frames, {**few, "views": [VIEW, OTHER]}),
        Context(frames, {**few, "views": [VIEW]}),
        Context(frames, {**few, "views": [VIEW, OTHER], "solver": "dual"}),
        Context(frames, {"cv": 2, "views": [VIEW, OTHER], "gammas": 0}),
        Context(
            frames, {"cv": 2, "views": [VIEW, OTHER], "solver": "primal", "gammas": 0}
        ),
    )


SEED = {"random_state": 0}
TEXT = {"emission": "categorical", "random_state": 0}
TRANSFORMER = (
    Context(frames, {"n_components": 2, **SEED}),
    Context(gaps, {"n_components": 2, **SEED}),
    Context(frames, {"n_components": "bic", **SEED}),
    Context(counts, {"n_components": 2, **SEED}),
    Context(frames, {"n_components": 2, "init": "pooled", **SEED}),
    Context(frames, {"n_components": 2, "prior": "pooled", **SEED}),
    Context(frames, {"n_components": 2, "engine": "hmmlearn", **SEED}),
    Context(texts, {"n_components": 2, **TEXT}),
    Context(texts, {"n_components": 2, "emission": Categorical("abcd"), **SEED}),
    Context(texts, {"n_components": 2, "prior": "pooled", **TEXT}),
    Context(counts, {"n_components": 2, "emission": "poisson", **SEED}),
)
CHAINS = (
    Context(texts, {"symbols": "abc"}),
    Context(texts, {"symbols": "abc", "prior": "pooled"}),
    Context(texts, {"symbols": "abc", "prior": 0.5}),
)
EMBEDDING = (
    Context(frames, {"n_components": (2, 3), **SEED}),
    Context(frames, {"n_components": (2, 3), "blocks": "transitions", **SEED}),
    Context(counts, {"n_components": (2, 3), **SEED}),
    Context(texts, {"n_components": (2, 3), **TEXT}),
    Context(counts, {"n_components": (2, 3), "emission": "poisson", **SEED}),
)


def _reference(rng):
    return models(rng)[0]


def _pair(rng):
    found = HMMTransformer(4, random_state=0, keep_sequences=True).fit_transform(
        frames(rng, 2, (60, 70))
    )
    return found[0], found[1]


def _alone(make):
    def data(rng):
        return (make(rng),)

    data.__name__ = make.__name__
    return data


def _labelled(make):
    def data(rng):
        found = make(rng)
        return found, np.arange(len(found)) % 2

    data.__name__ = make.__name__
    return data


def _function(name, inputs, *contexts):
    return Subject(name, contexts, called(name, *inputs), frozenset(inputs))


def _listed(name, inputs):
    call = called(name, *inputs)
    return lambda data, params: [*call(data, params)]


def _made(name):
    def call(X, params):
        made = PUBLIC[name](**params)
        made = (
            made
            if name != "make_views"
            else sk.classification.HMMViewClassifier(made, cv=2)
        )
        y = np.arange(len(X)) % 2
        return [len(made.fit(X, y).views_), made.predict(X), made.inner_score_]

    return call


PAIRS = (*(Context(_pair, c.params) for c in metric_contexts()),)
ALL = (*(Context(_alone(models), c.params) for c in metric_contexts()),)
AGGREGATED = (
    *(
        Context(_alone(models), params)
        for params in (
            {},
            {"metric": "iaw", **NAMES["iaw"]},
            {"metric": "jaw"},
            {"metric": sk.JAW(p=2)},
        )
    ),
)
SAME = Context(models), Context(models, {"registration": "identity"}), Context(chains)
FEW = {"n_permutations": 19, "random_state": 0}
RESAMPLED = {"n_resamples": 4, "random_state": 0}
LABELLED = _labelled(distances)
SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("HMMTransformer", TRANSFORMER, fitted("HMMTransformer")),
        Subject("MarkovChainTransformer", CHAINS, fitted("MarkovChainTransformer")),
        Subject(
            "PairwiseHMMDistance",
            (
                *metric_contexts(),
                *metric_contexts(output="kernel"),
                Context(models, {"output": "psd_kernel"}),
                Context(models, {"output": "components"}),
                Context(frames, {"hmm": HMM}),
                Context(chains, {"metric": "mmd"}),
            ),
            fitted("PairwiseHMMDistance"),
        ),
        Subject(
            "AlphaMixer",
            (Context(components), Context(distances)),
            fitted("AlphaMixer"),
        ),
        neighbors("KNeighborsHMMClassifier", n_neighbors=3),
        neighbors("KNeighborsHMMRegressor", n_neighbors=3),
        neighbors("HMMRetriever", n_neighbors=3),
        neighbors("HMMNoveltyDetector", n_neighbors=3, false_alarm_rate=0.3),
        Subject(
            "KNeighborsHMMClassifierCV",
            _cv_contexts(),
            fitted("KNeighborsHMMClassifierCV"),
        ),
        neighbors("HMMKMedoids", n_clusters=3),
        Subject(
            "HMMKMeans",
            (
                Context(models, {"n_clusters": 3, **SEED}),
                Context(models, {"n_clusters": 3, "init": "k-means++", **SEED}),
                Context(models, {"n_clusters": 3, "metric": "coupling", **SEED}),
                Context(models, {"n_clusters": 3, "metric": sk.JAW(p=2), **SEED}),
                Context(frames, {"n_clusters": 3, "hmm": HMM, **SEED}),
            ),
            fitted("HMMKMeans"),
        ),
        Subject(
            "HMMAligner",
            (
                Context(models, SEED),
                Context(frames, {"hmm": HMM, **SEED}),
                Context(models, {"reference": "medoid"}),
                Context(chains, {"reference": "medoid"}),
                Context(models, {"reference": models(np.random.default_rng(5))[0]}),
            ),
            fitted("HMMAligner"),
        ),
        Subject(
            "HMMClassDistance",
            (
                *(Context(frames, {**c.params, "hmm": HMM}) for c in plain_contexts()),
                Context(texts, {"hmm": CHAIN, "metric": "mmd"}),
            ),
            fitted("HMMClassDistance"),
        ),
        Subject("HMMEmbedding", EMBEDDING, fitted("HMMEmbedding")),
        Subject("HMMViewClassifier", _view_contexts(), fitted("HMMViewClassifier")),
        Subject("HMMViewRegressor", _view_contexts(), fitted("HMMViewRegressor")),
        Subject(
            "NGrams", (Context(texts), Context(texts, {"order": 1})), fitted("NGrams")
        ),
        Subject("Delays", (Context(frames),), fitted("Delays")),
        Subject("Deltas", (Context(frames),), fitted("Deltas")),
        Subject("TimeChannel", (Context(frames),), fitted("TimeChannel")),
        Subject("Framewise", (Context(frames),), fitted("Framewise")),
        *(
            Subject(name, contexts, metric_call(name))
            for name, contexts in {
                "MAW": SAME,
                "JAW": SAME,
                "IAW": (
                    Context(few, {"n_samples": 16}),
                    Context(few, {"coupling": "sinkhorn", "n_samples": 8}),
                ),
                "KL": (
                    Context(models, {"n_steps": 30}),
                    Context(models, {"method": "variational"}),
                    Context(models, {"method": "data"}),
                ),
                "TransitionCoupling": (Context(models), Context(chains)),
                "MMD": (Context(models), Context(chains)),
            }.items()
        ),
        _function("hmm_distance", ("a", "b"), *PAIRS),
        _function("pairwise_hmm_distances", ("X",), *ALL),
        Subject(
            "pairwise_hmm_distances_chunked",
            ALL,
            _listed("pairwise_hmm_distances_chunked", ("X",)),
            frozenset({"X"}),
        ),
        _function("pairwise_hmm_components", ("X",), *AGGREGATED),
        _function(
            "register_states",
            ("a", "b"),
            *(Context(drawn, c.params) for c in AGGREGATED),
        ),
        _function(
            "hmm_group_test",
            ("X", "groups"),
            *(
                Context(_labelled(models), {**c.params, **FEW})
                for c in plain_contexts()
            ),
            Context(LABELLED, FEW),
            Context(_labelled(components), {"alpha": 0.3, **FEW}),
            Context(_labelled(frames), {"refit": True, **FEW}),
            Context(_labelled(frames), {"match": "frames", **FEW}),
        ),
        _function(
            "state_effects", ("models", "groups"), Context(_labelled(models), FEW)
        ),
        _function(
            "distance_interval",
            ("a", "b"),
            *(Context(_pair, {**c.params, **RESAMPLED}) for c in plain_contexts()),
            Context(_pair, {"method": "block", **RESAMPLED}),
        ),
        _function(
            "registration_interval",
            ("a", "b"),
            Context(_pair, RESAMPLED),
            Context(_pair, {"method": "block", **RESAMPLED}),
        ),
        _function(
            "stability_curve",
            ("X",),
            *(
                Context(_alone(frames), {"n_components": (1, 2), **c.params, **SEED})
                for c in plain_contexts()
            ),
        ),
        _function(
            "dynamics_gain",
            ("X", "y"),
            Context(_labelled(frames), {"n_permutations": 1, "cv": 2}),
        ),
        _function(
            "as_sequences",
            ("data",),
            Context(_alone(table)),
            Context(_alone(table), {"id": "id"}),
            Context(_alone(table), {"id": "id", "time": "t"}),
            Context(_alone(frames)),
            Context(_alone(recording)),
            Context(_alone(cube)),
        ),
        _function(
            "hmm_barycenter",
            ("models",),
            Context(_alone(models), SEED),
            Context(_alone(models), {"registration": "identity"}),
        ),
        _function(
            "mfcc", ("signal", "sample_rate"), Context(lambda rng: (signal(rng), 2000))
        ),
        *(
            _function(name, ("distances", "y"), Context(LABELLED))
            for name in (
                *("average_precision", "precision_at_k", "retrieval_auc"),
                "retrieval_curve",
            )
        ),
        *(
            _function(name, ("models",), Context(_alone(models)))
            for name in ("state_table", "transition_table")
        ),
        *(
            Subject(name, (Context(frames, SEED),), _made(name))
            for name in ("make_classifier", "make_regressor", "make_views")
        ),
    )
}


def settings(subject):
    """Yield contexts, parameters and values that must have an effect or raise."""
    for context in subject.contexts:
        for name in subject.parameters:
            if silence(subject.name, name, context) is None:
                usual = context.params.get(name, subject.default(name))
                values = values_of(subject.name, name)
                yield context, name, [value for value in values if value is not usual]


def is_named(name, error):
    """Whether an error names a parameter, or the data that do not suit its value."""
    words = "|".join([name, *INSTEAD.get(name, ())])
    return re.search(rf"\b({words})(__\w+)?\b", str(error)) is not None


def effect(subject, context, name, value, data, usual):
    """Return "effect", "error" or "ignored"; another error is raised."""
    try:
        found = subject.call(data, {**context.params, name: value})
    except (TypeError, ValueError) as error:
        if not is_named(name, error):
            raise
        return "error"
    return "ignored" if is_same_result(found, usual) else "effect"


def is_same_result(one, two):
    """Whether two results are equal to the last bit."""
    try:
        check_same(one, two, "")
    except BreachError:
        return False
    return True


def refit(subject, context, name, value, data):
    """Return "effect", "error" or what is wrong with a parameter set after `fit`."""
    labels = np.arange(len(data)) % 2
    estimator = PUBLIC[subject.name](**context.params).fit(data, labels)
    fresh = PUBLIC[subject.name](**{**context.params, name: value})
    try:
        found = asked(estimator.set_params(**{name: value}), data)
    except (TypeError, ValueError) as error:
        if not is_named(name, error):
            raise
        return "error"
    try:
        wanted = asked(fresh.fit(data, labels), data)
    except (TypeError, ValueError) as error:
        return f"a new fit raises: {error}"
    return "effect" if is_same_result(found, wanted) else "neither"


ESTIMATORS = {
    name: subject for name, subject in SUBJECTS.items() if hasattr(PUBLIC[name], "fit")
}


def refits(subject):
    """Yield contexts, parameters and values to set after `fit`."""
    # Distances in between are all read in the same way.
    for context in dict.fromkeys(subject.contexts[:3] + subject.contexts[-3:]):
        for name in subject.parameters:
            usual = context.params.get(name, subject.default(name))
            for value in values_of(subject.name, name):
                if value is not usual:
                    yield context, name, value
