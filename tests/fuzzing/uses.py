"""Uses of sequences, matrices and the arguments of models."""

import contextlib

import numpy as np
from scipy import sparse
from sklearn.base import clone

import skawhmm as sk
from skawhmm import HMMBatch, HMMTransformer


def used(estimator, X, y):
    """Return the output of a fitted estimator for new sequences."""
    fitted = estimator.fit(X, y)
    for member in ("transform", "predict_proba", "predict", "kneighbors"):
        if hasattr(fitted, member):
            return getattr(fitted, member)(X)
    return fitted.kneighbors_graph(X)


def built(maker, given):
    """Return models made by a class method, or by the constructor if it is None."""
    return HMMBatch(**given) if maker is None else getattr(HMMBatch, maker)(**given)


def trimmed(model):
    """Return the parameters of a model without its padding."""
    size = int(model.n_components[0])
    arrays = {name: a[0, :size] for name, a in model.emission.parameters.items()}
    for name in ("weights", "startprobs"):
        arrays[name] = getattr(model, name)[0, :size]
    return {**arrays, "transmats": model.transmats[0, :size, :size]}


@contextlib.contextmanager
def closed_figures():
    """Draw without a screen, and close all figures at the end."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    try:
        yield
    finally:
        plt.close("all")


def _labels(X):
    # Anything without a length is rejected, whatever the labels are.
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
    step = sk.features.HMMClassDistance(hmm=HMMTransformer(1, random_state=0))
    return step.fit(X, _labels(X)).transform(X)


def _scores(X):
    # Anything that cannot be indexed is rejected, whatever the models are.
    is_list = isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.ndim)
    shape = getattr(X[0], "shape", ()) if is_list and len(X) else ()
    # There are no models without channels: models of one channel reject such sequences.
    d = max(shape[-1], 1) if len(shape) == 2 else 1
    models = HMMBatch(np.full((1, 2, 2), 0.5), np.zeros((1, 2, d)), np.ones((1, 2, d)))
    return models.score(X), models.decode(X), models.predict_proba(X)


def _views(X):
    view = [("x", sk.HMMEmbedding((1,), random_state=0))]
    model = sk.classification.HMMViewRegressor(
        view, cv=2, gammas=(0.0,), penalties=(1.0,)
    )
    return model.fit(X, _labels(X) / 2.0).predict(X)


USES = {
    "HMMTransformer": _fit_transform(HMMTransformer(2, random_state=0)),
    "HMMTransformer, full": _fit_transform(HMMTransformer(2, "full", random_state=0)),
    "Delays": _changed(sk.sequences.Delays(1)),
    "Deltas": _changed(sk.sequences.Deltas(1)),
    "TimeChannel": _changed(sk.sequences.TimeChannel()),
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
# Results of these may have missing values where the input has them.
KEEP_NAN = {"Delays", "Deltas", "TimeChannel", "Framewise", "as_sequences"}
