"""Groups of sequences of one process that differ in length."""

import warnings

import numpy as np

import skawhmm as sk
from fuzzing.draw import pick
from fuzzing.judge import MISREAD, PROPERTY, BreachError, Trial, check_same
from skawhmm.fitting import MarkovChainTransformer

# Measures that come from counts, so that neither a prior nor the length enters them.
COUNTED = ("occupancy", "dwell_time", "visits", "transitions")
WARNING = "The groups differ in how much data"


def trial(rng):
    """Draw two groups of texts, and compare the states of their chains."""
    n_symbols = int(rng.integers(2, 5))
    sizes = rng.integers(3, 9, 2)
    shortest, longest = np.sort(rng.integers(2, 40, 2))
    lengths = np.repeat(pick(rng, [(shortest, longest), (longest, longest)]), sizes)
    group = np.repeat(["a", "b"], sizes)
    texts = [_text(rng, n_symbols, int(n)) for n in lengths]
    prior = pick(rng, [None, "pooled", 0.5, 10.0])
    given = {"measures": COUNTED, "n_permutations": 39, "random_state": 0}

    def compared(prior, order):
        models = _chains([texts[n] for n in order], prior)
        return sk.groups.state_effects(models, group[order], reference=None, **given)

    def call():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            effects = compared(prior, np.arange(len(texts)))
        return effects, any(WARNING in str(entry.message) for entry in caught)

    def verify(result):
        effects, warned = result
        _check_counts(effects.models, lengths)
        plain = compared(None, np.arange(len(texts)))
        check_same(
            dict(plain.columns), dict(effects.columns), "without prior", PROPERTY
        )
        turned = compared(prior, rng.permutation(len(texts)))
        for name in ("pvalue", "uncorrected"):
            check_same(
                turned.columns[name],
                effects.columns[name],
                f"{name}, other order",
                PROPERTY,
            )
        medians = [np.median(lengths[group == name]) for name in ("a", "b")]
        if warned and max(medians) <= 1.1 * min(medians):
            raise BreachError(MISREAD, "warning about amounts that are equal")
        if not warned and effects.amounts["n_timesteps"].differs:
            raise BreachError(MISREAD, "no warning about amounts that differ")

    return Trial(
        f"state_effects of {sizes.tolist()} texts of {shortest} and {longest} symbols, "
        f"prior={prior!r}",
        call,
        [texts, group],
        {"models", "groups"},
        verify,
        finite=False,
    )


def _text(rng, n_symbols, length):
    """Return a text in which symbols tend to be repeated."""
    codes = rng.integers(n_symbols, size=length)
    for t in np.flatnonzero(rng.random(length) < 0.4):
        codes[t] = codes[max(t - 1, 0)]
    return "".join("abcd"[k] for k in codes)


def _chains(texts, prior):
    hmm = MarkovChainTransformer("abcd", prior=prior)
    return hmm.fit_transform(texts)


def _check_counts(models, lengths):
    """Raise unless counts add up to the frames and steps of the data."""
    frames = models.counts.states.sum(axis=1)
    steps = models.counts.transitions.sum(axis=(1, 2))
    if not (np.allclose(frames, lengths) and np.allclose(steps, lengths - 1)):
        raise BreachError(PROPERTY, f"counts of {frames} frames and {steps} steps")
