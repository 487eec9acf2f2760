import ast
import re
from pathlib import Path

import pytest

import skawhmm

# A folder imports from itself and from folders on earlier lines.
FOLDERS = """
utils
numerics
sequences
emissions
models
fitting
distances
_estimator
features
neighbors
cluster
classification
groups
plot
datasets
"""
STAGE_OF = {
    name: stage
    for stage, line in enumerate(FOLDERS.split("\n"))
    for name in line.split()
}
HOME = Path(skawhmm.__file__).parent
FILES = sorted({*HOME.rglob("*.py")} - {HOME / "__init__.py"})
KERNELS = sorted({*HOME.rglob("*.pyx"), *HOME.rglob("*.pxd")})


def imported_folders(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in getattr(node, "names", [])]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            names = [f"{node.module}.{name}" for name in names]
        elif not isinstance(node, ast.Import):
            continue
        yield from (n.split(".")[1] for n in names if n.startswith("skawhmm."))


def folders_of_a_kernel(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"^\s*from \.|^\s*c?import skawhmm", text, re.MULTILINE)
    return re.findall(r"^\s*from skawhmm\.(\w+)[\w.]* c?import", text, re.MULTILINE)


@pytest.mark.parametrize(
    "path", FILES + KERNELS, ids=lambda p: str(p.relative_to(HOME))
)
def test_imports_come_from_earlier_folders(path):
    folder = path.relative_to(HOME).with_suffix("").parts[0]
    imported = imported_folders if path.suffix == ".py" else folders_of_a_kernel
    for other in set(imported(path)) - {folder}:
        assert STAGE_OF[other] < STAGE_OF[folder], f"{folder} imports {other}"
