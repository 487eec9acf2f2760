"""The outcome of one call: a right result, a clear error, or something bad."""

import dataclasses
import linecache
import pickle
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

import skawhmm
from skawhmm import HMMBatch

RIGHT, CLEAR = "right result", "clear error"
UNCLEAR, CRASH, HANG = "unclear error", "crash", "hang"
NOT_FINITE, CHANGED = "NaN or infinity", "input changed"
MISREAD, IGNORED, PROPERTY = "silent misreading", "ignored parameter", "property broken"
ORDER = "order of states"
OUTCOMES = (
    *(
        RIGHT,
        CLEAR,
        UNCLEAR,
        CRASH,
        HANG,
        NOT_FINITE,
        CHANGED,
        MISREAD,
        IGNORED,
        PROPERTY,
    ),
    ORDER,
)
GOOD = {RIGHT, CLEAR}

PACKAGE = str(Path(skawhmm.__file__).parent)
# Words with which a message says what was passed, besides the name of the argument.
CAME = re.compile(r"\b(got|but|has|have|hold|holds|not|none|was|with|without)\b")
# Arguments whose names are English words count only at the start of a message.
PLAIN_WORDS = {"a", "b", "c"}
# What estimators of scikit-learn say, word for word, about the shape of X, a missing
# fit or y; its own checks of estimators demand some of these.
SKLEARN = re.compile(
    r"(\d+ sample\(s\)|\d+ feature\(s\)|Expected 2D array|Reshape your data|dim \d|"
    r"is not fitted yet|inconsistent numbers of samples|Unknown label type|"
    r"y should be a 1d array|Input y |Input X |has no attribute|Classification metrics|"
    r"requires y to be passed|Found input variables|feature names|Invalid parameter|"
    r"cannot be cast|is an instance of|bad input shape)"
)


class BreachError(Exception):
    """A bad result, and what is bad about it."""

    def __init__(self, outcome, text):
        super().__init__(text)
        self.outcome = outcome


@dataclass
class Trial:
    """A call that can be made once, and what its outcome must be."""

    # A readable description of the call.
    text: str
    call: Callable[[], Any]
    # Objects that the call must leave unchanged.
    inputs: list[Any]
    # Arguments, one of which an error must name.
    names: set[str]
    # Raises `BreachError` if the result lacks a property.
    verify: Callable[[Any], None] | None = None
    # Whether the result must be finite.
    finite: bool = True
    # Why the call must raise, or None.
    wrong: str | None = None
    # Why it must not raise, or None.
    must: str | None = None


@dataclass
class Finding:
    """The outcome of a case, with its details."""

    kind: str
    outcome: str
    text: str = ""
    message: str = ""
    # Where it happened: findings with one root have one place.
    place: str = ""
    size: int = 0
    number: int = -1
    trace: str = field(default="", repr=False)


def judged(kind, trial):
    """Run a trial and return its outcome."""
    before = fingerprint(trial.inputs)
    finding = _tried(trial)
    if fingerprint(trial.inputs) != before:
        finding = Finding(kind, CHANGED, message=f"after: {finding.message}")
    finding.kind, finding.text = kind, trial.text
    finding.size = size_of(trial.inputs)
    return finding


def _tried(trial):
    try:
        result = trial.call()
    except Exception as error:
        # Any exception of the library is judged.
        return _of_error(trial, error)
    try:
        _check_result(trial, result)
    except BreachError as breach:
        return Finding("", breach.outcome, message=str(breach), place=str(breach)[:40])
    except Exception as error:
        # Checking a property calls the library again, which may raise.
        found = _of_error(trial, error)
        found.outcome = PROPERTY if found.outcome == CLEAR else found.outcome
        found.message = f"raised only when a property was checked: {found.message}"
        return found
    return Finding("", RIGHT)


def _check_result(trial, result):
    if trial.wrong is not None:
        raise BreachError(MISREAD, f"accepted: {trial.wrong}")
    if trial.finite:
        check_finite(result)
    if trial.verify is not None:
        trial.verify(result)


def _of_error(trial, error):
    trace = "".join(traceback.format_exception(error))
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "outside"
    message = f"{type(error).__name__}: {error}"
    outcome = CLEAR if is_clear(error, trial.names) else UNCLEAR
    if trial.must is not None and outcome == CLEAR:
        outcome, message = PROPERTY, f"rejected, although {trial.must}: {message}"
    return Finding("", outcome, message=message[:600], place=where, trace=trace)


def is_clear(error, names):
    """Whether an error was worded for the caller and names an argument."""
    if not isinstance(error, ValueError | TypeError | IndexError | AttributeError):
        return isinstance(error, OSError) and error.filename is not None
    message = str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    if "sklearn" in last.filename and SKLEARN.search(message):
        return True
    line = linecache.getline(last.filename, last.lineno).strip()
    # What NumPy raises within a line of ours is in NumPy's words.
    if not (last.filename.startswith(PACKAGE) and line.startswith("raise")):
        return False
    return names_argument(message, names) and bool(CAME.search(message))


