"""Random calls of all public names; `benchmarks/fuzz.py` runs many more."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from fuzzing.judge import GOOD, OUTCOMES, is_clear, names_argument
from fuzzing.kinds import KINDS, kind_of, trial_of
from fuzzing.names import PUBLIC
from fuzzing.planted import planted
from fuzzing.pool import findings

import skawhmm
from skawhmm import HMMTransformer

N_CASES = 300
# Result classes, and names without arguments.
RESULTS = {
    *("Alignment", "DistanceInterval", "Explanation", "GroupTestResult"),
    *("RegistrationInterval", "StabilityCurve", "StateEffects", "show_versions"),
}
# Displays of sequences of symbols, which random calls do not draw; see tests/plot.
UNREACHED = {
    *("MedoidSequencesDisplay", "SequenceFrequencyDisplay", "SequenceIndexDisplay"),
    "StateDistributionDisplay",
}
# Contracts have no instances.
PROTOCOLS = {
    *("Distance", "AggregatedDistance", "RegisteringDistance", "LearnedDistance"),
    *("Emission", "SimpleEmission"),
}


def test_random_cases_have_good_outcomes():
    found = [*findings(0, range(N_CASES))]
    bad = [
        f"case {f.number}: {f.outcome}: {f.text}: {f.message}"
        for f in found
        if f.outcome not in GOOD
    ]
    assert len(found) == N_CASES
    assert not bad, "\n".join(bad)
    # Both sides of the checks are reached.
    counts = Counter(f.outcome for f in found)
    assert min(counts[outcome] for outcome in GOOD) > N_CASES / 5


def test_every_outcome_is_distinguished():
    found = {
        f.number: f for f in findings(0, range(len(OUTCOMES)), draw=planted, limit=1)
    }
    assert [found[n].outcome for n in range(len(OUTCOMES))] == [*OUTCOMES]


# Some cases fit an estimator while they are drawn, and warn of few sequences.
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_cases_are_reproducible():
    for number in range(60):
        (kind, one), (_, two) = trial_of(3, number), trial_of(3, number)
        assert one.text == two.text
        assert kind == kind_of(3, number)


def test_all_kinds_are_drawn():
    assert {kind_of(0, number) for number in range(2000)} == {*KINDS}


def test_every_public_name_is_called():
    folder = Path(__file__).parent / "fuzzing"
    text = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    missing = {*PUBLIC} - {*re.findall(r"\w+", text)}
    assert missing <= RESULTS | PROTOCOLS | UNREACHED | {*skawhmm.datasets.__all__}


@pytest.mark.parametrize(
    ("X", "clear"), [("text", True), ([[1, "a"]], True), (np.zeros((2, 3, 4, 5)), True)]
)
def test_errors_of_the_package_count_as_clear(X, clear):
    with pytest.raises((TypeError, ValueError)) as caught:
        HMMTransformer().fit(X)
    assert is_clear(caught.value, {"X"}) is clear
    assert not is_clear(caught.value, {"metric"})


def test_errors_of_numpy_count_as_unclear():
    with pytest.raises(ValueError, match="could not convert") as caught:
        np.asarray("X", dtype=float)
    assert not is_clear(caught.value, {"X"})


def test_articles_do_not_count_as_arguments():
    assert not names_argument("X must be a number", {"a"})
    assert names_argument("a must be an HMMBatch", {"a"})
