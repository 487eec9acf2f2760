"""Models of other libraries as plain arrays, by the names that they are known under."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

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
# What all models share, so that it stands for each of them.
SHARED = ("symbols", "symbol_costs")


class Columns(dict[str, Any]):
    """Columns with one entry per model that cannot be replaced."""

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("The info of an HMMBatch cannot be changed.")

    __setitem__ = __delitem__ = _refused
    update = setdefault = pop = popitem = clear = _refused
    __ior__ = _refused

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def known_arrays(models):
    """Return the arrays of models by our names, stacked or one per model.

    Parameters
    ----------
    models : mapping, or sequence of mappings
        Arrays by name, in groups if there are any: of one model, of several that are
        stacked along a first axis, or one mapping per model.

    Returns
    -------
    arrays : dict
        Lists with one array per model, and what all models share.
    """
    if _is_group(models):
        arrays = _renamed(models, "models")
        if np.ndim(arrays["transmats"]) == 2:
            return _joined([arrays])
        return arrays
    if isinstance(models, str | bytes) or not isinstance(models, Iterable):
        raise TypeError(
            "models must be a mapping with the arrays of models, or a list of such, "
            f"got {type(models).__name__}."
        )
    return _joined([_renamed(model, f"models[{n}]") for n, model in enumerate(models)])


def _is_group(value):
    return isinstance(value, Mapping) or hasattr(value, "_asdict")


def _joined(parts):
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


def _renamed(group, where):
    """Return the arrays of a mapping by our names."""
    if not _is_group(group):
        raise TypeError(
            f"{where} must hold arrays by name, got {type(group).__name__}."
        )
    arrays: dict[str, Any] = {}
    for path, value in _flat(group, ""):
        last = path.rsplit(".", 1)[-1]
        ours = [n for n, others in NAMES.items() if {path, last} & {n, *others}]
        if not ours:
            known = [*NAMES, *(name for others in NAMES.values() for name in others)]
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


def with_every_row(transmat):
    """Return a transition matrix of hmmlearn with equal chances where it has none.

    A state in which only last frames are has a row of zeros there. Our own fits keep
    the equal chances that they start from.

    Parameters
    ----------
    transmat : ndarray of shape (n_components, n_components)
        The matrix.

    Returns
    -------
    transmat : ndarray of shape (n_components, n_components)
        The matrix without rows of zeros.
    """
    is_empty = ~np.any(transmat, axis=1)
    return np.where(is_empty[:, None], 1 / len(transmat), transmat)
