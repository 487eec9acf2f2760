"""A parameter with another value: it must have an effect, or an error names it."""

from dataclasses import replace
from itertools import product

import numpy as np

import skawhmm as sk
from fuzzing.draw import pick
from fuzzing.effect_values import silence, values_of
from fuzzing.effects import ESTIMATORS, SUBJECTS, effect, refit, refits, settings
from fuzzing.judge import IGNORED, PROPERTY, BreachError, Trial
from fuzzing.names import FITTED, PUBLIC, arguments_of

# Stopping rules hide each other: the context stays unchanged.
STOPPING = {"tol", "max_iter"}
# Data sets tried before a parameter counts as ignored: in some of them nothing changes.
DRAWS = 12


def trial(rng):
    """Draw a parameter of an estimator or function, before or after `fit`."""
    return _refit(rng) if rng.random() < 0.3 else _effect(rng)


def _names(subject):
    kind = PUBLIC[subject.name]
    inner = [arguments_of(sk.HMMTransformer)] if hasattr(kind, "fit") else []
    # Errors about tables name their columns.
    return arguments_of(kind).union(FITTED, {"column"}, *inner)


def _effect(rng):
    subject = SUBJECTS[pick(rng, [*SUBJECTS])]
    choices = [choice for choice in settings(subject) if choice[2]]
    context, name, values = pick(rng, choices)
    seeds = rng.integers(2**32, size=DRAWS)
    context = _varied(rng, subject, context, name)

    def call():
        found = []
        for seed, value in product(seeds, values):
            data = context.data(np.random.default_rng(seed))
            usual = subject.call(data, dict(context.params))
            found.append(effect(subject, context, name, value, data, usual))
            if found[-1] != "ignored":
                break
        return found

    def verify(found):
        if "ignored" in found[-1:]:
            raise BreachError(IGNORED, f"{name} of {subject.name} changes nothing")

    return Trial(
        f"{subject.name} of {context}; {name} one of {values!r:.80}",
        call,
        [],
        _names(subject),
        verify,
    )


def _varied(rng, subject, context, name):
    """Return a context in which another parameter may be set as well."""
    others = [
        other
        for other in subject.parameters
        if other != name and values_of(subject.name, other)
    ]
    if not others or name in STOPPING or rng.random() < 0.5:
        return context
    other = pick(rng, others)
    value = pick(rng, values_of(subject.name, other))
    # With one neighbour or state other parameters have no effect; grids begin there.
    if repr(value) in {"1", "(1,)"}:
        return context
    varied = replace(context, params={**context.params, other: value})
    if silence(subject.name, name, varied) is not None:
        return context
    return varied


def _refit(rng):
    subject = ESTIMATORS[pick(rng, [*ESTIMATORS])]
    context, name, value = pick(rng, [*refits(subject)])
    data = context.data(np.random.default_rng(rng.integers(2**32)))

    def verify(found):
        if found not in {"effect", "error"}:
            raise BreachError(
                PROPERTY, f"{name} of {subject.name} set after fit: {found}"
            )

    return Trial(
        f"{subject.name} of {context} fitted, then {name}={value!r:.60}",
        lambda: refit(subject, context, name, value, data),
        [],
        _names(subject),
        verify,
    )
