"""A display with random arguments, which is plotted."""

import numpy as np

import skawhmm as sk
from fuzzing.draw import pick, power
from fuzzing.judge import Trial
from fuzzing.names import PUBLIC, arguments_of
from fuzzing.uses import closed_figures


def trial(rng):
    """Draw the arguments of a display, and plot it."""
    n = int(rng.integers(0, 5))
    a, b, c = rng.random((3, n)) * power(rng, 30)
    square = rng.random((n, n))
    sizes = pick(rng, [[1, 2], [], [[1]], "x", 3])
    makers = {
        "AlphaCurveDisplay": lambda: sk.plot.AlphaCurveDisplay(a, square, a),
        "DistanceIntervalDisplay": lambda: sk.plot.DistanceIntervalDisplay(
            1, 1, 0, 2, a
        ),
        "DistanceMatrixDisplay": lambda: sk.plot.DistanceMatrixDisplay(square),
        "DynamicsGainDisplay": lambda: sk.plot.DynamicsGainDisplay(a, b, (-1e9, 1e9)),
        "EffectsDisplay": lambda: sk.plot.EffectsDisplay([*"abcde"[:n]], a, b, c, a),
        "GroupTestDisplay": lambda: sk.plot.GroupTestDisplay(1.0, a, 0.5),
        "HMMDisplay": lambda: sk.plot.HMMDisplay(square, a, b),
        "HMMMapDisplay": lambda: sk.plot.HMMMapDisplay(rng.random((n, 2))),
        "RegistrationDisplay": lambda: sk.plot.RegistrationDisplay(square),
        "RegistrationIntervalDisplay": lambda: sk.plot.RegistrationIntervalDisplay(
            square
        ),
        "RetrievalDisplay": lambda: sk.plot.RetrievalDisplay(a, b),
        "SequenceDisplay": lambda: sk.plot.SequenceDisplay(square, np.arange(n)),
        "StabilityDisplay": lambda: sk.plot.StabilityDisplay(sizes, a, b),
        "StateSummaryDisplay": lambda: sk.plot.StateSummaryDisplay(
            square, np.arange(n) % 2
        ),
        "TransitionGraphDisplay": lambda: sk.plot.TransitionGraphDisplay(
            square, square, a
        ),
    }
    name = pick(rng, [*makers])

    def call():
        with closed_figures():
            display = makers[name]()
            display.plot()
            display.figure_.canvas.draw()
        return name

    return Trial(
        f"{name} of {n} values",
        call,
        [a, b, c, square],
        arguments_of(PUBLIC[name]),
    )
