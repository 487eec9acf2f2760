"""Training data that reappear as queries, and fits in other units."""

import numpy as np

from fuzzing.draw import pick, plain_sequences
from fuzzing.judge import PROPERTY, BreachError, Trial, check_same
from fuzzing.names import FITTED, arguments_of
from fuzzing.params import shown
from skawhmm import HMMNoveltyDetector, HMMTransformer
from skawhmm.emissions import Gaussian


def trial(rng):
    """Draw training data, and check results when they reappear as queries."""
    return pick(rng, [_novelty, _novelty, _other_units, _likelihoods])(rng)


def _known(rng, metric):
    """Return training data with copies among them, and the transformer for them."""
    X = plain_sequences(rng, n_sequences=8)
    X = [X[i] for i in rng.integers(0, 8, int(rng.integers(4, 16)))]
    hmm = HMMTransformer(int(rng.integers(1, 4)), random_state=pick(rng, [0, None]))
    if metric == "precomputed":
        levels = np.array([np.rint(x.mean()) for x in X])
        return np.abs(levels[:, None] - levels), None
    return (X, hmm) if rng.random() < 0.5 else (hmm.fit_transform(X), None)


def _novelty(rng):
    metric = pick(rng, ["jaw", "maw", "kl", "coupling", "mmd", "precomputed"])
    X, hmm = _known(rng, metric)
    settings = {"n_neighbors": int(rng.integers(1, 4)), "metric": metric}
    settings["false_alarm_rate"] = float(pick(rng, [0.05, 0.1, 0.25, 0.5, 0.9]))
    detector = HMMNoveltyDetector(**settings, hmm=hmm)

    def verify(result):
        labels, pvalues, known = result
        check_same(
            labels, np.where(known <= detector.false_alarm_rate, -1, 1), "labels"
        )
        check_same(pvalues, known, "p-values of training data as queries")
        check_same(detector.predict(X), labels, "fit_predict and predict")
        negative = detector.decision_function(X) < 0
        check_same(negative, labels == -1, "decisions and labels")

    return Trial(
        f"novelty among {len(X)} with copies, {shown(settings)}",
        lambda: (detector.fit_predict(X), detector.pvalues(X), detector.pvalues()),
        [X],
        FITTED | arguments_of(HMMNoveltyDetector),
        verify,
    )


def _drawn_fit(rng):
    settings = {
        "n_components": int(rng.integers(1, 4)),
        "emission": Gaussian(
            pick(rng, ["diag", "full", "spherical", "tied"]),
            reg_covar=pick(rng, [1e-4, 1e-8, 1e-12, 0.0]),
        ),
        pick(rng, ["init", "prior"]): "pooled",
    }
    return HMMTransformer(**settings, random_state=0), settings


def _other_units(rng):
    X = plain_sequences(rng, n_sequences=6)
    hmm, settings = _drawn_fit(rng)
    place = int(rng.integers(6))
    factor = 10.0 ** float(pick(rng, [-90, -30, -12, -6, 6, 12, 30, 90]))
    changed = [x * factor if i == place else x for i, x in enumerate(X)]
    others = [x for i, x in enumerate(X) if i != place]

    def verify(models):
        if factor > 1:
            rest = models[np.arange(6) != place]
            check_same(rest, hmm.fit_transform(others), "beside one in other units")

    return Trial(
        f"fit beside a sequence times {factor:g}, {shown(settings)}",
        lambda: hmm.fit_transform(changed),
        [X],
        FITTED | arguments_of(HMMTransformer),
        verify,
    )


def _likelihoods(rng):
    X = plain_sequences(rng)
    if rng.random() < 0.5:
        X = [np.column_stack([x, x[:, 0] * pick(rng, [1.0, 1e6])]) for x in X]
    hmm, settings = _drawn_fit(rng)

    def verify(models):
        found, scores = models.info["log_likelihood"], np.diagonal(models.score(X))
        # The score is infinite where variances cannot hold how little values differ.
        known = np.isfinite(scores)
        if not np.allclose(found[known], scores[known], rtol=1e-9, atol=1e-9):
            raise BreachError(PROPERTY, "log_likelihood differs from score")

    return Trial(
        f"log likelihoods of {shown(settings)}",
        lambda: hmm.fit_transform(X),
        [X],
        FITTED | arguments_of(HMMTransformer),
        verify,
    )
