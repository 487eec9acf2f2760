"""Text models of ChromHMM as arrays by name."""

import numpy as np

from skawhmm.models._conversions import mark_states

# Keywords of lines, and how many numbers and names follow.
LINES = {"probinit": 2, "transitionprobs": 3, "emissionprobs": 5}
# A file with more states or marks than this is damaged.
MOST = 10_000


def chromhmm_arrays(text, where):
    """Return the arrays of a `model_*.txt` of ChromHMM, by our names.

    The first line has the numbers of states and marks, every other line one
    probability. States are numbered from 1, marks and their values from 0. Transitions
    that are not listed have probability 0.
    """
    lines = [line.split("\t") for line in text.splitlines()]
    size, n_marks = _sizes(lines, where)
    arrays = {
        "probinit": np.zeros(size),
        "transitionprobs": np.zeros((size, size)),
        "emissionprobs": np.zeros((size, n_marks, 2)),
    }
    marks: dict[int, str] = {}
    for number, (kind, *words) in enumerate(lines[1:], 2):
        if not kind and not words:
            continue
        place = f"line {number} of {where}"
        if LINES.get(kind.lower()) != len(words):
            raise ValueError(
                f"{place} must be one of {list(LINES)} and "
                f"{sorted({*LINES.values()})} words, as ChromHMM writes them, got "
                f"{' '.join([kind, *words])[:60]!r}."
            )
        array = arrays[kind.lower()]
        index = _index(words, array.shape, place)
        if len(index) == 3 and marks.setdefault(index[1], words[2]) != words[2]:
            raise ValueError(
                f"{place} must name mark {index[1]} as before, "
                f"{marks[index[1]]!r}, got {words[2]!r}."
            )
        array[index] = _number(float, words[-1], place)
    _check_complete(arrays["emissionprobs"], where)
    return {
        "transmats": arrays["transitionprobs"],
        "startprobs": arrays["probinit"],
        **mark_states(arrays["emissionprobs"][..., 1], where),
    }


def _sizes(lines, where):
    """Return the numbers of states and marks that the first line gives."""
    words = [*(lines[0] if lines else []), "", ""][:2]
    sizes = [int(word) if word.isdecimal() else 0 for word in words]
    if not all(0 < size <= MOST for size in sizes):
        raise ValueError(
            f"{where} must be a text model of ChromHMM, whose first line has the "
            f"numbers of states and marks, got {' '.join(words)[:60]!r}."
        )
    return sizes


def _index(words, shape, place):
    """Return the index of a probability; marks and values are numbered from 0."""
    chosen = words[:-1] if len(shape) < 3 else (words[0], words[1], words[3])
    firsts = (1,) * len(shape) if len(shape) < 3 else (1, 0, 0)
    index = [
        _number(int, word, place) - first
        for word, first in zip(chosen, firsts, strict=True)
    ]
    if any(not 0 <= k < length for k, length in zip(index, shape, strict=True)):
        raise ValueError(
            f"{place} must count within {shape} states, marks and values, got "
            f"{' '.join(words)[:60]!r}."
        )
    return tuple(index)


def _number(kind, word, place):
    try:
        return kind(word)
    except ValueError as error:
        raise ValueError(f"{place} must hold numbers, got {word[:40]!r}.") from error


def _check_complete(probs, where):
    """Raise unless the probabilities of 0 and 1 sum to one for every mark."""
    sums = probs.sum(axis=2)
    wrong = np.argwhere(~(np.abs(sums - 1) <= 1e-6))
    if len(wrong):
        state, mark = map(int, wrong[0])
        raise ValueError(
            f"{where} must have emissionprobs that sum to one, got "
            f"{sums[state, mark]} in state {state + 1}, mark {mark}."
        )
