"""Properties of a release: its version, its links, and the cost of an import."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import skawhmm

HOME = Path(__file__).parents[1]
SETTINGS = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))
# Packages that are imported where they are used, although some are always installed.
LATE = ("hmmlearn", "matplotlib", "dask", "distributed", "polars", "pyarrow", "xarray")


def run_python(code):
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_import_does_not_import_optional_packages():
    # scikit-learn itself imports pandas, and with it pyarrow.
    code = (
        "import sys, ot, sklearn.neighbors; before = set(sys.modules); "
        "import skawhmm, skawhmm.datasets; print(*set(sys.modules) - before)"
    )
    added = {name.partition(".")[0] for name in run_python(code)}
    assert "skawhmm" in added
    assert added.isdisjoint({*LATE, "pandas"})


def test_import_works_without_optional_packages():
    blocked = (*LATE, "pandas")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked})); "
        "import skawhmm, skawhmm.datasets; print(skawhmm.__version__)"
    )
    assert run_python(code) == [skawhmm.__version__]


def release_tool(monkeypatch):
    monkeypatch.syspath_prepend(HOME / "tools")
    spec = importlib.util.spec_from_file_location(
        "release_ready", HOME / "tools" / "release_ready.py"
    )
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, []),
        ({"tag": "v0.2.1"}, ["skawhmm/__init__.py states version 0.2.0"]),
        ({"changelog": "## 0.2.0 (unreleased)"}, ["no heading"]),
        ({"links": ["https://github.com/OWNER/x"]}, ["placeholder OWNER"]),
        (
            {"citation": "version: 0.1.0\ndate-released: 2025-01-31"},
            ['no line "version: 0.2.0', 'no line "date-released: 2026-01-31'],
        ),
    ],
)
def test_unready_release_is_rejected(given, words, monkeypatch):
    ready = {
        "tag": "v0.2.0",
        "version": "0.2.0",
        "changelog": "# Changelog\n\n## 0.2.0 (2026-01-31)\n",
        "links": ["https://github.com/someone/skawhmm"],
        "citation": "version: 0.2.0\ndate-released: 2026-01-31",
    }
    found = list(release_tool(monkeypatch).problems(**{**ready, **given}))
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


def test_version_is_defined_once(monkeypatch):
    monkeypatch.syspath_prepend(HOME / "tools")
    from version import stated_version

    assert stated_version() == skawhmm.__version__
    assert SETTINGS["project"]["dynamic"] == ["version"]
    citation = (HOME / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {skawhmm.__version__}" in citation.splitlines()


def test_citation_has_a_date_if_and_only_if_the_version_is_released():
    changelog = (HOME / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (HOME / "CITATION.cff").read_text(encoding="utf-8")
    heading = rf"^## {re.escape(skawhmm.__version__)} \((\d{{4}}-\d\d-\d\d)\)$"
    released = re.findall(heading, changelog, re.MULTILINE)
    assert re.findall(r"^date-released: (.+)$", citation, re.MULTILINE) == released


def test_owner_placeholders_are_in_one_place():
    texts = [
        *HOME.glob("*.md"),
        *HOME.glob("*.cff"),
        *HOME.glob("docs/**/*.md"),
        *HOME.glob(".github/**/*.*"),
    ]
    assert texts
    for path in texts:
        assert not re.search(r"/OWNER\b", path.read_text(encoding="utf-8")), path


def test_every_supported_python_is_tested_and_built():
    minors = sorted(
        entry.rpartition(" ")[2]
        for entry in SETTINGS["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", entry)
    )
    assert SETTINGS["project"]["requires-python"] == f">={minors[0]}"
    wheels = [f"cp{minor.replace('.', '')}-*" for minor in minors]
    assert SETTINGS["tool"]["cibuildwheel"]["build"].split() == wheels
    workflow = (HOME / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    quoted = ", ".join(f'"{minor}"' for minor in minors)
    assert f"python: [{quoted}]" in workflow


def test_oldest_supported_scikit_learn_is_tested():
    needed = SETTINGS["project"]["dependencies"]
    oldest = next(text for text in needed if text.startswith("scikit-learn>="))
    oldest = oldest.partition(">=")[2]
    workflow = (HOME / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    assert set(re.findall(r'sklearn: "([\d.]+)"', workflow)) == {oldest}
    assert f"scikit-learn=={oldest}.*" in (HOME / "Makefile").read_text("utf-8")
