import ast
from pathlib import Path

import pytest

import skawhmm

# A folder imports from itself and from folders on earlier lines.
FOLDERS = """
utils
sequences numerics
emissions
models
fitting
distances
_base
features neighbors cluster
plot datasets
"""
STAGE_OF = {
    name: stage
    for stage, line in enumerate(FOLDERS.split("\n"))
    for name in line.split()
}
HOME = Path(skawhmm.__file__).parent
FILES = sorted({*HOME.rglob("*.py")} - {HOME / "__init__.py"})


def imported_folders(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in getattr(node, "names", [])]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            names = [f"{node.module}.{name}" for name in names]
        elif not isinstance(node, ast.Import):
            continue
        yield from (n.split(".")[1] for n in names if n.startswith("skawhmm."))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HOME)))
def test_imports_come_from_earlier_folders(path):
    folder = path.relative_to(HOME).with_suffix("").parts[0]
    for other in set(imported_folders(path)) - {folder}:
        assert STAGE_OF[other] < STAGE_OF[folder], f"{folder} imports {other}"
