import warnings
from itertools import combinations, permutations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.spatial.distance import cdist

from skawhmm import (
    KL,
    HMMBatch,
    HMMTransformer,
    hmm_group_test,
    pairwise_hmm_components,
    pairwise_hmm_distances,
)
from skawhmm.datasets import make_hmm_sequences

# Groups of few points often differ in spread by chance.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The groups also differ in spread", "ignore:There are only"
)


def gaps(points):
    """Return the Euclidean distances between points, numbers or rows."""
    points = np.asarray(points, dtype=float).reshape(len(points), -1)
    return cdist(points, points)


def test_a_case_worked_by_hand():
    # Means 0.5 and 4.5, total mean 2.5: squares 2 * 0.25 + 2 * 0.25 within, 4 * 4
    # between, so F = (16 / 1) / (1 / 2). Of the 6 arrangements 2 reach it.
    result = hmm_group_test(gaps([0, 1, 4, 5]), list("aabb"), random_state=0)
    assert_allclose(result.statistic, 32)
    assert_allclose(result.effect_size, 16 / 17)
    assert_allclose(result.pvalue, 1 / 3, atol=0.02)
    assert result.groups == {"a": 2, "b": 2}
    assert (result.marginal, result.transition) == (None, None)


def pair_sums(distances, groups):
    """Return pseudo-F by the sums over pairs of Anderson (2001)."""
    n, squares = len(groups), distances**2
    total = sum(squares[i, j] for i, j in combinations(range(n), 2)) / n
    within = 0.0
    for name in set(groups):
        own = np.flatnonzero(np.asarray(groups) == name)
        within += sum(squares[i, j] for i, j in combinations(own, 2)) / len(own)
    n_groups = len(set(groups))
    return (total - within) / (n_groups - 1) / (within / (n - n_groups))


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_pseudo_f_matches_the_sums_over_pairs(n_groups, make_batch):
    models = make_batch(n_models=17)
    groups = np.arange(17) % n_groups
    distances = pairwise_hmm_distances(models, metric="jaw")
    given = hmm_group_test(distances, groups, n_permutations=199, random_state=0)
    assert_allclose(given.statistic, pair_sums(distances, groups))
    made = hmm_group_test(models, groups, n_permutations=199, random_state=0)
    assert_allclose(made.statistic, given.statistic)
    assert_allclose(made.null_distribution, given.null_distribution)
    parts = pairwise_hmm_components(models, metric="jaw")
    for test, part in zip((made.marginal, made.transition), parts, strict=True):
        assert_allclose(test.statistic, pair_sums(part, groups))
    stack = hmm_group_test(
        np.stack(parts, axis=2), groups, alpha=0.5, n_permutations=199, random_state=0
    )
    assert_array_equal(stack.null_distribution, made.null_distribution)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_scikit_bio_agrees(n_groups, make_batch, rng):
    judge = pytest.importorskip("skbio.stats.distance")
    groups = np.arange(20) % n_groups
    distances = pairwise_hmm_distances(make_batch(n_models=20), metric="jaw")
    ours = hmm_group_test(distances, groups, n_permutations=99, random_state=0)
    theirs = judge.permanova(judge.DistanceMatrix(distances), groups, permutations=0)
    assert_allclose(ours.statistic, theirs["test statistic"])
    # It drops the imaginary coordinates of distances that are not Euclidean.
    distances = gaps(rng.normal(size=(20, 3)) * (1 + groups[:, None]))
    ours = hmm_group_test(distances, groups, n_permutations=99, random_state=0)
    theirs = judge.permdisp(
        judge.DistanceMatrix(distances), groups, test="centroid", permutations=0
    )
    assert_allclose(ours.dispersion.statistic, theirs["test statistic"], rtol=1e-6)


