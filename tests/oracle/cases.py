"""Reader of the frozen cases; README.md says what their fields are."""

import json
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_name("cases.npz")
N_CASES = 100


def load():
    """Return one dict of arrays per case: two models, and what is true of them."""
    with np.load(PATH, allow_pickle=False) as archive:
        cases = json.loads(str(archive["meta"]))
        for key in archive.files:
            if "." in key:
                n, name = key.split(".", 1)
                cases[int(n)][name] = archive[key]
    return cases


def model(case, number):
    """Return the first or second model of a case as the dict the reference takes."""
    return {name: case[f"{name}{number}"] for name in ("T", "pi", "mu", "Sigma")}
