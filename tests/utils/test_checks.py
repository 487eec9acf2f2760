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
