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
monitoring
plot
datasets
"""
STAGE_OF = {
    name: stage
    for stage, line in enumerate(FOLDERS.split("\n"))
    for name in line.split()
}
HOME = Path(skawhmm.__file__).parent
TESTS = Path(__file__).parent
FILES = sorted({*HOME.rglob("*.py")} - {HOME / "__init__.py"})
KERNELS = sorted({*HOME.rglob("*.pyx"), *HOME.rglob("*.pxd")})


# Where modules are tested that neither have a test file of their name nor are named by
# a test of their folder.
TESTED_IN = {
    "sequences/_missing": "sequences/test_symbols.py",
    "emissions/_checks": "models/test_batch.py",
    "emissions/_likelihood": "emissions/test_base.py",
    "emissions/_model": "emissions/test_base.py",
    "emissions/_parameters": "emissions/test_base.py",
    "emissions/_registry": "emissions/test_base.py",
    "emissions/_simple": "emissions/test_base.py",
    "emissions/_gaussian_densities": "emissions/test_gaussian_scores.py",
    "emissions/_gaussian_divergences": "distances/test_kl_variational.py",
    "emissions/_gaussian_runs": "fitting/test_runs.py",
    "emissions/_state_em": "fitting/test_runs.py",
    "emissions/_hmmlearn": "fitting/test_transformer.py",
    "emissions/_mmd": "distances/test_mmd.py",
    "fitting/_hmmlearn_engine": "fitting/test_transformer.py",
    "groups/_measures": "groups/test_effects.py",
    "groups/_support": "groups/test_effects.py",
    "models/_checks": "models/test_batch.py",
    "models/_conversions": "models/test_exchange.py",
    "models/_dynamax": "exchange/test_dynamax.py",
    "models/_forms": "models/test_exchange.py",
    "models/_glhmm": "exchange/test_glhmm.py",
    "models/_pomegranate": "exchange/test_pomegranate.py",
    "models/_stack": "models/test_batch.py",
    "monitoring/_files": "monitoring/test_monitor.py",
    "monitoring/_stream": "monitoring/test_monitor.py",
    "neighbors/_base": "neighbors/test_estimators.py",
    "neighbors/_cv": "neighbors/test_estimators.py",
    "neighbors/_retriever": "neighbors/test_search.py",
    "numerics/_filtering": "models/test_causal.py",
    "numerics/_forward_backward": "models/test_inference.py",
    "numerics/_paths": "models/test_inference.py",
    "plot/_graph": "plot/test_model.py",
    "sequences/_from_arrays": "sequences/test_containers.py",
    "sequences/_from_tables": "sequences/test_containers.py",
    "sequences/_reading": "sequences/test_containers.py",
    "sequences/_tables": "sequences/test_containers.py",
    "utils/_colors": "plot/test_style.py",
    "utils/_tables": "groups/test_tables.py",
}


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


def is_named(module):
    """Whether a test of its folder imports or names a module."""
    files = (TESTS / module.parent).glob("test_*.py")
    return any(
        re.search(rf"\b{module.name}\b", path.read_text(encoding="utf-8"))
        for path in files
    )


@pytest.mark.parametrize(
    "path",
    [path for path in FILES + KERNELS if path.name != "__init__.py"],
    ids=lambda p: str(p.relative_to(HOME)),
)
def test_every_module_has_a_test(path):
    # Kernels are tested with the module that calls them.
    module = path.relative_to(HOME).with_suffix("")
    module = module.with_name(module.name.removesuffix("_kernels"))
    own = TESTS / module.parent / f"test{module.name}.py"
    other = TESTED_IN.get(module.as_posix())
    if other is None:
        assert own.exists() or is_named(module)
    else:
        assert (TESTS / other).exists()
        assert not own.exists()


def test_modules_that_are_tested_elsewhere_exist():
    known = {p.relative_to(HOME).with_suffix("").as_posix() for p in FILES + KERNELS}
    assert TESTED_IN.keys() <= known
