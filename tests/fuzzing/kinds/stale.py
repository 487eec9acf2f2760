"""A fitted estimator with a parameter that is made wrong before its use."""

import numpy as np

from fuzzing.draw import pick, plain_sequences
from fuzzing.judge import Trial
from fuzzing.names import FITTED, PUBLIC, arguments_of
from fuzzing.params import known
from skawhmm import HMMTransformer


def trial(rng):
    """Draw a fitted estimator with a parameter that is made wrong before its use."""
    name = pick(
        rng,
        [
            *("HMMTransformer", "PairwiseHMMDistance", "HMMRetriever", "HMMKMedoids"),
            *("KNeighborsHMMClassifier", "HMMEmbedding", "HMMNoveltyDetector"),
            *(
                "HMMKMeans",
                "HMMClassDistance",
                "Delays",
                "Deltas",
                "TimeChannel",
                "HMMAligner",
            ),
        ],
    )
    kind = PUBLIC[name]
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
