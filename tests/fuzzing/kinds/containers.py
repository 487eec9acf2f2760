"""Sequences in a random container, and something that reads it."""

from fuzzing.draw import container, pick
from fuzzing.judge import MISREAD, Trial, check_same
from fuzzing.names import SEQUENCES
from fuzzing.uses import KEEP_NAN, USES

# Uses that read more forms than estimators do: named rows, and strings as symbols.
READERS = {"as_sequences"}
# Forms in which strings are symbols, or which hold named rows.
READABLE = {"strings", "text among numbers", "one structured", "structured", "text"}


def trial(rng):
    """Draw sequences in a random container, and something that reads it."""
    box = container(rng)
    name = pick(rng, [*USES])
    use = USES[name]
    wrong = None if name in READERS and box.text in READABLE else box.wrong
    must = f"{box.text} is a documented form" if box.must else None

    def verify(result):
        if box.wrong is not None:
            return
        check_same(result, use(box.plain), "read as a plain list", MISREAD)

    return Trial(
        f"{name} of {box.text}",
        lambda: use(box.value),
        [box.value] if box.lasting else [],
        SEQUENCES,
        verify,
        finite=name not in KEEP_NAN,
        wrong=wrong and f"{name} of {wrong}",
        must=must,
    )
