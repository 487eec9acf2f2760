import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from scipy.spatial.distance import cdist

from skawhmm import HMMBatch, HMMTransformer, Trials, hmm_group_test
from skawhmm.groups._matching import check_match, matched_models
from skawhmm.sequences._checked import CheckedSequences

HMM = HMMTransformer(2, random_state=0, max_iter=20)


def recordings(rng, lengths, shift=0.0):
    truth = HMMBatch(
        [[[0.8, 0.2], [0.2, 0.8]]], [[[0.0 + shift], [3.0 + shift]]], np.ones((1, 2, 1))
    )
    seeds = rng.integers(2**31, size=len(lengths))
    return [
        truth.sample(int(n), random_state=int(seed))[0][0]
        for n, seed in zip(lengths, seeds, strict=True)
    ]


def test_all_models_have_equal_amounts(rng):
    X = CheckedSequences(recordings(rng, [30, 50, 80]))
    batches = [matched_models(HMM, X, "frames", seed) for seed in range(10)]
    for models in batches:
        assert_array_equal(models.info["n_timesteps"], [30] * 3)
    # The shortest recording is always the whole of it; the others vary.
    assert np.ptp([models.means[0, 0, 0] for models in batches]) == 0
    assert np.ptp([models.means[2, 0, 0] for models in batches]) > 0


def test_trials_are_matched_by_frames_or_by_number(rng):
    X = CheckedSequences(
        [Trials(recordings(rng, [6] * n)) for n in (4, 7)]
        + [Trials(recordings(rng, [5, 3, 9, 8, 12]))]
    )
    assert check_match("frames", X) == 24
    assert check_match("trials", X) == 4
    for seed in range(2):
        models = matched_models(HMM, X, "frames", seed)
        assert_array_equal(models.info["n_timesteps"], [24] * 3)
        models = matched_models(HMM, X, "trials", seed)
        assert_array_equal(models.info["n_trials"], [4] * 3)


def pvalues(rng, lengths, **more):
    found = []
    group = np.repeat([0, 1], 8)
    for seed in range(50):
        X = recordings(rng, np.repeat(lengths, 8))
        data = X if more else HMM.fit_transform(X)
        result = hmm_group_test(
            data, group, n_permutations=39, random_state=seed, **more
        )
        found.append(result.pvalue)
    return np.array(found)


@pytest.mark.filterwarnings("ignore:The groups")
def test_matched_amounts_hold_the_level(rng):
    plain = np.mean(pvalues(rng, [25, 300]) <= 0.05)
    matched = np.mean(pvalues(rng, [25, 300], match="frames", hmm=HMM) <= 0.05)
    assert plain > 0.12
    assert matched <= stats.binom(50, 0.05).ppf(0.9995) / 50


@pytest.mark.filterwarnings("ignore:The groups")
def test_matched_amounts_hold_the_level_in_groups_of_unequal_size(rng):
    # An average over choices has less noise in the long recordings.
    group = np.repeat([0, 1], [4, 16])
    found = []
    for seed in range(60):
        X = recordings(rng, np.array([25, 300])[group])
        options = {"n_permutations": 39, "random_state": seed}
        result = hmm_group_test(X, group, match="frames", hmm=HMM, **options)
        found.append(result.pvalue)
    assert np.mean(np.array(found) <= 0.05) <= stats.binom(60, 0.05).ppf(0.9995) / 60


def sessions(rng, group, counts, noise):
    """Return distances between sessions of units, their groups and their units."""
    unit = np.repeat(np.arange(len(group)), np.array(counts)[group])
    points = rng.normal(size=(len(group), 2))[unit]
    points += noise * rng.normal(size=points.shape)
    return cdist(points, points), group[unit], unit


def test_unequal_numbers_of_models_raise(rng):
    distances, groups, units = sessions(rng, np.arange(12) % 2, (2, 8), 1.0)
    message = r"units must have as many models .*0: 2, 1: 8.* match='models'"
    with pytest.raises(ValueError, match=message):
        hmm_group_test(distances, groups, units=units, random_state=0)


