"""Names of arguments, one of which an error must name."""

import inspect

from skawhmm import HMMBatch


def arguments_of(*functions):
    """Return the names of all arguments of functions."""
    names = set()
    for function in functions:
        names |= inspect.signature(function).parameters.keys()
    return (names - {"self", "args", "kwargs"}) | {"metric_params"}


SEQUENCES = {"X", "y", "sequences", "data"}
FITTED = {"X", "y", "n_neighbors", "radius", "mode", "return_distance"}
MODELS = arguments_of(HMMBatch) | {
    *("emissionprobs", "rates", "cost", "states", "symbols", "symbol_costs", "models"),
}
