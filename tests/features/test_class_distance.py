import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMTransformer, pairwise_hmm_distances
from skawhmm.features import HMMClassDistance


def test_class_distance_is_the_distance_to_pooled_models(make_sequences):
    X, y = make_sequences(n_sequences=10, n_features=3)
    y = np.array(["slow", "fast"])[y]
    hmm = HMMTransformer(n_components=2, random_state=0)
    step = HMMClassDistance({"one": [0], "two": [2, 1]}, hmm=hmm, alpha=0.4).fit(X, y)
    features = step.transform(X)
    names = ["one_fast", "one_slow", "two_fast", "two_slow"]
    assert list(step.get_feature_names_out()) == names
    part = [x[:, [2, 1]] for x in X]
    slow = [x for x, label in zip(part, y, strict=True) if label == "slow"]
    pooled = HMMTransformer(n_components=2, init="pooled", random_state=0).fit(slow)
    wanted = pairwise_hmm_distances(
        hmm.fit_transform(part), pooled.pooled_model_, alpha=0.4
    )
    assert_allclose(features[:, 3:], wanted)


def test_class_distances_are_smallest_to_the_own_class(make_sequences):
    X, y = make_sequences(n_sequences=24, n_timesteps=(60, 80))
    hmm = HMMTransformer(n_components=2, random_state=0)
    step = HMMClassDistance([[0, 1]], hmm=hmm, alpha=0.9).fit(X[:12], y[:12])
    nearest = step.classes_[np.argmin(step.transform(X[12:]), axis=1)]
    assert np.mean(nearest == y[12:]) > 0.8


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[0, 7]], r"groups\['group0'\] must hold channels from 0 to 1"),
        ([[]], r"groups\['group0'\] must be a list of channel numbers"),
        ({}, "groups must hold at least one group"),
        ({"a": [0.5]}, r"groups\['a'\] must be a list of channel numbers"),
    ],
)
def test_bad_groups_are_named(make_sequences, groups, message):
    X, y = make_sequences()
    with pytest.raises(ValueError, match=message):
        HMMClassDistance(groups).fit(X, y)


def test_class_distance_needs_sequences(make_batch):
    with pytest.raises(TypeError, match="X must hold sequences"):
        HMMClassDistance().fit(make_batch(), np.arange(4) % 2)


def test_groups_of_one_name_are_refused(make_sequences):
    X, y = make_sequences()
    with pytest.raises(ValueError, match="groups must have distinct names, got '1' tw"):
        HMMClassDistance({1: [0], "1": [1]}).fit(X, y)
