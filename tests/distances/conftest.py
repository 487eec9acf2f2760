import json
import os
from pathlib import Path

import numpy as np
import pytest

N_CASES = 100


@pytest.fixture(scope="session")
def cases():
    home = os.environ.get("SKAWHMM_DATA")
    if not home:
        pytest.skip("SKAWHMM_DATA is not set: no frozen cases")
    path = Path(home).parent / "oracle" / "oracle_public.npz"
    if not path.exists():
        pytest.skip("no oracle/oracle_public.npz beside the data")
    with np.load(path, allow_pickle=False) as archive:
        cases = json.loads(str(archive["meta"]))
        for key in archive.files:
            if "." in key:
                n, name = key.split(".", 1)
                cases[int(n)][name] = archive[key]
    assert len(cases) == N_CASES
    return cases


@pytest.fixture(params=range(N_CASES))
def case(cases, request):
    """Arrays of one frozen case: two models and what an independent program gave."""
    return cases[request.param]
