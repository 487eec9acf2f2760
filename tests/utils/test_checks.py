from fractions import Fraction

import numpy as np
import pytest

from skawhmm import (
    IAW,
    HMMKMeans,
    HMMTransformer,
    hmm_barycenter,
    pairwise_hmm_distances,
)
from skawhmm.datasets import make_hmm_sequences
from skawhmm.utils._checks import (
    check_boolean,
    check_choice,
    check_counts,
    check_integer,
    check_n_jobs,
    check_random,
    check_real,
    check_seed,
)


@pytest.mark.parametrize("seed", [-1, "one", 1.5, [1, 2]])
def test_seeds_out_of_range_name_the_argument(seed, make_batch):
    models, X = make_batch(), [np.arange(9.0)] * 2
    for call in (
        lambda: HMMTransformer(random_state=seed).fit(X),
        lambda: HMMKMeans(2, random_state=seed).fit(models),
        lambda: hmm_barycenter(models, random_state=seed),
        lambda: models.sample(5, random_state=seed),
        lambda: pairwise_hmm_distances(models, metric=IAW(random_state=seed)),
        lambda: make_hmm_sequences(4, random_state=seed),
    ):
        with pytest.raises((TypeError, ValueError), match="random_state must be"):
            call()


def test_seeds_that_scikit_learn_cannot_use_are_refused():
    with pytest.raises(ValueError, match=r"random_state must be .*2\*\*32 - 1"):
        HMMTransformer(random_state=2**32).fit([np.arange(9.0)])


def test_an_open_end_is_not_allowed():
    with pytest.raises(
        ValueError, match=r"tol must be a number in \[0, inf\), got inf"
    ):
        check_real("tol", np.inf, 0, np.inf)
    assert check_real("radius", np.inf, 0, np.inf, allow_infinity=True) == np.inf
    with pytest.raises(ValueError, match=r"radius must be a number in \[0, inf\], got"):
        check_real("radius", -1, 0, np.inf, allow_infinity=True)
    with pytest.raises(ValueError, match=r"level must be a number in \[0, 1\), got 1"):
        check_real("level", 1, 0, 1, include_high=False)
    assert check_real("level", 0.5, 0, 1, include_high=False) == 0.5


@pytest.mark.parametrize("seed", [-1, 2**32, 2**70, 0.5, "now", True, [1]])
def test_seeds_out_of_range_are_named(seed):
    for check in (check_seed, lambda value: check_random("random_state", value)):
        with pytest.raises(
            (TypeError, ValueError), match=r"^random_state must be an in"
        ):
            check(seed)
    assert check_seed(2**32 - 1) == 2**32 - 1


CHECKS = {
    "real": lambda value: check_real("it", value, 0, np.inf),
    "integer": lambda value: check_integer("it", value, 1),
    "counts": lambda value: check_counts("it", value),
    "n_jobs": lambda value: check_n_jobs("it", value),
    "random": lambda value: check_random("it", value),
    "choice": lambda value: check_choice("it", value, ("a", "b")),
    "boolean": lambda value: check_boolean("it", value),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (10**400, r"10+\.\.\."),
        (-(10**400), r"-10+\.\.\."),
        (10**5000, "<int too long to be written>"),
        (Fraction(10**400), r"Fraction\(10+\.\.\."),
        (np.array("x"), ".*'x'"),
        ("2", "'2'"),
        (1j, "1j"),
    ],
    ids=range(7),
)
def test_values_out_of_any_range_are_named_and_cut_short(check, value, shown):
    with pytest.raises(
        (TypeError, ValueError), match=f"^it must .*got {shown}"
    ) as told:
        check(value)
    assert len(str(told.value)) < 350


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int64])
def test_integers_of_numpy_become_those_of_python(kind):
    for check in ("integer", "n_jobs"):
        value = CHECKS[check](kind(100))
        assert (value, type(value)) == (100, int)
    assert CHECKS["counts"]([kind(100)]) == [100]
    assert type(CHECKS["real"](kind(100))) is float
    assert check_integer("it", 2**63 - 1, 1) == 2**63 - 1