@pytest.mark.filterwarnings("ignore:The groups")
@pytest.mark.parametrize("sizes", [(6, 6), (3, 9)])
def test_equal_numbers_of_models_hold_the_level(rng, sizes):
    found = []
    for seed in range(100):
        given = sessions(rng, np.repeat([0, 1], sizes), (2, 8), 4.0)
        result = hmm_group_test(
            *given[:2],
            units=given[2],
            match="models",
            n_permutations=39,
            random_state=seed,
        )
        found.append([test.pvalue <= 0.05 for test in result.all_tests.values()])
    limit = stats.binom(100, 0.05).ppf(0.9995) / 100
    assert (np.mean(found, axis=0) <= limit).all()


def test_chosen_models_do_not_depend_on_their_order(rng):
    distances, groups, units = sessions(rng, np.repeat([0, 1], [4, 6]), (2, 5), 1.0)
    order = rng.permutation(len(groups))
    options = {"match": "models", "n_permutations": 99, "random_state": 0}
    one = hmm_group_test(distances, groups, units=units, **options)
    two = hmm_group_test(
        distances[np.ix_(order, order)], groups[order], units=units[order], **options
    )
    assert_array_equal(one.null_distribution, two.null_distribution)
    assert one.groups == {"0": 4, "1": 6}
    with pytest.raises(ValueError, match="match='models' needs units"):
        hmm_group_test(distances, groups, match="models")
    with pytest.raises(ValueError, match=r"hmm must be None with .* match='models'"):
        hmm_group_test(distances, groups, units=units, match="models", hmm=HMM)


@pytest.mark.filterwarnings("ignore:The groups")
def test_one_choice_is_made(rng):
    # An average over choices is less noisy for long recordings.
    X = recordings(rng, [30] * 4 + [200] * 4)
    group = np.repeat([0, 1], 4)
    options = {"n_permutations": 39, "random_state": 0}
    found = hmm_group_test(X, group, match="frames", hmm=HMM, **options)
    models = matched_models(HMM, CheckedSequences(X), "frames", 0)
    assert_array_equal(
        found.null_distribution,
        hmm_group_test(models, group, **options).null_distribution,
    )


def test_differences_are_found(rng):
    X = recordings(rng, [40] * 8) + recordings(rng, [90] * 8, shift=1.5)
    group = np.repeat(["x", "y"], 8)
    options = {"n_permutations": 99, "hmm": HMM, "match": "frames", "random_state": 0}
    result = hmm_group_test(X, group, **options)
    assert result.pvalue == 0.01
    assert result.amounts["n_timesteps"].medians == {"x": 40, "y": 40}
    again = hmm_group_test(X, group, n_jobs=2, **options)
    assert_array_equal(again.null_distribution, result.null_distribution)
    order = rng.permutation(16)
    moved = hmm_group_test([X[i] for i in order], group[order], **options)
    assert moved.pvalue == result.pvalue


def test_strata_and_covariates_are_for_units(rng):
    X = recordings(rng, [30, 60] * 8)
    result = hmm_group_test(
        X,
        [0, 1] * 8,
        strata=np.repeat(np.arange(8), 2),
        match="frames",
        hmm=HMM,
        n_permutations=39,
        random_state=0,
    )
    assert result.dispersion is not None


@pytest.mark.filterwarnings("ignore:There are only")
def test_bad_input_is_named(rng):
    X = recordings(rng, [30] * 6)
    group = [0, 1] * 3
    for data, match, message in [
        (
            X,
            "seconds",
            "match must be one of 'frames', 'trials', 'models', got 'seconds'",
        ),
        (X, "trials", "match='trials' needs Trials, got single recordings"),
        (HMM.fit_transform(X), "frames", "match='frames' needs sequences"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            hmm_group_test(data, group, match=match)
    X[2][3] = np.nan
    X[2][4] = np.inf
    with pytest.raises(ValueError, match=r"X\[2\]"):
        hmm_group_test(X, group, match="frames")
