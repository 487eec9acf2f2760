"""Random streams of callers and of items."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import check_random_state

from skawhmm import (
    IAW,
    KL,
    HMMEmbedding,
    HMMKMeans,
    HMMTransformer,
    dynamics_gain,
    hmm_barycenter,
    hmm_group_test,
    make_classifier,
    pairwise_hmm_distances,
)
from skawhmm.datasets import make_hmm_sequences
from skawhmm.utils._checks import check_random, check_seed
from skawhmm.utils._seeds import item_rng, random_stream

X, Y = make_hmm_sequences(12, n_timesteps=20, random_state=0)
MODELS = HMMTransformer(2, random_state=0).fit_transform(X)


def fitted(make, method):
    return lambda state: getattr(make(random_state=state).fit(X, Y), method)(X)


USES = {
    "HMMTransformer": lambda state: (
        HMMTransformer(2, random_state=state).fit_transform(X).means
    ),
    "HMMEmbedding": fitted(lambda **kw: HMMEmbedding(2, **kw), "transform"),
    "HMMKMeans": lambda state: HMMKMeans(2, random_state=state).fit(MODELS).labels_,
    "make_classifier": fitted(
        lambda **kw: make_classifier(cv=2, **kw), "decision_function"
    ),
    "hmm_barycenter": lambda state: hmm_barycenter(MODELS, random_state=state)[0].means,
    "sample": lambda state: MODELS.sample(5, random_state=state)[0],
    "KL": lambda state: pairwise_hmm_distances(MODELS, metric=KL(random_state=state)),
    "IAW": lambda state: pairwise_hmm_distances(MODELS, metric=IAW(random_state=state)),
    "hmm_group_test": lambda state: (
        hmm_group_test(MODELS, Y, n_permutations=19, random_state=state).pvalue
    ),
    "dynamics_gain": lambda state: (
        dynamics_gain(X, Y, n_permutations=2, cv=2, random_state=state).gain
    ),
}


@pytest.mark.parametrize("use", USES)
def test_generators_are_accepted_and_repeatable(use):
    one, two = (USES[use](np.random.default_rng(3)) for _ in range(2))
    assert_array_equal(one, two)


def test_a_generator_goes_on_after_each_use():
    rng = np.random.default_rng(0)
    assert check_seed(rng) != check_seed(rng)
    assert random_stream(rng).randint(9**9) != random_stream(rng).randint(9**9)


@pytest.mark.parametrize("state", [0, 7, np.int64(3)])
def test_integers_and_random_states_are_those_of_scikit_learn(state):
    wanted = check_random_state(state).random_sample(4)
    assert_array_equal(random_stream(state).random_sample(4), wanted)
    given = np.random.RandomState(1)
    assert random_stream(given) is given


def test_the_stream_of_an_item_depends_on_its_content(rng):
    x, y = rng.normal(size=(2, 5))
    first = item_rng(3, 1, x).random(3)
    assert_array_equal(item_rng(3, 1, x.copy()).random(3), first)
    for other in ((4, 1, x), (3, 2, x), (3, 1, y)):
        assert (item_rng(*other).random(3) != first).all()
    assert_array_equal(
        item_rng(3, 1).random(3), np.random.default_rng([3, 1]).random(3)
    )


def test_the_streams_of_items_are_children_of_a_root():
    root = np.random.SeedSequence(5)
    wanted = np.random.default_rng(root.spawn(3)[2]).random(4)
    assert_array_equal(item_rng(np.random.SeedSequence(5), 2).random(4), wanted)


@pytest.mark.parametrize("value", ["now", -1, 0.5, True, np.random.PCG64(0)])
def test_other_random_states_are_named(value):
    with pytest.raises((TypeError, ValueError), match=r"^seed must be .* Generator"):
        check_random("seed", value)