def names_argument(message, names):
    """Whether a message names one of the arguments."""
    for name in names:
        found = re.search(rf"(?<![\w.]){re.escape(name)}\b", message)
        if found and (name not in PLAIN_WORDS or found.start() == 0):
            return True
    return bool(SKLEARN.search(message))


def leaves(value, path="result"):  # noqa: PLR0912 (one branch per type)
    """Yield the arrays, numbers and texts within a result, with their places."""
    if isinstance(value, HMMBatch):
        for name, array in value._arrays().items():
            yield f"{path}.{name}", np.asarray(array)
    elif isinstance(value, np.ma.MaskedArray):
        yield path, np.asarray(value.filled(0))
        yield f"{path}.mask", np.ma.getmaskarray(value)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        for k, entry in enumerate(value.ravel()):
            yield from leaves(entry, f"{path}[{k}]")
    elif isinstance(value, np.ndarray | np.generic | int | float | complex | str):
        yield path, np.asarray(value)
    elif sparse.issparse(value):
        yield path, value.toarray()
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from leaves(entry, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple):
        for k, entry in enumerate(value):
            yield from leaves(entry, f"{path}[{k}]")
    elif dataclasses.is_dataclass(value):
        for item in dataclasses.fields(value):
            yield from leaves(getattr(value, item.name), f"{path}.{item.name}")
    elif type(value).__module__.startswith("pandas") and hasattr(value, "columns"):
        for name in value.columns:
            yield f"{path}[{name!r}]", value[name].to_numpy()
    elif isinstance(value, BaseEstimator):
        for name, entry in vars(value).items():
            if name.endswith("_") and not name.startswith("_"):
                yield from leaves(entry, f"{path}.{name}")


def check_finite(result):
    """Raise if a result holds NaN or infinity."""
    for path, array in leaves(result):
        if array.dtype.kind in "fc" and not np.isfinite(array).all():
            bad = array[~np.isfinite(array)].flat[0]
            raise BreachError(NOT_FINITE, f"{bad} in {path} of shape {array.shape}")


def check_same(one, two, claim, outcome=PROPERTY, tolerance=0.0):
    """Raise unless two results are equal, to the last bit or within a tolerance."""
    first, second = [*leaves(one)], [*leaves(two)]
    if len(first) != len(second):
        raise BreachError(
            outcome, f"{claim}: {len(first)} against {len(second)} values"
        )
    for (path, a), (_, b) in zip(first, second, strict=True):
        if a.shape != b.shape:
            raise BreachError(outcome, f"{claim}: {path}: {a.shape} against {b.shape}")
        if a.dtype.kind not in "fc":
            same = np.array_equal(a, b)
        else:
            scale = tolerance * max(np.abs(b[np.isfinite(b)]).max(initial=0.0), 1e-300)
            same = np.allclose(a, b, rtol=0, atol=scale, equal_nan=True)
        if not same:
            gap = _gap(a, b)
            raise BreachError(outcome, f"{claim}: {path} differs by {gap}")


def _gap(a, b):
    if a.dtype.kind not in "fiu" or b.dtype.kind not in "fiu":
        return "its values"
    with np.errstate(all="ignore"):
        gaps = np.abs(a.astype(float) - b.astype(float))
    return f"{np.nanmax(gaps, initial=0.0):.3g}"


def fingerprint(value):  # noqa: PLR0911 (one return per type)
    """Return bytes that differ if anything within an object has changed."""
    if isinstance(value, HMMBatch):
        return fingerprint({**value._arrays(), **value.info})
    if isinstance(value, np.ma.MaskedArray):
        return fingerprint([np.asarray(value.data), np.ma.getmaskarray(value)])
    if isinstance(value, np.ndarray) and value.dtype != object:
        shape = f"{value.dtype}{value.shape}{value.strides}{value.flags.writeable}"
        return shape.encode() + value.tobytes()
    if isinstance(value, Mapping):
        return b"{" + b"".join(
            repr(key).encode() + fingerprint(entry) for key, entry in value.items()
        )
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return f"{type(value)}{len(value)}".encode() + b"".join(map(fingerprint, value))
    if isinstance(value, np.random.RandomState | np.random.Generator):
        # A generator changes when it is used.
        return b"random"
    if isinstance(value, BaseEstimator):
        return fingerprint(value.get_params(deep=False))
    try:
        return pickle.dumps(value)
    except Exception:
        # Generators, locks: nothing to compare.
        return type(value).__name__.encode()


def size_of(value):
    """Return the number of values within the inputs of a case."""
    if isinstance(value, HMMBatch):
        return value.nbytes // 8
    if isinstance(value, Mapping):
        return sum(size_of(entry) for entry in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return sum(size_of(entry) for entry in value)
    return int(np.size(value)) if isinstance(value, np.ndarray) else 1
