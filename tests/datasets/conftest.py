import os
from pathlib import Path

import pytest


@pytest.fixture
def shared():
    """Return a function that finds a file of real data, or skips the test."""

    def found(name):
        path = Path(os.environ.get("SKAWHMM_DATA", "missing")) / name
        if not path.exists():
            pytest.skip(f"needs {name} in the folder named by SKAWHMM_DATA")
        return path

    return found
