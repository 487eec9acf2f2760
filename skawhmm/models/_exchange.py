"""Conversion of named arrays from dictionaries and other libraries to models."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from skawhmm.emissions._registry import FAMILIES, check_emission
from skawhmm.models._conversions import equal_covariances, split_mixture
from skawhmm.models._forms import FORMS, in_our_form

# Our names of arrays, and their names in hmmlearn and dynamax. The meaning of a dynamax
# name depends on its group.
NAMES = MappingProxyType(
    {
        "mixture_weights": ("emissions.weights", "weights_"),
        "transmats": ("transmat", "transmat_", "transition_matrix"),
        "startprobs": ("startprob", "startprob_", "initial_probs", "initial.probs"),
        "weights": (),
        "means": ("means_",),
        "covars": ("covars_", "covs"),
        **dict.fromkeys(FORMS, ()),
        "sphere_scales": ("emissions.scales",),
        "emissionprobs": ("emissionprob_", "emissions.probs"),
        "rates": ("lambdas_",),
        "observed": (),
        "symbols": (),
        "symbol_costs": (),
    }
)
# Arrays that all models share, although dictionaries hold them per model.
SHARED = ("symbols", "symbol_costs")
# Arrays that models of any family may have.
COMMON = ("transmats", "weights", "startprobs", "observed")


def given_parts(models, emission=None):
    """Return the parts of models, given their arrays by name.

    Parameters
    ----------
    models : mapping, or sequence of mappings
        Arrays by name, possibly in nested groups: of one model, of several models
        stacked along a first axis, or one mapping per model.

    emission : Emission, default=None
        Template of the states; by default the arrays decide.

    Returns
    -------
    parts : dict
        Arguments of `HMMBatch._of`.
    """
    templates = _templates(emission)
    if is_group(models):
        arrays = named_arrays(models, "models", templates)
        if np.ndim(arrays["transmats"]) == 2:
            return model_parts([arrays], templates)
        return _checked_parts(arrays, templates)
    if isinstance(models, str | bytes) or not isinstance(models, Iterable):
        raise TypeError(
            "models must be a mapping with the arrays of models, or a list of such, "
            f"got {type(models).__name__}."
        )
    named = (
        named_arrays(model, f"models[{n}]", templates) for n, model in enumerate(models)
    )
    return model_parts([model for arrays in named for model in each_model(arrays)])


def model_parts(models, templates=None):
    """Return the parts of models, given the arrays of each by our names."""
    templates = templates or _templates()
    if not models:
        raise ValueError("models must hold at least one model, got none.")
    _check_one_kind(models, templates)
    names = [sorted(model) for model in models]
    for n, own in enumerate(names):
        if own != names[0]:
            raise ValueError(
                f"All models must have the same arrays, got {names[0]} in model 0 and "
                f"{own} in model {n}."
            )
        for name in {*SHARED} & {*own}:
            if not np.array_equal(models[n][name], models[0][name]):
                raise ValueError(
                    f"All models must have the same {name}, got others in model {n} "
                    "than in model 0."
                )
    models = equal_covariances(models)
    arrays = {
        name: models[0][name] if name in SHARED else [model[name] for model in models]
        for name in names[0]
    }
    return _checked_parts(arrays, templates)


def each_model(arrays):
    """Return the arrays of each model, given the arrays of one model or a stack."""
    if np.ndim(arrays["transmats"]) != 3:
        return [arrays]
    shared = {name: value for name, value in arrays.items() if name in SHARED}
    stacks = {name: value for name, value in arrays.items() if name not in SHARED}
    sizes = {name: len(stack) for name, stack in stacks.items()}
    if len({*sizes.values()}) > 1:
        raise ValueError(f"All arrays must have one entry per model, got {sizes}.")
    return [
        {**{name: stack[n] for name, stack in stacks.items()}, **shared}
        for n in range(len(stacks["transmats"]))
    ]


def parts_of(family, arrays):
    """Return named arrays as parts of models."""
    states = {name: arrays[name] for name in family.parameter_names}
    shared = {name: arrays[name] for name in family.shared_names if name in arrays}
    common = {name: arrays[name] for name in COMMON if name in arrays}
    unused = sorted({*arrays} - {*states, *shared, *common})
    return {"family": family, "states": states, "shared": shared, **common}, unused


def named_arrays(group, where, templates=None):
    """Return the arrays of a mapping by our names, in our form.

    Parameters
    ----------
    group : mapping or named tuple
        Arrays by name, of one model or of several stacked along a first axis; groups
        may be nested.

    where : str
        The group as the caller knows it.

    templates : list of Emission, default=None
        Families whose parameters are known by name.

    Returns
    -------
    arrays : dict
        Arrays by our names.
    """
    if not is_group(group):
        raise TypeError(
            f"{where} must hold arrays by name, got {type(group).__name__}."
        )
    more = [name for template in templates or () for name in template.parameter_names]
    names = {**dict.fromkeys(more, ()), **NAMES}
    arrays: dict[str, Any] = {}
    for path, value in _flat(group, ""):
        ours = _our_name(path, names)
        if ours is None:
            known = [*names, *(name for others in names.values() for name in others)]
            raise ValueError(
                f"{where} must hold arrays of known names, some of {known}, got "
                f"{path!r}."
            )
        if ours in arrays:
            raise ValueError(
                f"{where} must hold {ours} once, got it again as {path!r}."
            )
        arrays[ours] = value if ours in SHARED else np.asarray(value)
    if "transmats" not in arrays:
        raise ValueError(f"{where} must hold transmats, got {sorted(arrays)}.")
    arrays = in_our_form(arrays, where)
    if "mixture_weights" not in arrays:
        return arrays
    split = [_split(model, where) for model in each_model(arrays)]
    if np.ndim(arrays["transmats"]) != 3:
        return split[0]
    return {name: np.stack([model[name] for model in split]) for name in split[0]}


def is_group(value):
    """Whether a value has arrays by name: a mapping or a named tuple."""
    return isinstance(value, Mapping) or hasattr(value, "_asdict")


def _templates(emission=None):
    if emission is not None:
        return [check_emission("emission", emission)]
    return [family() for family in FAMILIES.values()]


def _fitting(arrays, templates):
    """Return the families whose parameters are all present."""
    return [f for f in templates if {*f.parameter_names} <= {*arrays}]


def _check_one_kind(models, templates):
    """Raise if models have states of different families."""
    kinds = [[f.name for f in _fitting(model, templates)] for model in models]
    for n, kind in enumerate(kinds):
        if kind and kinds[0] and kind != kinds[0]:
            raise TypeError(
                f"All models must have one kind of states, got {kinds[0][0]} in model "
                f"0 and {kind[0]} in model {n}."
            )


def _checked_parts(arrays, templates):
    fitting = _fitting(arrays, templates)
    if not fitting:
        wanted = [" and ".join(f.parameter_names) for f in templates]
        raise ValueError(
            f"models must hold the parameters of states, one of {wanted}, got "
            f"{sorted(arrays)}."
        )
    parts, unused = parts_of(fitting[0], arrays)
    if unused:
        raise ValueError(
            f"models must hold parameters of one kind of states, got "
            f"{sorted(parts['states'])} and {unused}."
        )
    return parts


def _our_name(path, names):
    """Return our name of an array, by its full path or else by its last part."""
    last = path.rsplit(".", 1)[-1]
    for wanted in (path, last):
        for ours, others in names.items():
            if wanted == ours or wanted in others:
                return ours
    return None


def _split(arrays, where):
    """Return a model of mixtures with each component as a separate state."""
    arrays = {**arrays}
    fractions = np.asarray(arrays.pop("mixture_weights"), float)
    means, transmat = arrays.get("means"), arrays["transmats"]
    if means is None or means.ndim != 3 or means.shape[:2] != fractions.shape:
        shape = None if means is None else means.shape
        raise ValueError(
            f"{where} must hold means of shape (n_components, n_mix, n_features) for "
            f"mixture weights of shape {fractions.shape}, got {shape}."
        )
    start = arrays.get("startprobs", np.full(len(transmat), 1 / len(transmat)))
    chain = split_mixture(transmat, start, fractions)
    arrays.update(zip(("transmats", "startprobs"), chain, strict=True))
    for name in ("means", "covars"):
        if name in arrays:
            arrays[name] = arrays[name].reshape(fractions.size, *arrays[name].shape[2:])
    return arrays


def _flat(group, path):
    """Yield every array of nested groups with its path."""
    fields = group if isinstance(group, Mapping) else group._asdict()
    for name, value in fields.items():
        if is_group(value):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
