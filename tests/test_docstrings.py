import configparser
import inspect
from pathlib import Path

import pytest
from numpydoc.validate import validate

import skawhmm
import skawhmm.datasets

SETTINGS = Path(__file__).parents[1] / "setup.cfg"


def defined_in(member):
    """Module of a method, or of the function behind a property."""
    for name in ("fget", "func"):
        member = getattr(member, name, member)
    return getattr(member, "__module__", None) or ""


def documented_names():
    """Every public name, and every public method of a public class."""
    for module in (skawhmm, skawhmm.datasets):
        for name in sorted(module.__all__):
            path, thing = f"{module.__name__}.{name}", getattr(module, name)
            yield path
            if inspect.isclass(thing):
                yield from (
                    f"{path}.{member}"
                    for member, value in inspect.getmembers(thing)
                    if not member.startswith("_")
                    and defined_in(value).startswith("skawhmm")
                )


@pytest.fixture(scope="module")
def checks():
    settings = configparser.ConfigParser()
    settings.read(SETTINGS, encoding="utf-8")
    return set(settings["numpydoc_validation"]["checks"].replace(",", " ").split())


@pytest.mark.parametrize("name", list(documented_names()))
def test_docstring(name, checks):
    errors = [
        f"{code}: {text}" for code, text in validate(name)["errors"] if code in checks
    ]
    assert not errors, "\n".join([name, *errors])
