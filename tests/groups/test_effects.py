import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skawhmm import HMMBatch
from skawhmm.groups import HMMAligner, state_effects
from skawhmm.groups._design import check_design
from skawhmm.groups._effects import difference_intervals

pytest.importorskip("pandas")


def chains(stay, means=None, seed=0, **more):
    """Return two-state models that stay in their second state with some probability."""
    rng = np.random.default_rng(seed)
    stay = np.asarray(stay)
    if means is None:
        means = rng.normal([[0.0], [5.0]], 0.3, (len(stay), 2, 1))
    transmats = [[[0.9, 0.1], [1 - s, s]] for s in stay]
    return HMMBatch(transmats, means, np.ones((len(stay), 2, 1)), **more)


@pytest.fixture
def two_groups(rng):
    group = np.repeat(["a", "b"], [8, 11])
    return chains(np.where(group == "a", 0.6, 0.75) + rng.normal(0, 0.05, 19)), group


def difference_interval(values, design, level):
    rows = np.arange(len(values))
    return difference_intervals(values[:, None], design, rows, level)[:, 0, 0]


def row(effects, measure, state, next_state=-1, group="a", other="b"):
    columns = effects.columns
    (found,) = np.flatnonzero(
        (columns["measure"] == measure)
        & (columns["state"] == state)
        & (columns["next_state"] == next_state)
        & (columns["group"] == group)
        & (columns["other"] == other)
    )
    return {name: values[found] for name, values in columns.items()}


def test_two_groups_are_compared_as_welch_does(two_groups):
    models, group = two_groups
    effects = state_effects(
        models, group, reference=None, level=0.9, n_permutations=99, random_state=0
    )
    stay = models.transmats[:, 1, 1]
    found = row(effects, "transition", 1, 1)
    wanted = stats.ttest_ind(stay[group == "b"], stay[group == "a"], equal_var=False)
    assert_allclose(found["mean"], stay[group == "a"].mean())
    assert_allclose(found["difference"], np.mean(stay[8:]) - np.mean(stay[:8]))
    low, high = found["low"], found["high"]
    assert_allclose((low + high) / 2, found["difference"])
    # The standard error is Welch's; his degrees of freedom use the variances.
    error = found["difference"] / wanted.statistic
    balanced = stats.t.ppf(0.95, [wanted.df - 3, wanted.df + 3]) * error
    assert balanced[1] < (high - low) / 2 < balanced[0]
    pooled = np.sqrt(
        np.sum([7, 10] * np.array([stay[:8].var(ddof=1), stay[8:].var(ddof=1)])) / 17
    )
    assert_allclose(found["standardized"], found["difference"] / pooled)


def test_pairs_are_compared_as_the_paired_t_test_does(rng):
    pair, group = np.tile(np.arange(9), 2), np.repeat(["a", "b"], 9)
    values = rng.normal(size=18) + 5 * rng.normal(size=9)[pair]
    design = check_design(values, group, strata=pair)
    found = difference_interval(values, design, 0.9)
    wanted = stats.ttest_rel(values[9:], values[:9])
    assert_allclose(found[0], np.mean(values[9:] - values[:9]))
    assert_allclose(found[1:3], wanted.confidence_interval(0.9))


def test_corrected_pvalues_are_those_of_the_largest_statistic(two_groups):
    models, group = two_groups
    effects = state_effects(
        models, group, reference=None, n_permutations=400, random_state=0
    )
    sizes = np.abs(effects.statistic)
    wanted = [(np.sum(effects.null_distribution >= r - 1e-12) + 1) / 401 for r in sizes]
    assert_allclose(effects.columns["pvalue"], wanted)
    assert (effects.columns["pvalue"] >= effects.columns["uncorrected"]).all()
    # The statistic is the correlation of a measure with the group.
    stay = models.transmats[:, 1, 1]
    n = int(
        np.flatnonzero(
            (effects.columns["state"] == 1) & (effects.columns["next_state"] == 1)
        )[0]
    )
    assert_allclose(effects.statistic[n], np.corrcoef(stay, group == "b")[0, 1])


