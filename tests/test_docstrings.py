import configparser
import inspect
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.validate import validate
from test_public_names import HOMES

import skawhmm
from skawhmm.emissions import Emission, SimpleEmission

SETTINGS = Path(__file__).parents[1] / "setup.cfg"


def defined_in(member):
    """Module of a method, or of the function behind a property."""
    for name in ("fget", "func"):
        member = getattr(member, name, member)
    return getattr(member, "__module__", None) or ""


def is_small_member(thing, member):
    """Whether one sentence is enough: the class describes what a family defines."""
    doc = inspect.getdoc(getattr(member, "fget", member)) or ""
    return issubclass(thing, Emission) and doc.endswith(".") and "\n" not in doc


def documented_names():
    """Every public name, and every public method of a public class."""
    for home, names in HOMES.items():
        for name in names:
            path, thing = f"{home}.{name}", getattr(import_module(home), name)
            yield path
            if inspect.isclass(thing):
                # Families of states follow a contract, which documents their members.
                contract = {*thing.__mro__[1:]} & {Emission, SimpleEmission}
                yield from (
                    f"{path}.{member}"
                    for member, value in inspect.getmembers(thing)
                    if not member.startswith("_")
                    and defined_in(value).startswith("skawhmm")
                    and not any(hasattr(base, member) for base in contract)
                    and not is_small_member(thing, value)
                )


@pytest.fixture(scope="module")
def checks():
    settings = configparser.ConfigParser()
    settings.read(SETTINGS, encoding="utf-8")
    return set(settings["numpydoc_validation"]["checks"].replace(",", " ").split())


@pytest.mark.parametrize("name", list(documented_names()))
def test_docstring_follows_numpydoc(name, checks):
    if is_protocol(name):
        # Nothing is made of it, so it has no parameters.
        checks = checks - {"PR01"}
    errors = [
        f"{code}: {text}" for code, text in validate(name)["errors"] if code in checks
    ]
    assert not errors, "\n".join([name, *errors])


def function_behind(name):
    """Return the function of a public name, or the constructor of a class."""
    thing = skawhmm
    for part in name.split(".")[1:]:
        thing = inspect.getattr_static(thing, part)
    if inspect.isclass(thing):
        return inspect.getattr_static(thing, "__init__")
    for wrapped in ("__func__", "fget", "func", "fn"):
        thing = getattr(thing, wrapped, thing)
    return thing


def is_protocol(name):
    home, _, last = name.rpartition(".")
    return last in HOMES.get(home, ()) and getattr(
        getattr(import_module(home), last), "_is_protocol", False
    )


@pytest.mark.parametrize(
    "name", [name for name in documented_names() if not is_protocol(name)]
)
def test_signature_is_typed(name):
    if function_behind(name) is object.__init__:
        pytest.skip("a family without options has no constructor of its own")
    signature = inspect.signature(function_behind(name))
    parameters = signature.parameters.values()
    untyped = {p.name for p in parameters if p.annotation is p.empty}
    untyped -= {"self", "cls"}
    assert not untyped, f"{name} has no types for {untyped}"
    assert signature.return_annotation is not signature.empty, name


def test_types_are_shipped():
    assert (Path(skawhmm.__file__).parent / "py.typed").exists()
