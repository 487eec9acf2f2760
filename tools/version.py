#!/usr/bin/env python3
"""Print the version of the package, which its `__init__.py` states, without importing."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "skawhmm" / "__init__.py"

for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body:
    if isinstance(node, ast.Assign) and node.targets[0].id == "__version__":
        print(ast.literal_eval(node.value))
