"""Models of the EMHMM toolbox, from `.mat` files or as read by `scipy.io`."""

import struct
import zlib
from collections.abc import Mapping

import numpy as np

from skawhmm.utils._numbers import real_array

FIELDS = ("prior", "trans", "pdf")
# Layout of `.mat` files: the header, the types of variables, and version 7.3.
HEADER_BYTES, MATRIX, COMPRESSED = 128, 14, 15
NEW_VERSION = (b"\x00\x02", b"\x02\x00")
# Exceptions that scipy raises for damaged files, depending on the damage.
MAT_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    EOFError,
    OSError,
    OverflowError,
    UnboundLocalError,
    MemoryError,
    UnicodeDecodeError,
    struct.error,
    zlib.error,
)


def is_emhmm(value):
    """Whether a mapping has the fields of a model of EMHMM."""
    return isinstance(value, Mapping) and {*FIELDS} <= {*value}


def emhmm_arrays(model, where):
    """Return the arrays of a model of EMHMM, by our names.

    Parameters
    ----------
    model : mapping
        `prior`, `trans`, and in `pdf` one `mean` and `cov` per state, as
        ``scipy.io.loadmat(path, simplify_cells=True)`` gives them.

    where : str
        The model as the caller knows it.

    Returns
    -------
    arrays : dict of ndarray
        Chain and states.
    """
    model = _plain(model)
    if not is_emhmm(model):
        raise TypeError(
            f"{where} must be a model of EMHMM, a structure with {', '.join(FIELDS)}, "
            f"got {_shown(model)}."
        )
    # MATLAB does not distinguish a number from an array that holds one.
    states = [model["pdf"]] if isinstance(model["pdf"], Mapping) else [*model["pdf"]]
    size = len(states)
    if isinstance(model["trans"], list) or np.asarray(model["trans"]).dtype == object:
        raise TypeError(
            f"{where} must have one chain, got a chain per group of sequences. Make a "
            "model per group: its prior{g} and trans{g} with the same pdf."
        )
    for k, state in enumerate(states):
        if not isinstance(state, Mapping) or not {"mean", "cov"} <= {*state}:
            raise TypeError(
                f"{where} must have a mean and a cov in pdf, got {_shown(state)} in "
                f"state {k}."
            )
    means = [_sized(where, "mean", s["mean"], (-1,)) for s in states]
    n = means[0].size
    return {
        "transmats": _sized(where, "trans", model["trans"], (size, size)),
        "startprobs": _sized(where, "prior", model["prior"], (size,)),
        "means": np.stack([_sized(where, "mean", m, (n,)) for m in means]),
        "covars": np.stack([_sized(where, "cov", s["cov"], (n, n)) for s in states]),
    }


def mat_models(path, where):
    """Return the models of a `.mat` file and the name of each.

    Parameters
    ----------
    path : str or path-like
        The file, in a version of MATLAB's format before 7.3. It is read by scipy:
        accidental damage is detected, but malicious files may crash the process.

    where : str
        The file as the caller knows it.

    Returns
    -------
    models : list of tuple
        Name and content of each model, in MATLAB's order.
    """
    found = {}
    for name, value in _variables(path, where).items():
        inner = value.get("hmms") if isinstance(value, Mapping) else None
        label = name if inner is None else f"{name}.hmms"
        models = _model_list(value if inner is None else inner)
        if any(is_emhmm(model) for model in models):
            found[label] = models
    if len(found) != 1:
        keys = "".join(f"[{key!r}]" for key in next(iter(found), "").split("."))
        loaded = f"scipy.io.loadmat(path, simplify_cells=True){keys}"
        hint = f" Take one of them: as_models({loaded})." * bool(found)
        raise ValueError(
            f"{where} must have one variable with models of EMHMM (structures with "
            f"{', '.join(FIELDS)}), got {[*found] or 'none'}.{hint}"
        )
    (name, models) = next(iter(found.items()))
    return [(f"{name}[{n}] of {where}", model) for n, model in enumerate(models)]


def _variables(path, where):
    with open(path, "rb") as file:
        content = _content(file, where)
    return {name: v for name, v in content.items() if not name.startswith("__")}


def _content(file, where):
    # Imported here, because scipy.io is slow to import and rarely needed.
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        _check_elements(file.read())
        file.seek(0)
        return loadmat(file, simplify_cells=True)
    except NotImplementedError as error:
        raise ValueError(
            f"{where} must be written by save(..., '-v7'), got a file of MATLAB's "
            "format 7.3, which is another one."
        ) from error
    except (MatReadError, *MAT_ERRORS) as error:
        raise ValueError(
            f"{where} must be a complete .mat file, but cannot be read as one "
            f"({error}): it was cut short, damaged or is something else."
        ) from error


def _check_elements(content):
    """Raise unless the variables fill the file, and their checksums are right.

    scipy checks neither before it parses them, and damage may crash it.
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None or not content.startswith(b"MATLAB"):
        raise ValueError("it does not begin as files of MATLAB 5 and later")
    place = HEADER_BYTES
    while place < len(content) and content[124:126] not in NEW_VERSION:
        kind, size = struct.unpack_from(f"{order}II", content, place)
        place += 8 + size
        if kind not in {MATRIX, COMPRESSED} or place > len(content):
            raise ValueError("its variables do not fill it")
        if kind == COMPRESSED:
            zlib.decompress(content[place - size : place])


def _model_list(value):
    """Return the cells of a cell array in MATLAB's order, or a list of one value."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = [*value.ravel(order="F")]
    return [_plain(part) for part in (value if isinstance(value, list) else [value])]


def _plain(value):
    """Return structures as dictionaries, including those nested in cells."""
    if hasattr(value, "_fieldnames"):
        return {name: _plain(getattr(value, name)) for name in value._fieldnames}
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        return [_plain(part) for part in value]
    return value


def _sized(where, name, values, shape):
    """Return numbers in a given shape, which MATLAB may have squeezed, or raise."""
    array = real_array(f"{name} of {where}", values)
    wanted = int(np.prod(shape))
    if wanted > 0 and array.size != wanted:
        raise ValueError(
            f"{name} of {where} must have shape {shape}, got {array.shape}."
        )
    return array.reshape(shape)


def _shown(state):
    return sorted(state) if isinstance(state, Mapping) else type(state).__name__
