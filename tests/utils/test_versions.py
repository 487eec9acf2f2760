import importlib.metadata
import sys

from skawhmm import show_versions
from skawhmm.utils import _versions


def test_versions_are_those_installed(capsys, monkeypatch):
    monkeypatch.setattr(_versions, "PACKAGES", ("numpy", "no-such-package"))
    show_versions()
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert f"numpy: {importlib.metadata.version('numpy')}" in lines
    assert "no-such-package: not installed" in lines
    assert f"executable: {sys.executable}" in lines


def test_every_core_dependency_is_listed():
    required = importlib.metadata.requires("skawhmm")
    names = {entry.split(">")[0].strip() for entry in required if "extra" not in entry}
    assert names <= set(_versions.PACKAGES)
