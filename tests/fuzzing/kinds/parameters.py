"""An estimator with random parameters, one of which may be wrong."""

import numpy as np
from sklearn.base import clone

import skawhmm as sk
from fuzzing.draw import pick, plain_sequences
from fuzzing.judge import Trial, check_same
from fuzzing.names import FITTED, PUBLIC, arguments_of
from fuzzing.params import OWN, drawn_params, known, plain, shown
from fuzzing.uses import used
from skawhmm import HMMTransformer


def trial(rng):
    """Draw an estimator with random parameters, one of which may be wrong."""
    name = pick(rng, [*OWN])
    kind = PUBLIC[name]
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
        if "random_state" in own and params.get("random_state") is None:
            return
        check_same(used(clone(estimator), X, y), result, "fitted twice")
        check_same(used(kind(**plain(params)), X, y), result, "numbers of Python")

    infinite = "kl" in str(params.get("metric"))
    return Trial(
        f"{name}({shown(params)})",
        lambda: used(kind(**params), X, y),
        [X, y, {k: v for k, v in params.items() if k != "views"}],
        arguments_of(kind, kind.fit).union(FITTED, *inner),
        verify,
        finite=not infinite,
        wrong=fault,
    )