def test_uncorrected_pvalues_agree_with_the_t_test(two_groups):
    models, group = two_groups
    effects = state_effects(
        models, group, reference=None, measures="parameters", random_state=0
    )
    for state in (0, 1):
        means = models.means[:, state, 0]
        wanted = stats.ttest_ind(means[:8], means[8:]).pvalue
        found = row(effects, "mean_0", state)["uncorrected"]
        assert_allclose(found, wanted, atol=0.02)


def test_intervals_cover_and_false_alarms_are_rare(rng):
    # Groups of unequal size and spread; the true difference is 0.5 in one measure.
    group = np.repeat(["a", "b"], [8, 14])
    design = check_design(group, group)
    spread = np.where(group == "a", 0.5, 1.5)
    hits = 0
    for _ in range(300):
        values = 0.5 * (group == "b") + spread * rng.normal(size=22)
        low, high = difference_interval(values, design, 0.9)[1:3]
        hits += low <= 0.5 <= high
    assert 0.85 <= hits / 300 <= 0.96
    alarms = 0
    for seed in range(60):
        models = chains(rng.uniform(0.5, 0.9, 16), seed=seed)
        effects = state_effects(
            models, np.arange(16) % 2, reference=None, n_permutations=99, random_state=0
        )
        alarms += effects.columns["pvalue"].min() <= 0.05
    assert alarms <= 9


def test_planted_differences_are_found_and_nothing_else(rng):
    group = np.repeat(["a", "b"], 15)
    means = rng.normal([[0.0], [5.0], [9.0]], 0.2, (30, 3, 1))
    base = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    transmats = np.stack([base] * 30)
    transmats += rng.normal(0, 0.01, (30, 3, 3))
    transmats[group == "b", 0] = [0.8, 0.15, 0.05]
    transmats /= transmats.sum(axis=2, keepdims=True)
    models = HMMBatch(transmats, means, np.ones((30, 3, 1)))
    effects = state_effects(
        models,
        group,
        reference=models[0],
        measures=("parameters", "transitions"),
        random_state=0,
    )
    frame = effects.to_frame(significance=0.05)
    found = set(zip(frame["state"], frame["next_state"], strict=True))
    assert found == {(0, 1), (0, 2)}
    assert_allclose(frame["difference"].abs(), 0.05, atol=0.02)


def test_the_order_of_models_and_states_and_the_workers_do_not_matter(two_groups, rng):
    models, group = two_groups
    options = {"n_permutations": 300, "random_state": 0, "reference": models[0]}
    wanted = state_effects(models, group, **options)
    order = rng.permutation(19)
    turned = HMMBatch(
        models.transmats[:, ::-1, ::-1], models.means[:, ::-1], models.covars[:, ::-1]
    )
    for result in (
        state_effects(models[order], group[order], **options),
        state_effects(turned, group, **options),
        state_effects(models, group, n_jobs=2, **options),
        state_effects(
            models, group, **{**options, "reference": HMMAligner(models[0]).fit(models)}
        ),
    ):
        assert_allclose(result.null_distribution, wanted.null_distribution)
        for name in ("difference", "low", "pvalue"):
            assert_allclose(result.columns[name], wanted.columns[name])


def test_units_are_averaged(two_groups):
    models, group = two_groups
    twice = HMMBatch.concatenate([models, models])
    options = {"reference": None, "n_permutations": 99, "random_state": 0}
    wanted = state_effects(models, group, **options)
    found = state_effects(
        twice, np.tile(group, 2), units=np.tile(np.arange(19), 2), **options
    )
    assert found.groups == wanted.groups == {"a": 8, "b": 11}
    for name in ("difference", "low", "pvalue"):
        assert_allclose(found.columns[name], wanted.columns[name])


