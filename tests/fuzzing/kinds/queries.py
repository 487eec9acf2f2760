"""A search with odd arguments of the query."""

import numpy as np

from fuzzing.draw import pick, plain_sequences
from fuzzing.judge import Trial
from fuzzing.names import FITTED, PUBLIC
from fuzzing.params import shown
from skawhmm import HMMTransformer


def trial(rng):
    """Draw a search with odd arguments of the query."""
    name = pick(rng, ["HMMRetriever", "KNeighborsHMMClassifier", "HMMNoveltyDetector"])
    X = plain_sequences(rng, n_sequences=5, n_features=2)
    estimator = PUBLIC[name](2, hmm=HMMTransformer(1))
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
        f"{name}(2).{member}({shown(given)}), X of type {type(query).__name__}",
        lambda: getattr(estimator, member)(query, **given),
        [X],
        FITTED | {"n_neighbors"},
    )
