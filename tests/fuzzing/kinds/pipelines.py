"""Degenerate sequences for any use of sequences."""

from fuzzing.draw import odd_sequences, pick
from fuzzing.judge import Trial, check_same
from fuzzing.names import SEQUENCES
from fuzzing.uses import KEEP_NAN, USES


def trial(rng):
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
        SEQUENCES | {"n_neighbors", "n_clusters"},
        verify,
        finite=name not in KEEP_NAN and name != "HMMBatch.score",
    )
