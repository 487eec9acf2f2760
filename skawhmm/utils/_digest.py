"""A short digest of the content of any object: arrays, parameters, user code.

It identifies results on disk. Objects with equal content have the same digest in every
process; objects whose content cannot be determined raise an error.
"""

import dis
import hashlib
import sys
from functools import cache, singledispatch
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any, NamedTuple

import numpy as np

from skawhmm.utils._parameters import Parametrized

# File endings of compiled modules.
COMPILED = tuple(EXTENSION_SUFFIXES)

# Code that uses these names may call anything.
HIDDEN_CALLS = {"eval", "exec", "__import__", "import_module"}


def content_digest(value):
    """Return a text that is the same for equal content, and only for it."""
    state = _State()
    state.add(value)
    return state.hash.hexdigest()


class _State:
    """A digest that grows object by object."""

    def __init__(self):
        self.hash = hashlib.blake2b(digest_size=16)
        # Code may refer to itself, and objects may contain themselves: anything seen
        # before is written as its number.
        self.code: dict[int, int] = {}
        self.path: list[Any] = []

    def add(self, value):
        if isinstance(value, bytes):
            self._write(b"bytes", value)
            return
        held = [k for k, other in enumerate(self.path) if other is value]
        if held or id(value) in self.code:
            self._write(b"again", repr(held or self.code[id(value)]).encode())
            return
        if isinstance(value, FunctionType | type):
            self.code[id(value)] = len(self.code)
        self.path.append(value)
        tag, *parts = _parts(value)
        self._write(tag.encode(), str(len(parts)).encode())
        for part in parts:
            self.add(part)
        self.path.pop()

    def _write(self, tag, content):
        self.hash.update(b"%d %b %d " % (len(tag), tag, len(content)))
        self.hash.update(content)


@singledispatch
def _parts(value):
    """Return a word for the kind of an object, and its parts."""
    try:
        made = value.__reduce_ex__(4)
    except (TypeError, AttributeError, ValueError) as error:
        raise TypeError(
            f"the content of {type(value).__module__}.{type(value).__qualname__} "
            f"cannot be read ({error})"
        ) from error
    if isinstance(made, str):
        # A cached function pickles by name only, but wraps the actual function.
        wrapped = getattr(value, "__wrapped__", None)
        module = value.__module__
        return "name", f"{module}.{made}", *_release(module), wrapped
    maker, arguments, *rest = made
    state, items, pairs = [*rest[:3], None, None, None][:3]
    return (
        "object",
        maker,
        arguments,
        state,
        None if items is None else list(items),
        None if pairs is None else list(pairs),
    )


@_parts.register(NoneType)
@_parts.register(bool)
@_parts.register(int)
@_parts.register(float)
@_parts.register(complex)
@_parts.register(str)
def _(value):
    if type(value).__module__ != "builtins":
        # A number or text with attributes of its own, such as a member of an Enum.
        return _parts.dispatch(object)(value)
    return type(value).__name__, repr(value).encode("utf-8", "surrogatepass")


@_parts.register(type(...))
@_parts.register(type(NotImplemented))
def _(value):
    return "constant", repr(value)


@_parts.register(np.ndarray)
def _(value):
    if type(value) not in {np.ndarray, np.memmap}:
        return _parts.dispatch(object)(value)
    head = "array", repr(value.shape), repr(np.lib.format.dtype_to_descr(value.dtype))
    if value.dtype.hasobject:
        return *head, value.ravel().tolist()
    return *head, np.ascontiguousarray(value).tobytes()


@_parts.register(np.generic)
def _(value):
    return "scalar", np.asarray(value)


@_parts.register(np.ufunc)
def _(value):
    return "ufunc", value.__name__


@_parts.register(Parametrized)
def _(value):
    return "parameters", value._kind, vars(value)


@_parts.register(list)
@_parts.register(tuple)
def _(value):
    if type(value) not in {list, tuple}:
        return "sequence", type(value), list(value), getattr(value, "__dict__", None)
    return (type(value).__name__, *value)


@_parts.register(set)
@_parts.register(frozenset)
def _(value):
    return "set", *sorted(map(content_digest, value))


@_parts.register(dict)
def _(value):
    order = sorted(value, key=content_digest)
    return "dict", type(value), *(part for key in order for part in (key, value[key]))


@_parts.register(ModuleType)
def _(value):
    return "module", value.__name__, *_release(value.__name__)


