#!/usr/bin/env python3
"""Print the version that the package states in its `__init__.py`."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "skawhmm" / "__init__.py"


def stated_version():
    """Return the version without importing the package, which may not be built."""
    for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__version__":
            return ast.literal_eval(node.value)
    raise ValueError(f"{SOURCE} states no __version__.")


if __name__ == "__main__":
    print(stated_version())
