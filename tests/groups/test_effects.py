import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skawhmm import HMMBatch
from skawhmm.emissions import ByChannel, VonMises
from skawhmm.fitting import MarkovChainTransformer
from skawhmm.groups import HMMAligner, state_effects
from skawhmm.groups._design import check_design
from skawhmm.groups._effects import difference_intervals

pytest.importorskip("pandas")

# A test at the level of 5 % has at most so many of so many false alarms, in 99.9 % of
# runs.
N_NULLS = 200
MOST_ALARMS = int(stats.binom.ppf(0.999, N_NULLS, 0.05))


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


def difference_interval(values, design, confidence):
    rows = np.arange(len(values))
    return difference_intervals(values[:, None], design, rows, confidence)[:, 0, 0]


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
        models, group, reference=None, confidence=0.9, n_permutations=99, random_state=0
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


def test_corrected_pvalues_match_the_largest_statistic(two_groups):
    models, group = two_groups
    effects = state_effects(
        models, group, reference=None, n_permutations=400, random_state=0
    )
    sizes = np.abs(effects.statistic)
    wanted = [(np.sum(effects.null_distribution >= r - 1e-12) + 1) / 401 for r in sizes]
    assert_allclose(effects.columns["pvalue"], wanted)
    assert (effects.columns["pvalue"] >= effects.columns["uncorrected"]).all()
    # The statistic is the difference of the means over its error, in which each group
    # has its own spread about the common mean, and over the root of the units' number.
    stay = models.transmats[:, 1, 1]
    left = stay - stay.mean()
    parts = [left[group == "a"], left[group == "b"]]
    error = np.sqrt(sum(np.mean(part**2) / len(part) for part in parts))
    n = int(
        np.flatnonzero(
            (effects.columns["state"] == 1) & (effects.columns["next_state"] == 1)
        )[0]
    )
    wanted = (parts[1].mean() - parts[0].mean()) / error / np.sqrt(19)
    assert_allclose(effects.statistic[n], wanted)


def test_the_statistic_of_equal_groups_is_the_correlation(rng):
    group = np.repeat([0, 1], 9)
    stay = rng.uniform(0.5, 0.9, 18)
    effects = state_effects(
        chains(stay),
        group,
        reference=None,
        measures="dwell_time",
        n_permutations=99,
        random_state=0,
    )
    assert_allclose(effects.statistic, np.corrcoef(1 / (1 - stay), group)[0, 1])


@pytest.mark.parametrize("sizes", [(6, 24), (24, 6)])
def test_groups_of_unequal_size_and_spread_raise_no_false_alarms(sizes):
    # The smaller group varies more: a test that takes their spreads together is wrong.
    group = np.repeat(["a", "b"], sizes)
    spread = np.where(np.isin(group, "a") == (sizes[0] < sizes[1]), 1.0, 0.2)
    alarms = 0
    for seed in range(N_NULLS):
        rng = np.random.default_rng(seed)
        means = np.zeros((30, 1, 1)) + (spread * rng.normal(size=30))[:, None, None]
        models = HMMBatch(np.ones((30, 1, 1)), means, np.ones((30, 1, 1)))
        effects = state_effects(
            models, group, reference=None, n_permutations=99, random_state=seed
        )
        alarms += effects.columns["pvalue"].min() <= 0.05
    assert alarms <= MOST_ALARMS


def test_uncorrected_pvalues_agree_with_the_t_test(two_groups):
    models, group = two_groups
    effects = state_effects(
        models, group, reference=None, measures="parameters", random_state=0
    )
    for state in (0, 1):
        means = models.means[:, state, 0]
        wanted = stats.ttest_ind(means[:8], means[8:], equal_var=False).pvalue
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


def test_effects_have_text_and_html_and_are_immutable(two_groups):
    models, group = two_groups
    effects = state_effects(models, group, n_permutations=99, random_state=0)
    lines = repr(effects).split("\n")
    assert "a: 8, b: 11" in lines[1]
    assert len(lines) == 3 + min(len(effects.statistic), 12)
    assert effects._repr_html_().count("<tr>") == len(lines) - 2
    frame = effects.to_frame()
    assert (np.diff(frame["pvalue"]) >= 0).all()
    with pytest.raises(AttributeError):
        effects.confidence = 0.5
    with pytest.raises(TypeError):
        effects.columns["pvalue"] = 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measures": "speed"}, "measures must be one of"),
        ({"measures": []}, "measures must name at least 1"),
        ({"confidence": 0}, "confidence must be a number in"),
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


