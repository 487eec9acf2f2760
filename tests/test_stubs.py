"""The stubs of compiled modules name what is there, with the same arguments."""

import subprocess
import sys
from pathlib import Path

import pytest

import skawhmm

pytest.importorskip("mypy.stubtest")
HOME = Path(skawhmm.__file__).parent

# What Cython adds to every module.
IGNORED = r"""
.*\.__test__
.*\.__pyx_capi__
"""


def test_every_kernel_has_a_stub():
    stubs = {path.with_suffix(".pyx") for path in HOME.rglob("*.pyi")}
    assert stubs == {*HOME.rglob("*.pyx")}


def test_stubs_match_the_compiled_modules(tmp_path):
    settings = HOME.parent / "pyproject.toml"
    if not settings.exists():
        pytest.skip("needs the settings of mypy in the repository")
    (tmp_path / "ignored").write_text(IGNORED, encoding="utf-8")
    modules = [
        ".".join(path.relative_to(HOME.parent).with_suffix("").parts)
        for path in HOME.rglob("*.pyi")
    ]
    options = ["--mypy-config-file", settings, "--allowlist", tmp_path / "ignored"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--concise", *options, *modules],
        cwd=HOME.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