class _Mentioned(NamedTuple):
    """A user module, and the names in it that code uses."""

    module: ModuleType
    words: frozenset[str]
    before: frozenset[str]


@_parts.register(_Mentioned)
def _(value):
    name = value.module.__name__
    before = value.before | {name}
    found = {
        word: _mentioned(vars(value.module)[word], value.words, before)
        for word in value.words & vars(value.module).keys()
    }
    return "module", name, *_release(name), found


def _mentioned(value, words, before=frozenset()):
    """Return an object that code uses; for a user module, the used names only."""
    if not isinstance(value, ModuleType) or value.__name__ in before:
        return value
    return value if _is_library(value.__name__) else _Mentioned(value, words, before)


@_parts.register(BuiltinFunctionType)
def _(value):
    owner = value.__self__
    named = owner is None or isinstance(owner, ModuleType | type)
    module = value.__module__
    release = _release(module) if module else ()
    return "builtin", value.__qualname__, module, *release, None if named else owner


@_parts.register(MethodType)
def _(value):
    return "method", value.__self__, value.__func__


@_parts.register(FunctionType)
def _(value):
    name = f"{value.__module__}.{value.__qualname__}"
    if _is_library(value.__module__):
        return "function", name, *_release(value.__module__)
    words = _words(value.__code__)
    if hidden := words & HIDDEN_CALLS:
        raise TypeError(f"{name} calls {min(hidden)}, which may run any code")
    cells = [_mentioned(cell.cell_contents, words) for cell in value.__closure__ or ()]
    known = value.__globals__
    mentioned = {w: _mentioned(known[w], words) for w in words & known.keys()}
    imported = [
        _mentioned(module, words)
        for module in _imports(value.__code__, known.get("__package__"))
    ]
    defaults = value.__defaults__, value.__kwdefaults__
    return "function", name, value.__code__, *defaults, cells, mentioned, imported


@_parts.register(CodeType)
def _(value):
    return (
        "code",
        value.co_code,
        value.co_consts,
        value.co_names,
        value.co_varnames,
        value.co_freevars,
        value.co_cellvars,
        (value.co_argcount, value.co_kwonlyargcount, value.co_posonlyargcount),
        value.co_flags,
    )


@_parts.register(staticmethod)
@_parts.register(classmethod)
def _(value):
    return type(value).__name__, value.__func__


@_parts.register(property)
def _(value):
    return "property", value.fget, value.fset, value.fdel


@_parts.register(type)
def _(value):
    name = f"{value.__module__}.{value.__qualname__}"
    if _is_library(value.__module__):
        return "class", name, *_release(value.__module__)
    members = {
        key: member
        for key, member in vars(value).items()
        if not key.startswith(("__", "_abc_")) or key in {"__call__", "__init__"}
    }
    release = _release(value.__module__)
    return "class", name, *release, value.__bases__, members


def _words(code):
    """Return the names that code uses, and the code nested in it."""
    parts = (_words(const) for const in code.co_consts if isinstance(const, CodeType))
    return frozenset(code.co_names).union(*parts)


def _imports(code, package):
    """Yield the user modules that code, or code nested in it, imports when it runs."""
    names = [x.argval for x in dis.get_instructions(code) if x.opname == "IMPORT_NAME"]
    for name in names:
        # A relative name may be empty.
        places = {name, name.partition(".")[0], f"{package}.{name}".strip(".")}
        found = map(_imported, sorted(places - {""}))
        yield from (module for module in found if module is not None)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _imports(const, package)


def _imported(name):
    """Return a module, or None if it does not exist or belongs to a library."""
    if name in sys.modules:
        return sys.modules[name]
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or _is_installed(spec.origin):
        return None
    return import_module(name)


@cache
def _is_library(module):
    """Whether a module belongs to Python or to an installed package."""
    root = (module or "builtins").partition(".")[0]
    if root in sys.stdlib_module_names or root == "skawhmm":
        return True
    file = getattr(sys.modules.get(root), "__file__", None)
    if root == "__main__" or file is None:
        return False
    return _is_installed(file)


def _is_installed(file):
    # Installation folders of users, systems and environments all end in these names.
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


@cache
def _release(module):
    """Return a text that distinguishes a module from its earlier releases.

    This is the version of an installed package, or the file of a compiled user module.
    For other modules, the code itself is digested.
    """
    if _is_library(module):
        root = sys.modules.get((module or "builtins").partition(".")[0])
        return (str(getattr(root, "__version__", "")),)
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return (Path(file).read_bytes(),) if file.endswith(COMPILED) else ()
