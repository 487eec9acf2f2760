import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

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
    batches = matched_models(HMM.fit(X), X, "frames", 0)
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
    hmm = HMM.fit(X)
    for models in matched_models(hmm, X, "frames", 0):
        assert_array_equal(models.info["n_timesteps"], [24] * 3)
    for models in matched_models(hmm, X, "trials", 0):
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


def test_bad_input_is_named(rng):
    X = recordings(rng, [30] * 6)
    group = [0, 1] * 3
    for data, match, message in [
        (X, "seconds", "match must be one of 'frames', 'trials', got 'seconds'"),
        (X, "trials", "match='trials' needs Trials, got single recordings"),
        (HMM.fit_transform(X), "frames", "match needs sequences"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            hmm_group_test(data, group, match=match)
    X[2][3] = np.nan
    X[2][4] = np.inf
    with pytest.raises(ValueError, match=r"X\[2\]"):
        hmm_group_test(X, group, match="frames")
