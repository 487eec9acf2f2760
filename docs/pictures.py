"""Figures drawn by the code of the pages and of the docstrings.

`draw_all` runs the examples of every display, and the code blocks of each page that
shows a figure of its own, and saves each figure they make. So a figure always matches
its code: the second figure of `retrieval.md` is `retrieval_2.png`.
"""

import doctest
import os
import re
import tempfile
import warnings
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

import skawhmm
from skawhmm import plot

HERE = Path(__file__).parent
FOLDER = HERE / "api" / "generated" / "pictures"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"generated/pictures/([a-z_]+)_\d+\.png")


def displays():
    """Return the names of all displays."""
    return [name for name in plot.__all__ if name.endswith("Display")]


def pages():
    """Return the pages that show figures of their own code."""
    return [
        page
        for page in sorted([*HERE.glob("*.md"), *HERE.glob("user_guide/*.md")])
        if page.stem in SHOWN.findall(page.read_text(encoding="utf-8"))
    ]


def figures_of(blocks):
    """Run blocks of examples in turn; yield the figures that each of them makes."""
    names = {}
    for block in blocks:
        for example in doctest.DocTestParser().get_examples(block):
            if example.exc_msg is None:  # others show an error
                exec(compile(example.source, "<example>", "exec"), names)
        yield [plt.figure(number) for number in plt.get_fignums()]
        plt.close("all")


def saved(figure, name):
    """Write a figure; its white background stays readable on dark pages."""
    figure.savefig(FOLDER / f"{name}.png", dpi=110, bbox_inches="tight")


def draw_all(*_):
    """Draw all pictures into the folder of generated pages, unless they are new."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    sources = [*Path(skawhmm.__file__).parent.rglob("*.py"), Path(__file__)]
    sources += pages()
    drawn = [path.stat().st_mtime for path in FOLDER.glob("*.png")]
    if drawn and min(drawn) > max(path.stat().st_mtime for path in sources):
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(action="ignore"),
        mpl.rc_context({"backend": "agg"}),
    ):
        home = Path.cwd()
        os.chdir(folder)  # some examples write files
        try:
            for name in displays():
                text = getattr(plot, name).__doc__
                for figures in figures_of([text]):
                    saved(figures[-1], name)
            for page in pages():
                text = page.read_text(encoding="utf-8")
                count = 0
                for figures in figures_of(BLOCK.findall(text)):
                    for figure in figures:
                        count += 1
                        saved(figure, f"{page.stem}_{count}")
        finally:
            os.chdir(home)


def show_picture(_app, what, name, _obj, _options, lines):
    """Put the picture of a display after its description."""
    if what == "class" and name.rpartition(".")[2] in displays():
        picture = f"/api/generated/pictures/{name.rpartition('.')[2]}.png"
        lines += ["", f".. image:: {picture}", "   :alt: What the example draws", ""]
