#!/usr/bin/env python3
"""Print the files of the package's folders that are not installed, one per line."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "skawhmm"
SHIPPED = {".py", ".pyi", ".typed", ".html"}

for path in sorted(PACKAGE.rglob("*")):
    if path.is_file() and path.suffix not in SHIPPED:
        print(path.relative_to(PACKAGE).as_posix())
