"""What tests and the examples of docstrings share."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _closed_figures():
    """Close figures that were left open: matplotlib warns if there are too many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
