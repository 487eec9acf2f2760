import ast
from pathlib import Path

import pytest

import skawhmm

# A module imports only from lines above its own.
STAGES = """
_validation _linalg _transport _storage _resume _hmmlearn _ground_cost _state_costs
_model_checks _sequences _densities _assignment _nearest _variational _parallel
_emissions _registration _components _chains _passes _starts _symbols _alpha_path
_inference _em _relative _bounds _discrete _inputs _metrics
_categorical _poisson _discrete_fit _preprocessing _climb _coordinates
_models
_prepared _sampled_registration _divergence _single_fit _averaging
_aggregated _coupling _engines _pooled_fit _barycenter _partition
_distances _fitting _reference_fit
_pairwise _transformers _embedding
_search _references _class_distance
_pairwise_transformers _neighbors_mixin _cluster
_neighbors _retriever
_neighbors_cv
_displays _explorer datasets _versions
_registration_display _map_display _matrix_display
"""
STAGE_OF = {
    name: stage
    for stage, line in enumerate(STAGES.splitlines())
    for name in line.split()
}
HOME = Path(skawhmm.__file__).parent
FILES = {
    path: path.relative_to(HOME).with_suffix("").parts[0]
    for path in sorted(HOME.rglob("*.py"))
    if path != HOME / "__init__.py"
}


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in getattr(node, "names", [])]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            names = [f"{node.module}.{name}" for name in names]
        elif not isinstance(node, ast.Import):
            continue
        yield from (n.split(".")[1] for n in names if n.startswith("skawhmm."))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_imports_come_from_lower_stages(path):
    name = FILES[path]
    assert name in STAGE_OF, f"{name} is in no stage of this table"
    for other in set(imported_modules(path)) - {
        "datasets" if name == "datasets" else ""
    }:
        assert STAGE_OF[other] < STAGE_OF[name], f"{name} imports {other}"