@pytest.mark.filterwarnings("ignore:There are only")
def test_models_that_do_not_differ_are_rejected(make_batch):
    models = make_batch(1)[np.zeros(6, int)]
    with pytest.raises(ValueError, match="models must differ in what is compared"):
        state_effects(models, list("aaabbb"), reference=None)
    custom = HMMBatch.from_state_costs([[[1.0]]] * 6, np.zeros((6, 6)))
    with pytest.raises(ValueError, match="nothing can be measured"):
        state_effects(custom, list("aaabbb"), reference=None, measures="parameters")


def test_statistics_match_the_columns(two_groups):
    models, group = two_groups
    effects = state_effects(models, group, reference=None, n_permutations=99)
    assert_array_equal(
        np.sign(effects.statistic), np.sign(effects.columns["difference"])
    )


CHAIN = np.array([[0.6, 0.4, 0.0], [0.3, 0.4, 0.3], [0.0, 0.5, 0.5]])


def texts_of_one_chain(rng, lengths):
    """Return texts of a chain in which some steps are impossible."""
    steps = CHAIN.cumsum(axis=1)
    texts = []
    for length in lengths:
        path = [int(rng.integers(3))]
        for draw in rng.random(length - 1):
            path.append(int(np.searchsorted(steps[path[-1]], draw, side="right")))
        texts.append("".join("abc"[k] for k in path))
    return texts


def visible_chains(texts, prior):
    hmm = MarkovChainTransformer("abc", prior=prior)
    return hmm.fit_transform(texts)


@pytest.fixture
def unequal_texts():
    """Texts of one chain: one group of short ones, one of long ones."""
    group = np.repeat(["long", "short"], 15)
    lengths = np.where(group == "short", 15, 60)
    return texts_of_one_chain(np.random.default_rng(0), lengths), group


@pytest.mark.filterwarnings("ignore:The groups differ in how much data")
@pytest.mark.parametrize(
    "design", [(15, 15, 15, 60), (8, 30, 60, 15)], ids=["equal sizes", "unequal sizes"]
)
@pytest.mark.parametrize("prior", [None, "pooled", 0.5], ids=str)
def test_groups_that_differ_in_length_only_raise_no_false_alarms(prior, design):
    first, second, *lengths = design
    alarms = 0
    for seed in range(N_NULLS):
        each = np.repeat(lengths, (first, second))
        texts = texts_of_one_chain(np.random.default_rng(seed), each)
        effects = state_effects(
            visible_chains(texts, prior),
            np.repeat(["a", "b"], (first, second)),
            reference=None,
            n_permutations=99,
            random_state=seed,
        )
        alarms += effects.columns["pvalue"].min() <= 0.05
    assert alarms <= MOST_ALARMS


@pytest.mark.filterwarnings("ignore:The groups differ in how much data")
def test_priors_of_visible_chains_do_not_change_effects(unequal_texts):
    texts, group = unequal_texts
    plain, *smoothed = (
        state_effects(
            visible_chains(texts, prior),
            group,
            reference=None,
            n_permutations=99,
            random_state=0,
        )
        for prior in (None, "pooled", 0.5)
    )
    for effects in smoothed:
        for name, column in plain.columns.items():
            assert_array_equal(effects.columns[name], column)


@pytest.mark.filterwarnings("ignore:The groups differ in how much data")
def test_impossible_transitions_are_left_out_and_listed(unequal_texts):
    texts, group = unequal_texts
    effects = state_effects(
        visible_chains(texts, "pooled"), group, reference=None, n_permutations=99
    )
    left = effects.left_out
    steps = left["measure"] == "transition"
    cells = zip(left["state"][steps], left["next_state"][steps], strict=True)
    assert set(cells) == {(0, 2), (2, 0)}
    assert set(left["reason"][steps]) == {
        "expected fewer than 5 times in group 'short'"
    }
    compared = effects.columns["measure"] == "transition"
    assert np.sum(compared) == 7
    # States of visible chains are called by their symbols.
    assert "left out, for lack of data: transition a -> c, transition c -> a" in repr(
        effects
    )
    assert "transition c -&gt; a" in effects._repr_html_()
    assert {*effects.to_frame()["state"]} == {"a", "b", "c"}
    assert {*effects.to_frame()["next_state"]} == {"", "a", "b", "c"}
    with pytest.raises(TypeError):
        effects.left_out["reason"] = 0


