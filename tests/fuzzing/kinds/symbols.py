"""Sequences of symbols or counts, and something that reads them."""

import numpy as np
from sklearn.base import clone

import skawhmm as sk
from fuzzing.draw import pick
from fuzzing.judge import MISREAD, Trial, check_same
from fuzzing.names import SEQUENCES, arguments_of
from skawhmm import HMMTransformer
from skawhmm.emissions import Poisson
from skawhmm.fitting import MarkovChainTransformer


def trial(rng):
    """Draw sequences of symbols or counts, and something that reads them."""
    n = int(rng.integers(1, 6))
    words = ["".join(rng.choice([*"abc"], int(rng.integers(1, 9)))) for _ in range(n)]
    codes = [np.frombuffer(word.encode(), np.uint8).astype(int) - 97 for word in words]
    forms, wrongs = _symbols(words, codes), _no_symbols(words, codes)
    name, wrong = pick(rng, [*forms]), None
    X = forms[name]
    if rng.random() < 0.4:
        name = pick(rng, [*wrongs])
        X, wrong = wrongs[name], name
    uses = {
        "HMMTransformer": HMMTransformer(2, emission="categorical", random_state=0),
        "chains": MarkovChainTransformer(),
        "smoothed chains": MarkovChainTransformer(prior="pooled"),
        "counts": HMMTransformer(2, emission=Poisson(), random_state=0),
        "NGrams": sk.features.NGrams(pick(rng, [1, 2]), sparse_output=False),
        "HMMEmbedding": sk.HMMEmbedding((1, 2), emission="categorical", random_state=0),
    }
    use = pick(rng, [*uses])
    estimator = uses[use]
    # Texts are not counts; booleans may be.
    fault = wrong if wrong not in {"bool", "matrix"} else None
    is_number = name in {"codes", "floats", "columns", "uint8"}
    is_plain = wrong is None and name != "gaps"

    def fitted(X):
        return clone(estimator).fit(X).transform(X)

    def verify(result):
        if is_plain:
            plain = codes if is_number else words
            check_same(fitted(plain), result, f"read as symbols ({name})", MISREAD)

    return Trial(
        f"{use} of {name} {X!r:.80}",
        lambda: fitted(X),
        [X] if name != "generator" else [],
        SEQUENCES | arguments_of(type(estimator)) - {"symbols"},
        verify,
        wrong=fault and f"{use} of {fault}",
        must=f"{name} are symbols" if is_plain and use != "counts" else None,
    )


def _symbols(words, codes):
    """Return forms in which words, or the indices of their letters, may be passed."""
    return {
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


def _no_symbols(words, codes):
    """Return something that is not a list of sequences of symbols."""
    return {
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
