"""Names of arguments, one of which an error must name."""

import inspect

import skawhmm
from skawhmm import HMMBatch
from skawhmm.emissions import Gaussian

# Every public name, whichever package it belongs to.
PUBLIC = {
    name: getattr(home, name)
    for home in (skawhmm, *(getattr(skawhmm, name) for name in skawhmm.PACKAGES))
    for name in home.__all__
}


def arguments_of(*functions):
    """Return the names of all arguments of functions."""
    names = set()
    for function in functions:
        names |= inspect.signature(function).parameters.keys()
    if "emission" in names:
        # Errors about the options of a family name the option.
        names |= inspect.signature(Gaussian).parameters.keys()
    return (names - {"self", "args", "kwargs"}) | {"metric_params"}


SEQUENCES = {"X", "y", "sequences", "data"}
FITTED = {"X", "y", "n_neighbors", "radius", "mode", "return_distance"}
MODELS = arguments_of(HMMBatch) | {
    *("emissionprobs", "rates", "cost", "states", "symbols", "symbol_costs", "models"),
}