def test_groups_are_compared_by_ratios_of_their_counts():
    # From "a": 3 of 4 steps stay in the first group's texts, 1 of 4 in the second's.
    texts = ["aab", "aaaab"] * 4 + ["aba", "abaab"] * 4
    group = np.repeat(["x", "y"], 8)
    models = visible_chains(texts, 0.5)
    effects = state_effects(
        models, group, reference=None, n_permutations=99, random_state=0
    )
    found = row(effects, "transition", 0, 0, "x", "y")
    # "aab" has 1 stay of 2 steps, "aaaab" 3 of 4; "aba" 0 of 1, "abaab" 1 of 3.
    assert_allclose(found["mean"], (4 * 1 + 4 * 3) / (4 * 2 + 4 * 4))
    assert_allclose(found["other_mean"], 4 / (4 * 1 + 4 * 3))
    assert_allclose(found["difference"], found["other_mean"] - found["mean"])
    dwell = row(effects, "dwell_time", 0, -1, "x", "y")
    assert_allclose(dwell["mean"], 24 / 8)
    assert_allclose(dwell["other_mean"], 16 / 12)
    # Linearized by hand: stays less the ratio times the steps, over the mean steps.
    steps = np.array([[2, 4] * 4, [1, 3] * 4])
    stays = np.array([[1, 3] * 4, [0, 1] * 4])
    ratios = np.array([[2 / 3], [1 / 4]])
    left = (stays - ratios * steps) / steps.mean(axis=1, keepdims=True)
    error = np.sqrt(np.sum(left.var(axis=1, ddof=1) / 8))
    freedom = stats.ttest_ind(*left, equal_var=False).df
    margins = stats.t.ppf(0.975, [freedom + 3, freedom - 3]) * error
    assert margins[0] < (found["high"] - found["low"]) / 2 < margins[1]


def test_counts_of_several_texts_of_a_unit_add_up():
    texts = ["aab", "aaaab", "abaa", "ab"] * 3 + ["abab", "aba", "baab", "baa"] * 3
    units = np.repeat(np.arange(12), 2)
    group = np.repeat(["x", "y"], 12)
    models = visible_chains(texts, None)
    effects = state_effects(
        models, group, units=units, reference=None, n_permutations=99, random_state=0
    )
    steps = models.counts.transitions[group == "x"].sum(axis=0)
    found = row(effects, "transition", 0, 1, "x", "y")
    assert_allclose(found["mean"], steps[0, 1] / steps[0].sum())
    assert effects.groups == {"x": 6, "y": 6}


def test_dwell_times_beyond_the_sequences_are_left_out():
    # 12 exits from "a" in 12 texts of 30 symbols, nearly all of which are "a".
    texts = ["a" * 29 + "b", "a" * 30] * 12
    group = np.tile(np.repeat(["x", "y"], 2), 6)
    models = visible_chains(texts, None)
    effects = state_effects(models, group, reference=None, n_permutations=99)
    left = effects.left_out
    (n,) = np.flatnonzero((left["measure"] == "dwell_time") & (left["state"] == 0))
    assert left["reason"][n] == "longer than the sequences of group 'y'"


def test_states_that_hardly_any_unit_has_seen_are_left_out(rng):
    # One text of a group has the symbol "c".
    texts = [*["abba", "abab", "aabb"] * 4, "abcba"]
    group = np.array(["x", "y"] * 6 + ["x"])
    effects = state_effects(
        visible_chains(texts, 0.5), group, reference=None, n_permutations=99
    )
    left = effects.left_out
    rows = (left["measure"] == "transition") & (left["state"] == 2)
    assert set(left["reason"][rows]) == {"seen in fewer than 2 units of group 'y'"}
    assert rows.sum() == 3


