import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skawhmm import HMMBatch, HMMTransformer, hmm_group_test, pairwise_hmm_distances
from skawhmm.groups._amounts import compared_amounts
from skawhmm.groups._design import check_design


def models_with(**info):
    n_models = len(next(iter(info.values())))
    rng = np.random.default_rng(0)
    return HMMBatch(
        np.ones((n_models, 1, 1)),
        rng.normal(size=(n_models, 1, 1)),
        np.ones((n_models, 1, 1)),
        info=info,
    )


def amounts_of(models, groups, **design):
    found = check_design(models, groups, **design)
    return compared_amounts(models, found, 999, (0,))


def test_amounts_are_compared_as_kruskal_and_wallis_do(rng):
    group = np.repeat(list("abc"), 12)
    for shift in (0, 20, 40):
        frames = rng.integers(50, 150, 36) + shift * (group == "c")
        found = amounts_of(models_with(n_timesteps=frames), group)["n_timesteps"]
        wanted = stats.kruskal(*(frames[group == name] for name in "abc"))
        assert_allclose(found.pvalue, wanted.pvalue, atol=0.04)
        assert found.medians == {
            name: np.median(frames[group == name]) for name in "abc"
        }


def test_equal_amounts_do_not_differ_whatever_their_number(rng):
    group = np.tile(["a", "b"], 9)
    site = np.repeat([0, 1, 2], 6)
    for frames in (np.full(18, 77), np.array([60, 70, 400])[site]):
        found = amounts_of(models_with(n_timesteps=frames), group, strata=site)
        assert found["n_timesteps"].pvalue == 1
        assert not found["n_timesteps"].differs


def test_amounts_that_differ_only_between_strata_are_not_reported():
    # Long recordings at one site, which has most of one group.
    group = np.array(list("aaab") * 5 + list("abbb") * 5)
    site = np.repeat([0, 1], 20)
    models = models_with(n_timesteps=np.where(site == 0, 400, 60))
    assert amounts_of(models, group)["n_timesteps"].differs
    assert amounts_of(models, group, strata=site)["n_timesteps"].pvalue == 1


def test_trials_are_amounts_too_and_units_are_averaged():
    group = np.repeat(["a", "b"], 12)
    trials = np.where(group == "a", 24, 6)
    models = models_with(n_timesteps=np.full(24, 100), n_trials=trials)
    found = amounts_of(models, group, units=np.repeat(np.arange(12), 2))
    assert found["n_trials"].differs
    assert not found["n_timesteps"].differs
    assert found["n_trials"].medians == {"a": 24, "b": 6}


def test_tiny_differences_are_found_but_not_warned_of():
    group = np.repeat(["a", "b"], 10)
    models = models_with(n_timesteps=np.where(group == "a", 400, 401))
    result = hmm_group_test(models, group, n_permutations=99, random_state=0)
    assert result.amounts["n_timesteps"].pvalue == 0.01
    assert "median n_timesteps (a: 400, b: 401), p = 0.01" in repr(result)
    assert "median n_timesteps" in result._repr_html_()


@pytest.mark.parametrize(
    "column", [["60"] * 12, np.ones((12, 2)), [np.nan] * 12], ids=["text", "2-D", "NaN"]
)
def test_columns_that_do_not_count_are_ignored(column):
    models = models_with(n_timesteps=column)
    assert amounts_of(models, list("aaaaaabbbbbb")) == {}


def recordings(lengths, seed):
    """Return recordings of one process."""
    truth = HMMBatch(
        [[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]],
        [[[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]],
        np.ones((1, 3, 2)),
    )
    return [
        truth.sample(int(n), random_state=1000 * seed + k)[0][0]
        for k, n in enumerate(lengths)
    ]


@pytest.mark.filterwarnings("ignore:The groups also differ in spread")
def test_unequal_amounts_of_data_raise_a_warning():
    group = np.repeat(["a", "b"], 15)
    X = recordings(np.where(group == "a", 60, 400), 0)
    models = HMMTransformer(3, random_state=0).fit_transform(X)
    with pytest.warns(UserWarning, match="cut them to a common length"):
        result = hmm_group_test(models, group, n_permutations=99, random_state=0)
    assert result.pvalue <= 0.05
    assert result.amounts["n_timesteps"].medians == {"a": 60, "b": 400}
    # What the warning says to do.
    n = min(map(len, X))
    models = HMMTransformer(3, random_state=0).fit_transform([x[:n] for x in X])
    result = hmm_group_test(models, group, n_permutations=99, random_state=0)
    assert result.pvalue > 0.05
    assert not result.amounts["n_timesteps"].differs


def test_distances_and_given_models_have_no_amounts(make_batch):
    models = make_batch(8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X in (models, pairwise_hmm_distances(models)):
            result = hmm_group_test(X, list("aaaabbbb"), n_permutations=99)
            assert result.amounts == {}


def test_the_order_of_models_does_not_matter(rng):
    group = np.repeat(["a", "b"], 10)
    frames = rng.integers(50, 70, 20) + 5 * (group == "b")
    order = rng.permutation(20)
    one = amounts_of(models_with(n_timesteps=frames), group)
    two = amounts_of(models_with(n_timesteps=frames[order]), group[order])
    assert one["n_timesteps"].pvalue == two["n_timesteps"].pvalue


def test_groups_that_share_no_stratum_are_compared_within_theirs():
    group = np.array(list("aabb" * 3 + "ccdd" * 3))
    site = np.repeat([0, 1], 12)
    frames = np.where(np.isin(group, ["a", "c"]), 400, 60)
    found = amounts_of(models_with(n_timesteps=frames), group, strata=site)
    assert found["n_timesteps"].pvalue <= 0.05
    frames = np.where(np.isin(group, ["a", "b"]), 400, 60)
    found = amounts_of(models_with(n_timesteps=frames), group, strata=site)
    assert found["n_timesteps"].pvalue == 1
