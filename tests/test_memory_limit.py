"""Too little memory: a readable error, and nothing is changed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from skawhmm.distances._pairwise import _empty_matrix

SCRIPT = Path(__file__).with_name("memory_limits.py")
MATRICES = {
    "matrix",
    "components",
    "map",
    "test",
    "neighbors",
    "classifier",
    "classifier_cv",
    "medoids",
}
# The text of the error.
WORDS = {
    **dict.fromkeys(MATRICES, r"20000 models need [36]\.[24] GB .*out='matrix\.npy'"),
    "load": r"large\.npz' holds 64 MB, for which there is no room",
    **dict.fromkeys(("pooled", "embedding", "views"), r"Unable to allocate .* MiB"),
}


def test_too_large_matrix_error_says_what_to_do():
    with pytest.raises(MemoryError, match=r"800000\.0 GB .*dtype='float32'.*_chunked"):
        _empty_matrix((10**7, 10**7), float)


@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is that of Linux")
def test_too_little_memory_raises_and_changes_nothing():
    command = [sys.executable, "-W", "error", SCRIPT]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    found = [line.split("\t") for line in done.stdout.splitlines()]
    assert {name for name, *_ in found} == WORDS.keys()
    for name, state, end in found:
        assert state == "kept", name
        assert re.match(f"MemoryError: .*{WORDS[name]}", end), end