def test_unequal_amounts_of_data_are_warned_of_and_shown(unequal_texts):
    texts, group = unequal_texts
    models = visible_chains(texts, None)
    with pytest.warns(UserWarning, match="differ in how much data.*cut them"):
        effects = state_effects(models, group, reference=None, n_permutations=99)
    amounts = effects.amounts["n_timesteps"]
    assert amounts.medians == {"long": 60, "short": 15}
    assert amounts.pvalue == 0.01
    assert "median n_timesteps (long: 60, short: 15), p = 0.01" in repr(effects)
    same = visible_chains([text[:15] for text in texts], None)
    effects = state_effects(same, group, reference=None, n_permutations=99)
    assert effects.amounts["n_timesteps"].pvalue == 1
    assert "median" not in repr(effects)


def as_symbols(transmats, means):
    rows = np.stack([1 - means, means], axis=2)
    return HMMBatch.from_emissionprobs(transmats, rows, symbols="ab")


def as_counts(transmats, means):
    return HMMBatch.from_rates(transmats, 10 * means[:, :, None])


@pytest.mark.parametrize("make", [as_symbols, as_counts])
def test_effects_on_the_average_of_symbols_and_counts(make, rng):
    group = np.repeat(["a", "b"], 8)
    stay = np.where(group == "a", 0.6, 0.9) + rng.uniform(-0.05, 0.05, 16)
    transmats = np.array([[[0.8, 0.2], [1 - s, s]] for s in stay])
    means = rng.uniform([0.0, 0.8], [0.2, 1.0], (16, 2))
    turned = rng.random(16) < 0.5
    order = np.where(turned[:, None], [1, 0], [0, 1])
    units = np.arange(16)[:, None]
    models = make(
        transmats[units[..., None], order[:, :, None], order[:, None]],
        means[units, order],
    )
    effects = state_effects(models, group, n_permutations=199, random_state=0)
    # The other state is the same in all models and left out. Which of the two is listed
    # first depends on the average.
    (state,) = set(effects.columns["state"][effects.columns["measure"] == "transition"])
    found = row(effects, "transition", state, state)
    gap = stay[group == "b"].mean() - stay[group == "a"].mean()
    assert_allclose(found["difference"], gap)
    assert found["pvalue"] < 0.05


def test_states_that_no_model_has_are_not_matched(rng):
    models = HMMBatch(
        np.tile([[0.9, 0.1], [0.2, 0.8]], (8, 1, 1)),
        rng.normal([[0.0], [5.0]], 0.3, (8, 2, 1)),
        np.ones((8, 2, 1)),
        info={"n_timesteps": [100] * 8},
    )
    far = HMMBatch([np.full((3, 3), 1 / 3)], [[[0], [5], [50]]], np.ones((1, 3, 1)))
    aligner = HMMAligner(far, n_resamples=3, random_state=0).fit(models)
    assert np.isnan(aligner.match_confidence_[:, 2]).all()
    effects = state_effects(
        models, [*"aaaabbbb"], reference=aligner, n_permutations=99, random_state=0
    )
    assert set(effects.columns["state"]) == {0, 1}
    sure = np.nanmean(aligner.match_confidence_[:, :2], axis=0)
    assert_allclose(effects.columns["match"], sure[effects.columns["state"]])


@pytest.mark.parametrize("in_block", [False, True])
def test_mean_angles_on_both_sides_of_pi_differ_by_their_gap(in_block, rng):
    # Subtracted as plain numbers, -3.04 and 3.04 would be 6.08 apart.
    group = np.repeat(["a", "b"], 12)
    angles = np.where(group == "a", np.pi - 0.1, -np.pi + 0.1)
    angles = angles + rng.normal(0, 0.02, 24)
    emission = ByChannel([("turn", VonMises(), [0])]) if in_block else VonMises()
    start = "turn." if in_block else ""
    arrays = {
        "transmats": np.ones((24, 1, 1)),
        f"{start}locations": angles[:, None, None],
        f"{start}concentrations": np.full((24, 1, 1), 4.0),
    }
    models = HMMBatch.from_arrays(arrays, emission=emission)
    effects = state_effects(models, group, measures=["parameters"], random_state=0)
    found = row(effects, "angle_0", 0)
    assert_allclose(found["difference"], 0.2, atol=0.03)
    assert found["low"] < 0.2 < found["high"]
