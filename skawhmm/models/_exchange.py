"""Models of other libraries, and plain arrays by name, as parts of our models."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from skawhmm.emissions._registry import FAMILIES, check_emission, family_of_hmmlearn

# The names of our arrays, and those of hmmlearn and dynamax. What a name of dynamax
# stands for depends on the group that it is in.
NAMES = MappingProxyType(
    {
        "transmats": ("transmat", "transmat_", "transition_matrix"),
        "startprobs": ("startprob", "startprob_", "initial_probs", "initial.probs"),
        "weights": (),
        "means": ("means_",),
        "covars": ("covars_", "covs"),
        "scale_diags": (),
        "emissionprobs": ("emissionprob_", "emissions.probs"),
        "rates": ("lambdas_",),
        "observed": (),
        "symbols": (),
        "symbol_costs": (),
    }
)
# What all models have in common, so that it is stored for each of them.
SHARED = ("symbols", "symbol_costs")
# What models of any family may hold.
COMMON = ("transmats", "weights", "startprobs", "observed")


def given_parts(models, emission=None):
    """Return the parts of models that are given as arrays by name.

    Parameters
    ----------
    models : mapping, or sequence of mappings
        Arrays by name, in groups if there are any: of one model, of several that are
        stacked along a first axis, or one mapping per model.

    emission : Emission, default=None
        Template of the states; by default the arrays decide.

    Returns
    -------
    parts : dict
        Arguments of `HMMBatch._of`.
    """
    templates = [family() for family in FAMILIES.values()]
    if emission is not None:
        templates = [check_emission("emission", emission)]
    more = [name for template in templates for name in template.parameter_names]
    arrays = _known_arrays(models, {**dict.fromkeys(more, ()), **NAMES})
    fitting = [f for f in templates if {*f.parameter_names} <= {*arrays}]
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


def parts_of(family, arrays):
    """Return named arrays as parts of models."""
    states = {name: arrays[name] for name in family.parameter_names}
    shared = {name: arrays[name] for name in family.shared_names if name in arrays}
    common = {name: arrays[name] for name in COMMON if name in arrays}
    unused = sorted({*arrays} - {*states, *shared, *common})
    return {"family": family, "states": states, "shared": shared, **common}, unused


def hmmlearn_parts(models):
    """Return the parts of fitted models of hmmlearn."""
    if not isinstance(models, Sequence | np.ndarray):
        models = [*models] if isinstance(models, Iterable) else [models]
    family = family_of_hmmlearn(models)
    arrays = family.hmmlearn_arrays(models)
    return {
        "family": family,
        "transmats": [_with_every_row(transmat) for transmat in arrays["transmats"]],
        "states": {name: arrays[name] for name in family.parameter_names},
        "startprobs": arrays["startprobs"],
    }


def _with_every_row(transmat):
    """Return a transition matrix of hmmlearn with equal chances where it has none.

    A state in which only last frames are has a row of zeros there. Our own fits keep
    the equal chances that they start from.
    """
    is_empty = ~np.any(transmat, axis=1)
    return np.where(is_empty[:, None], 1 / len(transmat), transmat)


def _known_arrays(models, names):
    """Return the arrays of models by our names, stacked or one per model."""
    if _is_group(models):
        arrays = _renamed(models, "models", names)
        if np.ndim(arrays["transmats"]) == 2:
            return _concatenated([arrays])
        return arrays
    if isinstance(models, str | bytes) or not isinstance(models, Iterable):
        raise TypeError(
            "models must be a mapping with the arrays of models, or a list of such, "
            f"got {type(models).__name__}."
        )
    return _concatenated(
        [_renamed(model, f"models[{n}]", names) for n, model in enumerate(models)]
    )


def _is_group(value):
    return isinstance(value, Mapping) or hasattr(value, "_asdict")


def _concatenated(parts):
    if not parts:
        raise ValueError("models must hold at least one model, got none.")
    names = [sorted(part) for part in parts]
    for n, own in enumerate(names):
        if own != names[0]:
            raise ValueError(
                f"All models must have the same arrays, got {names[0]} in model 0 and "
                f"{own} in model {n}."
            )
    return {
        name: parts[0][name] if name in SHARED else [part[name] for part in parts]
        for name in names[0]
    }


def _renamed(group, where, names):
    """Return the arrays of a mapping by our names."""
    if not _is_group(group):
        raise TypeError(
            f"{where} must hold arrays by name, got {type(group).__name__}."
        )
    arrays: dict[str, Any] = {}
    for path, value in _flat(group, ""):
        last = path.rsplit(".", 1)[-1]
        ours = [n for n, others in names.items() if {path, last} & {n, *others}]
        if not ours:
            known = [*names, *(name for others in names.values() for name in others)]
            raise ValueError(
                f"{where} must hold arrays of known names, some of {known}, got "
                f"{path!r}."
            )
        arrays[ours[0]] = value if ours[0] in SHARED else np.asarray(value)
    if "transmats" not in arrays:
        raise ValueError(f"{where} must hold transmats, got {sorted(arrays)}.")
    if "scale_diags" in arrays:
        # Standard deviations, as dynamax keeps them.
        arrays["covars"] = arrays.pop("scale_diags") ** 2
    return arrays


def _flat(group, path):
    """Give every array of nested groups, and its name within them."""
    fields = group if isinstance(group, Mapping) else group._asdict()
    for name, value in fields.items():
        if _is_group(value):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
