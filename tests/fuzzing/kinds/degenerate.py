"""Degenerate sequences, and a transformer that fits models to them."""

import pickle

import numpy as np
from sklearn.base import clone

from fuzzing.draw import odd_sequences, pick
from fuzzing.judge import NOT_FINITE, PROPERTY, BreachError, Trial, check_same
from fuzzing.names import arguments_of
from fuzzing.params import drawn_params, known
from fuzzing.uses import trimmed
from skawhmm import HMMTransformer

# Factor of the frames for models in other units.
UNIT = 2.0**12


def trial(rng):
    """Draw degenerate sequences and an estimator that fits models to them."""
    X, text = odd_sequences(rng)
    values = {
        key: (good, [])
        for key, (good, _) in known("HMMTransformer").items()
        if key not in {"emission", "verbose", "engine"}
    }
    params = {"random_state": 0, **drawn_params(rng, values, wrong=False)[0]}
    params["n_jobs"] = None
    hmm = HMMTransformer(**params)
    claim = pick(rng, ["twice", "order", "alone", "jobs", "scaled", "copy"])

    def verify(models):
        _check_proper(models)
        if claim == "twice":
            check_same(clone(hmm).fit(X).transform(X), models, "fitted twice")
        elif claim == "order":
            order = rng.permutation(len(X))
            fitted = clone(hmm).fit(X)
            check_same(
                fitted.transform([X[i] for i in order]), models[order], "another order"
            )
        elif claim == "alone":
            fitted = clone(hmm).fit(X)
            alone = [trimmed(fitted.transform([x])) for x in X]
            check_same(alone, [trimmed(m) for m in models], "fitted alone")
        elif claim == "jobs":
            check_same(
                clone(hmm).set_params(n_jobs=2).fit(X).transform(X), models, "two jobs"
            )
        elif claim == "scaled":
            _check_scaled(clone(hmm), X, models)
        elif claim == "copy":
            check_same(pickle.loads(pickle.dumps(models)), models, "pickled")

    return Trial(
        f"{hmm!r:.300} on {text}; property: {claim}",
        lambda: clone(hmm).fit(X).transform(X),
        [X],
        arguments_of(HMMTransformer, hmm.fit),
        verify,
    )


def _check_scaled(hmm, X, models):
    """Raise unless other units give the same models.

    A factor that is a power of two changes no digits. Values near the limits of the
    range, beyond which they are rejected or constant, are left out.
    """
    sizes = np.abs(np.concatenate([np.ravel(x) for x in X]).astype(float))
    sizes = sizes[sizes > 0]
    if sizes.size and not (sizes.min() > 1e-80 and sizes.max() < 1e80):
        return
    scaled = hmm.fit([np.asarray(x, float) * UNIT for x in X])
    found = scaled.transform([np.asarray(x, float) * UNIT for x in X])
    for name in ("transmats", "weights", "startprobs"):
        check_same(
            getattr(found, name), getattr(models, name), f"{name} in other units"
        )
    check_same(found.means / UNIT, models.means, "means in other units")
    check_same(found.covars / UNIT**2, models.covars, "covars in other units")


def _check_proper(models):
    """Raise unless models have probabilities, and log likelihoods that are numbers."""
    for name in ("transmats", "weights", "startprobs"):
        array = getattr(models, name)
        if (array < 0).any() or not np.allclose(array.sum(axis=-1), 1):
            raise BreachError(PROPERTY, f"{name} are not probabilities")
    if np.isnan(models.info["log_likelihood"]).any():
        raise BreachError(NOT_FINITE, "NaN in info['log_likelihood']")
