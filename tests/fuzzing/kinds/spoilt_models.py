"""The arguments of a batch of models, one of which is wrong."""

from fuzzing.draw import discrete_arguments, gaussian_arguments, spoilt
from fuzzing.judge import Trial
from fuzzing.names import MODELS
from fuzzing.uses import built


def trial(rng):
    """Draw the arguments of a batch, one of which is wrong."""
    if rng.random() < 0.6:
        maker, (given, text) = None, gaussian_arguments(rng, largest=100)
    else:
        maker, given, text = discrete_arguments(rng)
    if "symbol_costs" in given or "cost" in given:
        given = {k: v for k, v in given.items() if k != "symbol_costs"}
    given, fault = spoilt(rng, given)
    maybe = {"fewer models", "other shape", "objects", "number"}
    is_sure = fault.split(": ")[1] not in maybe
    return Trial(
        f"HMMBatch of {text}; {fault}",
        lambda: built(maker, given),
        [given],
        MODELS,
        wrong=fault if is_sure else None,
        finite=False,
    )
