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
from skawhmm.utils._checks import check_random, check_real, check_seed


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