def test_missing_states_are_left_out():
    group = np.repeat(["a", "b"], 6)
    models = chains(np.linspace(0.5, 0.9, 12))
    single = HMMBatch([[[1.0]]] * 2, [[[0.0]]] * 2, [[[1.0]]] * 2)
    mixed = HMMBatch.concatenate([models[:5], single, models[7:]])
    effects = state_effects(
        mixed, group, reference=models[0], n_permutations=99, random_state=0
    )
    found = row(effects, "dwell_time", 1)
    dwell = 1 / (1 - np.linspace(0.5, 0.9, 12))
    assert_allclose(found["mean"], dwell[:5].mean())
    assert_allclose(found["difference"], dwell[7:].mean() - dwell[:5].mean())
    occupancy = row(effects, "occupancy", 1)
    assert_allclose(occupancy["mean"], models.weights[:5, 1].sum() / 6)


def test_a_state_that_only_one_group_has_gets_no_interval():
    group = np.repeat(["a", "b"], 6)
    models = chains(np.linspace(0.5, 0.9, 12))
    single = HMMBatch([[[1.0]]] * 6, [[[0.0]]] * 6, [[[1.0]]] * 6)
    mixed = HMMBatch.concatenate([single, models[6:]])
    effects = state_effects(
        mixed, group, reference=models[0], n_permutations=99, random_state=0
    )
    assert np.isnan(row(effects, "dwell_time", 1)["difference"])
    assert row(effects, "occupancy", 1)["pvalue"] <= 0.05


def test_three_groups_are_compared_in_pairs(rng):
    group = np.repeat(list("abc"), 8)
    stay = np.repeat([0.6, 0.6, 0.8], 8) + rng.normal(0, 0.02, 24)
    effects = state_effects(
        chains(stay), group, reference=None, measures="transitions", random_state=0
    )
    ab = row(effects, "transition", 1, 1)
    ac = row(effects, "transition", 1, 1, "a", "c")
    bc = row(effects, "transition", 1, 1, "b", "c")
    assert ab["pvalue"] > 0.05 > max(ac["pvalue"], bc["pvalue"])
    assert_allclose(ac["difference"], ab["difference"] + bc["difference"])
    assert "other" in repr(effects).split("\n")[2]


def test_it_is_shown_and_cannot_be_changed(two_groups):
    models, group = two_groups
    effects = state_effects(models, group, n_permutations=99, random_state=0)
    lines = repr(effects).split("\n")
    assert "a: 8, b: 11" in lines[1]
    assert len(lines) == 3 + min(len(effects.statistic), 12)
    assert effects._repr_html_().count("<tr>") == len(lines) - 2
    frame = effects.to_frame()
    assert (np.diff(frame["pvalue"]) >= 0).all()
    with pytest.raises(AttributeError):
        effects.level = 0.5
    with pytest.raises(TypeError):
        effects.columns["pvalue"] = 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measures": "speed"}, "measures must be one of"),
        ({"measures": []}, "measures must name at least 1"),
        ({"level": 0}, "level must be a number in"),
        ({"n_permutations": 0}, "n_permutations must be"),
        ({"reference": "mean"}, "reference must be one of"),
        (
            {"groups": list("aabbbbbbbbbbbbbbbb")},
            "groups must hold one label per model",
        ),
        ({"groups": ["a"] * 19}, "groups must name at least 2"),
        ({"units": [0] * 19}, "units must lie within one group"),
        ({"models": np.zeros((19, 2))}, "models must be an HMMBatch"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
    ids=str,
)
def test_bad_input_is_named(change, message, two_groups):
    models, group = two_groups
    arguments = {"models": models, "groups": group, "n_permutations": 99, **change}
    with pytest.raises((TypeError, ValueError), match=message):
        state_effects(**arguments)


def test_models_that_do_not_differ_are_refused(make_batch):
    models = make_batch(1)[np.zeros(6, int)]
    with pytest.raises(ValueError, match="models must differ in what is compared"):
        state_effects(models, list("aaabbb"), reference=None)
    custom = HMMBatch.from_state_costs([[[1.0]]] * 6, np.zeros((6, 6)))
    with pytest.raises(ValueError, match="nothing can be measured"):
        state_effects(custom, list("aaabbb"), reference=None, measures="parameters")


def test_statistics_are_those_of_the_columns(two_groups):
    models, group = two_groups
    effects = state_effects(models, group, reference=None, n_permutations=99)
    assert_array_equal(
        np.sign(effects.statistic), np.sign(effects.columns["difference"])
    )