def edit_distance(a, b):
    """Return the number of insertions, deletions and replacements."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def test_any_distances_will_do():
    # Edit distances between words have nothing to do with models.
    judge = pytest.importorskip("skbio.stats.distance")
    german = ["apfel", "baum", "hund", "katze", "stein", "wasser", "himmel"]
    italian = ["mela", "albero", "cane", "gatto", "pietra", "acqua", "cielo"]
    listed, names = german + italian, ["de"] * 7 + ["it"] * 7
    distances = np.array([[edit_distance(a, b) for b in listed] for a in listed], float)
    ours = hmm_group_test(distances, names, random_state=0)
    theirs = judge.permanova(
        judge.DistanceMatrix(distances), names, permutations=4999, seed=0
    )
    assert_allclose(ours.statistic, theirs["test statistic"])
    assert_allclose(ours.pvalue, theirs["p-value"], atol=0.02)
    assert ours.missing == dict.fromkeys(
        ("marginal", "transition"), "X holds distances without components"
    )
    assert "not tested: marginal, transition (X holds" in repr(ours)


def test_on_a_line_it_is_the_analysis_of_variance(rng):
    groups = np.repeat([0, 1, 2], [5, 8, 6])
    values = rng.normal(size=19) + 0.7 * groups
    result = hmm_group_test(gaps(values), groups, random_state=0)
    parts = [values[groups == k] for k in range(3)]
    wanted = stats.f_oneway(*parts)
    assert_allclose(result.statistic, wanted.statistic)
    assert_allclose(result.pvalue, wanted.pvalue, atol=0.02)
    pair = result.pairwise["0", "2"]["distance"]
    assert_allclose(pair.statistic, stats.f_oneway(parts[0], parts[2]).statistic)


def test_with_pairs_as_strata_it_is_the_paired_t_test(rng):
    subject = np.tile(np.arange(12), 2)
    group = np.repeat([0, 1], 12)
    values = 9 * rng.normal(size=12)[subject] + 0.8 * group + rng.normal(size=24)
    result = hmm_group_test(gaps(values), group, strata=subject, random_state=0)
    wanted = stats.ttest_rel(values[:12], values[12:])
    assert_allclose(result.statistic, wanted.statistic**2)
    assert_allclose(result.pvalue, wanted.pvalue, atol=0.02)
    blind = hmm_group_test(gaps(values), group, random_state=0)
    assert blind.pvalue > 5 * result.pvalue


def test_with_covariates_it_is_the_analysis_of_covariance(rng):
    group = np.repeat([0, 1, 2], 7)
    age = rng.normal(size=21) + group
    values = 2 * age + 0.8 * group + rng.normal(size=21)

    def left(*columns):
        design = np.column_stack([np.ones(21), *columns])
        return np.sum((values - design @ np.linalg.lstsq(design, values)[0]) ** 2)

    full = left(age, group == 1, group == 2)
    wanted = (left(age) - full) / 2 / (full / 17)
    result = hmm_group_test(gaps(values), group, covariates=age, random_state=0)
    assert_allclose(result.statistic, wanted)
    assert_allclose(result.effect_size, 1 - full / left(age))
    assert_allclose(result.pvalue, stats.f(2, 17).sf(wanted), atol=0.02)


def test_energy_statistic_matches_the_two_sample_formula(rng):
    x, y = rng.normal(size=9), rng.normal(0.5, 2, size=6)
    distances = gaps(np.concatenate([x, y]))
    result = hmm_group_test(
        distances, [0] * 9 + [1] * 6, statistic="energy", random_state=0
    )
    between = 9 * 6 / (2 * 15) * stats.energy_distance(x, y) ** 2
    within = gaps(x).sum() / 18 + gaps(y).sum() / 12
    assert_allclose(result.statistic, between / (within / 13))
    assert_allclose(result.effect_size, between / (distances.sum() / 30))


def test_units_are_the_centroids_of_their_models(rng):
    unit = np.repeat(np.arange(8), [1, 2, 3, 4, 1, 2, 3, 4])
    points = rng.normal(size=(20, 3))
    centroids = np.array([points[unit == k].mean(axis=0) for k in range(8)])
    wanted = hmm_group_test(gaps(centroids), np.arange(8) % 2, random_state=0)
    result = hmm_group_test(gaps(points), unit % 2, units=unit, random_state=0)
    assert_allclose(result.statistic, wanted.statistic)
    assert_allclose(result.pvalue, wanted.pvalue, atol=0.02)
    assert_allclose(result.dispersion.statistic, wanted.dispersion.statistic)
    assert result.groups == {"0": 4, "1": 4}


def level(rng, draw, n=200, **given):
    """Return the p-values of `n` comparisons that `draw` makes."""
    found = []
    for k in range(n):
        points, group, more = draw(rng)
        more = {name: more[name] for name in given if given[name]}
        result = hmm_group_test(
            gaps(points), group, n_permutations=99, random_state=k, **more
        )
        found.append(result.pvalue)
    return np.array(found)


def test_pvalues_are_uniform_if_groups_do_not_differ(rng):
    def draw(rng):
        return rng.normal(size=(14, 2)), np.arange(14) % 2, {}

    found = level(rng, draw)
    # A p-value is a multiple of 1/100; drawn within its step it is continuous.
    found -= rng.random(200) / 100
    assert stats.kstest(found, "uniform").pvalue > 0.001


def test_units_keep_the_level_that_single_models_break(rng):
    def draw(rng):
        unit = np.repeat(np.arange(8), 5)
        points = rng.normal(size=(8, 2))[unit] + 0.3 * rng.normal(size=(40, 2))
        return points, unit % 2, {"units": unit}

    assert np.mean(level(rng, draw) <= 0.05) > 0.3
    assert np.mean(level(rng, draw, units=True) <= 0.05) < 0.1


def test_strata_keep_the_level_that_free_permutations_break(rng):
    def draw(rng):
        site = np.repeat([0, 1], 10)
        group = np.r_[np.repeat([0, 1], [8, 2]), np.repeat([0, 1], [2, 8])]
        return 3 * site[:, None] + rng.normal(size=(20, 2)), group, {"strata": site}

    assert np.mean(level(rng, draw) <= 0.05) > 0.3
    assert np.mean(level(rng, draw, strata=True) <= 0.05) < 0.1


def test_covariates_keep_the_level_that_is_broken_without_them(rng):
    def draw(rng):
        group = np.arange(20) % 2
        age = rng.normal(size=20) + 1.5 * group
        return age[:, None] + 0.5 * rng.normal(size=(20, 2)), group, {"covariates": age}

    assert np.mean(level(rng, draw) <= 0.05) > 0.3
    assert np.mean(level(rng, draw, covariates=True) <= 0.05) < 0.1


@pytest.mark.parametrize(
    ("differ_in", "found", "spared"),
    [("means", "marginal", "transition"), ("transitions", "transition", "marginal")],
)
def test_planted_differences_are_found_in_their_component(differ_in, found, spared):
    X, y = make_hmm_sequences(
        24, differ_in=differ_in, n_timesteps=200, separation=2, random_state=0
    )
    models = HMMTransformer(3, random_state=0).fit_transform(X)
    result = hmm_group_test(models, y, n_permutations=999, random_state=0)
    assert result.pvalue == 0.001
    assert result.tests[found].pvalue == 0.001
    assert result.tests[spared].pvalue > 0.05


def test_unequal_spread_gives_a_warning(rng):
    group = np.repeat([0, 1], 20)
    points = rng.normal(size=(40, 2)) * (1 + 4 * group[:, None]) + group[:, None] * 3
    with pytest.warns(UserWarning, match="differ in spread"):
        result = hmm_group_test(gaps(points), group, random_state=0)
    assert result.dispersion.pvalue < 0.01
    assert np.isnan(result.dispersion.effect_size)


def test_the_order_of_models_the_workers_and_the_names_do_not_matter(make_batch, rng):
    models = make_batch(n_models=18)
    group, unit = np.repeat([0, 1, 2], 6), np.repeat(np.arange(9), 2)
    order = rng.permutation(18)
    options = {"n_permutations": 600, "random_state": 3}
    wanted = hmm_group_test(models, group, **options)
    for result in (
        hmm_group_test(models[order], group[order], **options),
        hmm_group_test(models, group, n_jobs=2, **options),
        hmm_group_test(models, np.array(["x", "y", "z"])[group], **options),
    ):
        assert_array_equal(result.null_distribution, wanted.null_distribution)
        assert result.dispersion.pvalue == wanted.dispersion.pvalue
    other = hmm_group_test(models, group, n_permutations=600, random_state=4)
    assert not np.array_equal(other.null_distribution, wanted.null_distribution)
    more = hmm_group_test(models, group, n_permutations=900, random_state=3)
    assert_allclose(more.null_distribution[:600], wanted.null_distribution)
    wanted = hmm_group_test(models, group, units=unit, **options)
    moved = hmm_group_test(models[order], group[order], units=unit[order], **options)
    assert_allclose(moved.null_distribution, wanted.null_distribution)
    assert moved.pvalue == wanted.pvalue


def test_states_may_be_numbered_in_any_way(make_batch):
    models = make_batch(n_models=10)
    turned = HMMBatch(
        models.transmats[:, ::-1, ::-1], models.means[:, ::-1], models.covars[:, ::-1]
    )
    both = [
        hmm_group_test(batch, np.arange(10) % 2, n_permutations=99, random_state=0)
        for batch in (models, turned)
    ]
    assert_allclose(both[0].statistic, both[1].statistic)
    assert_allclose(both[0].pvalue, both[1].pvalue)


def test_labels_may_be_columns_of_info(make_batch):
    info = {"group": list("ab") * 6, "subject": np.arange(12) % 6, "age": np.arange(12)}
    models = make_batch(n_models=12, info=info)
    options = {"n_permutations": 99, "random_state": 0}
    named = hmm_group_test(
        models, "group", units="subject", covariates="age", **options
    )
    given = hmm_group_test(
        models,
        info["group"],
        units=info["subject"],
        covariates=info["age"],
        **options,
    )
    assert named.pvalue == given.pvalue
    with pytest.raises(ValueError, match=r"groups .*\['age', .*\], got 'sex'"):
        hmm_group_test(models, "sex")


def test_equal_models_do_not_differ(make_batch):
    models = make_batch(n_models=1)[np.zeros(6, int)]
    result = hmm_group_test(models, [0, 1] * 3, n_permutations=99, random_state=0)
    assert (result.statistic, result.pvalue, result.effect_size) == (0, 1, 0)


def test_distances_without_components_have_one_test(make_batch):
    models = make_batch(n_models=8)
    result = hmm_group_test(
        models, [0, 1] * 4, metric="coupling", n_permutations=99, random_state=0
    )
    assert list(result.tests) == ["distance"]
    assert result.missing["transition"] == "not in this metric"
    # The distance of IAW of a model to itself is above 0, and of no use here.
    iaw = hmm_group_test(
        models, [0, 1] * 4, metric="iaw", n_permutations=99, random_state=0
    )
    assert iaw.marginal.statistic < 10


GROUPS = [0, 0, 0, 1, 1, 1]
WRONG = [
    ({"groups": [0] * 6}, "groups must name at least 2 groups, got only '0'"),
    ({"groups": [0] * 5 + [1]}, "at least 2 units .* got 1 in '1'"),
    ({"groups": GROUPS[1:]}, r"groups must hold one label per model \(6 models\)"),
    ({"groups": [0, 0, 0, 1, 1, np.nan]}, "groups must .* label .* nan at index 5"),
    ({"groups": ["a", "a", None, "b", "b", "b"]}, "groups .* got None at index 2"),
    ({"units": [0, 1, 2, 2, 3, 4]}, "units must lie within one group each, .* 2 and 3"),
    ({"units": [0, 1, 0, 2, 3, 2], "strata": [0, 0, 1, 0, 1, 0]}, "one stratum each"),
    ({"strata": GROUPS}, "strata must hold units of at least 2 groups"),
    ({"strata": [0, 1]}, "strata must hold one label per model"),
    ({"covariates": GROUPS}, "groups must not follow from strata and covariates"),
    ({"covariates": np.ones((2, 6))}, "covariates must have one row per model"),
    ({"covariates": [0, 1, 2, 3, np.inf, 4]}, "covariates must be finite, .* model 4"),
    ({"covariates": list("abcdef")}, "covariates must be .* numbers, got strings"),
    (
        {"covariates": np.sin(np.outer(np.arange(1, 7), [1, 2, 4, 7]))},
        "0 degrees of freedom",
    ),
    ({"statistic": "t"}, "statistic must be one of 'pseudo_f', 'energy', got 't'"),
    ({"n_permutations": 0}, "n_permutations must be an integer of at least 1"),
    ({"metric": "far"}, "metric must be 'jaw' if X holds distances or components"),
    ({"metric": "maw"}, "metric must be 'jaw' if X holds distances or components"),
    ({"alpha": 0.3}, "alpha must be None if X holds distances, not components"),
    ({"alpha": 2}, "alpha must be a number in"),
    ({"n_jobs": 0}, "n_jobs must be"),
    ({"random_state": "now"}, "now"),
]


def test_sequences_are_not_taken_for_distances():
    X, y = make_hmm_sequences(8, n_timesteps=(5, 9), random_state=0)
    with pytest.raises(TypeError, match="HMMTransformer makes models from sequences"):
        hmm_group_test(X, y)


@pytest.mark.parametrize(("change", "message"), WRONG, ids=str)
def test_bad_input_is_named(change, message):
    arguments = {"groups": GROUPS, "n_permutations": 99, **change}
    with pytest.raises((TypeError, ValueError), match=message):
        hmm_group_test(gaps([0, 1, 2, 3, 5, 8]), **arguments)


def test_bad_distances_are_named():
    good = gaps([0, 1, 2, 3, 5, 8])
    for cell, value, message in [
        ((1, 2), np.nan, "NaN in row 1, column 2"),
        ((1, 2), np.inf, "be finite, got inf in row 1, column 2"),
        ((1, 2), -1.0, "not be negative, got -1.0 in row 1, column 2"),
        ((1, 2), 9.0, "be symmetric, got 9.0 in row 1, column 2"),
        ((3, 3), 1.0, "be 0 on the diagonal, got 1.0 in row 3, column 3"),
    ]:
        bad = good.copy()
        bad[cell] = value
        with pytest.raises(ValueError, match=message):
            hmm_group_test(bad, GROUPS)
    with pytest.raises(ValueError, match=r"X must be an HMMBatch.*got shape \(6, 5\)"):
        hmm_group_test(good[:, 1:], GROUPS)


def test_infinite_and_one_sided_distances_are_rejected():
    apart = HMMBatch.from_emissionprobs(
        [[[1.0]]] * 6, [[[1.0, 0.0]]] * 3 + [[[0.0, 1.0]]] * 3
    )
    with pytest.raises(ValueError, match="be finite, got inf"):
        hmm_group_test(apart, GROUPS, metric="kl")
    with pytest.raises(ValueError, match="metric must be symmetric"):
        hmm_group_test(
            HMMBatch.from_emissionprobs([[[1.0]]] * 6, [[[0.5, 0.5]]] * 6),
            GROUPS,
            metric=KL(symmetric=False),
        )
    with pytest.raises(ValueError, match="metric must be one of 'maw'"):
        hmm_group_test(apart, GROUPS, metric="far")


def test_components_need_alpha():
    with pytest.raises(ValueError, match=r"alpha must be .*=0\.1, JAW alpha=0\.5"):
        hmm_group_test(np.zeros((6, 6, 2)), GROUPS)


def test_too_few_permutations_give_a_warning():
    distances = gaps([0, 1, 2, 3, 5, 8])
    with pytest.warns(UserWarning, match="at least 19 permutations"):
        hmm_group_test(distances, GROUPS, n_permutations=18)
    with pytest.warns(UserWarning, match="after correction: at least 59"):
        hmm_group_test(distances, [0, 1, 2] * 2, n_permutations=58)
    hmm_group_test(distances, GROUPS, n_permutations=19)


def test_too_few_arrangements_give_a_warning():
    # Three of six units: 20 arrangements, of which two each are the same partition.
    distances = gaps([0, 1, 2, 3, 5, 8, 9])
    with pytest.warns(UserWarning, match=r"only 10 different .* below 0\.1\."):
        hmm_group_test(distances[:6, :6], GROUPS, random_state=0)
    # Groups of unequal size cannot change places: 35 partitions are enough.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hmm_group_test(distances, [*GROUPS, 1], random_state=0)
    with pytest.warns(UserWarning, match=r"only 4 different .* below 0\.25\."):
        hmm_group_test(
            distances[:6, :6], [0, 1] * 3, strata=[0, 0, 1, 1, 2, 2], random_state=0
        )


def test_a_negative_residual_does_not_hide_a_difference(rng):
    # Distances between pairs that no points can have: the rest is negative, and a
    # plain ratio would be, too.
    pair, group = np.tile(np.arange(8), 2), np.repeat([0, 1], 8)
    far = (group[:, None] != group) * 1.0
    distances = far + (~np.eye(16, dtype=bool)) * rng.uniform(0, 0.05, (16, 16))
    distances = np.sqrt((distances + distances.T) / 2)
    distances[pair[:, None] == pair] *= 0.9
    np.fill_diagonal(distances, 0)
    result = hmm_group_test(
        distances, group, strata=pair, n_permutations=199, random_state=0
    )
    assert result.statistic == np.inf
    assert result.effect_size > 1
    assert result.pvalue <= 0.02


def in_set(values, wanted):
    gaps = np.abs(values[:, None] - np.array(wanted)[None])
    return (gaps.min(axis=1) <= 1e-8 * (1 + np.abs(values))).all()


@pytest.mark.filterwarnings("ignore:There are only")
def test_null_of_pairs_exchanges_within_pairs_only(rng):
    values = rng.normal(size=8)
    pair, group = np.tile(np.arange(4), 2), np.repeat([0, 1], 4)
    result = hmm_group_test(
        gaps(values), group, strata=pair, n_permutations=200, random_state=0
    )
    differences = values[:4] - values[4:]
    squares = [
        stats.ttest_1samp(differences * signs, 0).statistic ** 2
        for signs in product([1, -1], repeat=4)
    ]
    assert in_set(result.null_distribution, squares)


def test_null_with_covariates_exchanges_residuals_and_fits_again(rng):
    values, age, group = (
        rng.normal(size=5),
        rng.normal(size=5),
        np.array([0] * 2 + [1] * 3),
    )
    result = hmm_group_test(
        gaps(values), group, covariates=age, n_permutations=99, random_state=0
    )
    first = np.column_stack([np.ones(5), age])
    full = np.column_stack([first, group])

    def rest(columns, y):
        return y - columns @ np.linalg.lstsq(columns, y)[0]

    left, ratios = rest(first, values), []
    for order in permutations(range(5)):
        y = left[list(order)]
        small, large = (np.sum(rest(columns, y) ** 2) for columns in (full, first))
        ratios.append((large - small) / (small / 2))
    assert_allclose(result.statistic, ratios[0])
    assert in_set(result.null_distribution, ratios)
