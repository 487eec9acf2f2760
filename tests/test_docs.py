import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("user_guide/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONAL = ("hmmlearn", "pandas", "skops")
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield text[: match.start()].count("\n") + 1, match.group(1)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if list(blocks(page))], ids=lambda page: page.stem
)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    for package in OPTIONAL:
        if re.search(rf"(import|from) {package}", page.read_text(encoding="utf-8")):
            pytest.importorskip(package)
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_name_public_things(page):
    import skawhmm
    from skawhmm import datasets

    for name in re.findall(r"`~?skawhmm\.([\w.]+)`", page.read_text(encoding="utf-8")):
        thing = skawhmm
        for part in name.split("."):
            thing = datasets if part == "datasets" else getattr(thing, part)


def test_api_page_lists_every_public_name():
    import skawhmm
    from skawhmm import datasets

    lines = (DOCS / "api.md").read_text(encoding="utf-8").split()
    missing = {*skawhmm.__all__, *datasets.__all__} - set(lines)
    assert not missing, f"docs/api.md does not list {sorted(missing)}"
