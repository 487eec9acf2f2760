"""The explorer in a browser, or in a frame of a notebook."""

import html
import sys
import tempfile
import webbrowser
from pathlib import Path


class ExplorerPage:
    """An interactive page, which notebooks show in a frame.

    Parameters
    ----------
    text : str
        The page as HTML.

    title : str
        Heading of the page.

    Attributes
    ----------
    html : str
        The page as HTML.

    title : str
        Heading of the page.
    """

    def __init__(self, text: str, title: str) -> None:
        self.html = text
        self.title = title

    def open(self) -> Path:
        """Open the page in a browser."""
        path = Path(tempfile.mkdtemp(prefix="skawhmm-")) / "map.html"
        path.write_text(self.html, encoding="utf-8")
        webbrowser.open(path.as_uri())
        return path

    def __repr__(self) -> str:
        return f"ExplorerPage(title={self.title!r})"

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 46rem; border: 1px solid #8886"
        text = html.escape(self.html)
        title = html.escape(self.title)
        return f'<iframe srcdoc="{text}" title="{title}" style="{style}"></iframe>'


def in_notebook():
    """Return whether the code runs in a notebook."""
    # A notebook imports IPython before any user code runs.
    package = sys.modules.get("IPython")
    shell = None if package is None else package.get_ipython()
    return hasattr(shell, "kernel")
