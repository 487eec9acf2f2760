from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skawhmm import HMMBatch, HMMTransformer, Trials, hmm_group_test
from skawhmm import pairwise_hmm_components as components
from skawhmm.groups import state_effects

pytestmark = pytest.mark.filterwarnings("ignore:The groups", "ignore:There are only")

HMM = HMMTransformer(2, random_state=0, max_iter=20)
PLACES = np.array([[0.0, 0.0], [4.0, 0.0]])


def trials_of(rng, counts, n_units=4, length=5, shift=0.0, stay=(0.6, 0.6)):
    """Return trials, conditions and units: `counts` trials per condition and unit."""
    X, groups, units = [], [], []
    for unit in range(n_units):
        places = PLACES + rng.normal(0, 0.3, (2, 2))
        for group, count in enumerate(counts):
            chain = [[stay[group], 1 - stay[group]], [1 - stay[group], stay[group]]]
            model = HMMBatch([chain], [places + shift * group], np.ones((1, 2, 2)))
            for _ in range(count):
                seed = int(rng.integers(2**31))
                X.append(model.sample(length, random_state=seed)[0][0])
                groups.append("ab"[group])
                units.append(unit)
    return X, groups, units


def refitted(X, groups, units, **more):
    return hmm_group_test(
        X, groups, units=units, **{"hmm": HMM, "refit": True, "random_state": 0, **more}
    )


def by_hand(X, labels, units):
    """Return pseudo-F of the distance of freshly fitted models, by residuals."""
    labels, units = np.asarray(labels), np.asarray(units)
    parts, rows = [], []
    for unit in np.unique(units):
        for group in np.unique(labels):
            own = np.flatnonzero((units == unit) & (labels == group))
            parts.append(Trials([X[i] for i in own]))
            rows.append((unit, group))
    models = HMM.fit(X).transform(parts)
    marginal, transition = components(models, metric="jaw")
    squares = (0.5 * marginal + 0.5 * transition) ** 2
    n_units = len(np.unique(units))
    columns = np.array(
        [[u == k for k in np.unique(units)] + [g == "b"] for u, g in rows], float
    )

    def left(columns):
        rest = np.eye(len(rows)) - columns @ np.linalg.pinv(columns)
        return np.trace(rest @ (-0.5 * squares) @ rest)

    within, full = left(columns[:, :-1]), left(columns)
    return (within - full) / (full / (n_units - 1))


def test_all_arrangements_of_a_tiny_design(rng):
    # Two units with two trials of one condition and one of the other: 3 * 3 orders.
    X, groups, units = trials_of(rng, (2, 1), n_units=2)
    with pytest.warns(
        UserWarning, match=r"only 9 different arrangements .* below 0\.111"
    ):
        result = refitted(X, groups, units, n_permutations=99)
    found = []
    for places in product(range(3), repeat=2):
        labels = np.full(6, "a")
        labels[[places[0], 3 + places[1]]] = "b"
        found.append(by_hand(X, labels, units))
    observed = by_hand(X, groups, units)
    assert_allclose(result.statistic, observed, rtol=1e-6)
    # Two units leave one degree of freedom.
    assert_allclose(result.effect_size, observed / (observed + 1), rtol=1e-6)
    others = sorted(x for x in found if not np.isclose(x, observed, rtol=1e-9))
    assert_allclose(np.sort(result.null_distribution), others, rtol=1e-6)
    assert_allclose(result.pvalue, np.mean(np.array(found) >= observed * (1 - 1e-9)))


def test_pvalues_are_uniform_with_four_to_one_trials(rng):
    found = []
    for seed in range(60):
        X, groups, units = trials_of(rng, (8, 2), n_units=3, length=4)
        result = refitted(X, groups, units, n_permutations=19, random_state=seed)
        values = [test.pvalue for test in result.tests.values()]
        found.append([*values, result.effects.columns["pvalue"].min()])
    # A p-value is a multiple of 1/20; drawn within its step it is continuous.
    found = np.array(found) - rng.random((60, 4)) / 20
    for values in found[:, :3].T:
        assert stats.kstest(values, "uniform").pvalue > 0.001
    # The least of corrected p-values is not below its level more often than it may.
    assert np.mean(found[:, 3] <= 0.05) <= 0.15


@pytest.mark.parametrize(
    ("more", "found", "spared"),
    [
        ({"shift": 1.5}, "marginal", "transition"),
        ({"stay": (0.9, 0.1)}, "transition", "marginal"),
    ],
)
def test_planted_differences_are_found_in_their_component(rng, more, found, spared):
    X, groups, units = trials_of(rng, (9, 6), n_units=6, length=8, **more)
    result = refitted(X, groups, units, n_permutations=99)
    assert result.tests[found].pvalue == 0.01
    assert result.tests[spared].pvalue > 0.02
    columns = result.effects.columns
    sure = columns["measure"][columns["pvalue"] <= 0.05]
    steps = {"transition", "dwell_time"}
    assert (steps & set(sure)) if found == "transition" else set(sure) - steps


def test_jobs_and_seeds(rng):
    X, groups, units = trials_of(rng, (5, 3), n_units=3)
    one, two, other = (
        refitted(X, groups, units, n_permutations=200, **more)
        for more in ({"n_jobs": 1}, {"n_jobs": 2}, {"random_state": 1})
    )
    for name, test in one.tests.items():
        assert_array_equal(test.null_distribution, two.tests[name].null_distribution)
    assert_array_equal(one.effects.null_distribution, two.effects.null_distribution)
    assert not np.array_equal(one.null_distribution, other.null_distribution)


def test_names_of_conditions_do_not_matter(rng):
    X, groups, units = trials_of(rng, (5, 3), n_units=3, shift=0.5)
    turned = ["ba"["ab".index(group)] for group in groups]
    one, two = (
        refitted(X, labels, units, n_permutations=59) for labels in (groups, turned)
    )
    assert_allclose(two.null_distribution, one.null_distribution)
    for name in ("pvalue", "uncorrected"):
        assert_allclose(two.effects.columns[name], one.effects.columns[name])
    assert_allclose(
        two.effects.columns["difference"], -one.effects.columns["difference"]
    )


def test_units_may_be_trials(rng):
    X, groups, units = trials_of(rng, (4, 3), n_units=3)
    flat = refitted(X, groups, units, n_permutations=30)
    nested = [
        Trials([X[i] for i in np.flatnonzero(np.equal(units, u))]) for u in range(3)
    ]
    given = refitted(nested, groups, None, n_permutations=30)
    assert_array_equal(flat.null_distribution, given.null_distribution)
    with pytest.raises(ValueError, match="units must be None if X holds Trials"):
        refitted(nested, groups, units, n_permutations=30)


def test_one_unit_is_enough(rng):
    X, groups, _ = trials_of(rng, (12, 8), n_units=1, length=10, shift=9.0)
    result = refitted(Trials(X), groups, None, n_permutations=99)
    assert result.marginal.pvalue == 0.01
    assert result.groups == {"a": 1, "b": 1}
    same = refitted(*trials_of(rng, (12, 8), n_units=1)[:2], None, n_permutations=99)
    assert same.pvalue > 0.02


def test_three_conditions_have_pairs(rng):
    X, groups, units = [], [], []
    for unit in range(4):
        for group, count in enumerate((6, 4, 4)):
            model = HMMBatch(
                [[[0.6, 0.4], [0.4, 0.6]]],
                [PLACES + 3 * (group == 2)],
                np.ones((1, 2, 2)),
            )
            seeds = rng.integers(2**31, size=count)
            X += [model.sample(6, random_state=int(seed))[0][0] for seed in seeds]
            groups += ["abc"[group]] * count
            units += [unit] * count
    result = refitted(X, groups, units, n_permutations=79)
    assert set(result.pairwise) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert result.pairwise_pvalues["a", "c"]["distance"] < 0.05
    assert result.pairwise_pvalues["a", "b"]["distance"] > 0.05


def test_effects_are_those_of_the_observed_models(rng):
    X, groups, units = trials_of(rng, (8, 6), n_units=5, length=8, shift=1.0)
    result = refitted(X, groups, units, n_permutations=39)
    reference = HMM.fit(X).transform([Trials(X)])
    models = result.models
    assert len(models) == 10
    wanted = state_effects(
        models,
        np.tile(["a", "b"], 5),
        strata=np.repeat(np.arange(5), 2),
        reference=reference,
        n_permutations=39,
        random_state=0,
    )
    order = np.lexsort(
        [wanted.columns[name] for name in ("next_state", "state", "measure")]
    )
    mine = np.lexsort(
        [result.effects.columns[name] for name in ("next_state", "state", "measure")]
    )
    for name in ("difference", "low", "high"):
        assert_allclose(
            result.effects.columns[name][mine], wanted.columns[name][order], rtol=1e-6
        )
    assert "with refits" in repr(result)
    assert result.missing["dispersion"].startswith("models are fitted again")


def test_units_with_one_condition_each_are_permuted(rng):
    X, groups, units = trials_of(rng, (4, 4), n_units=6)
    units = np.repeat(np.arange(12), 4)
    result = refitted(X, groups, units, n_permutations=99)
    models = HMM.fit(X).transform(
        [Trials([X[i] for i in np.flatnonzero(units == u)]) for u in range(12)]
    )
    wanted = hmm_group_test(
        models, np.array(groups)[::4], n_permutations=99, random_state=0
    )
    assert_array_equal(result.null_distribution, wanted.null_distribution)
    with pytest.raises(ValueError, match=r"groups must vary within units .* 12 units"):
        refitted(X, groups, units, refit="within")


def test_labels_that_cannot_be_fitted_are_not_drawn(rng):
    # Condition b has one trial of several frames; the others have one frame.
    X, groups, units = trials_of(rng, (6, 3), n_units=3)
    for unit in range(3):
        for k in (7, 8, 0, 1):
            X[9 * unit + k] = X[9 * unit + k][:1]
    result = refitted(X, groups, units, n_permutations=60)
    assert np.isfinite(result.null_distribution).all()


def test_texts_are_trials(rng):
    texts = ["".join(rng.choice(list("ab"), size=6)) for _ in range(40)]
    groups, units = ["x", "x", "x", "y"] * 10, np.repeat(np.arange(5), 8)
    hmm = HMMTransformer(2, emission="categorical", random_state=0)
    result = refitted(texts, groups, units, hmm=hmm, n_permutations=30)
    assert 0 < result.pvalue <= 1


def test_the_cost_is_printed(rng, capsys):
    X, groups, units = trials_of(rng, (4, 3), n_units=3)
    refitted(X, groups, units, n_permutations=30, verbose=1)
    shown = capsys.readouterr().err
    assert "30 permutations of 6 models: 180 fits, about" in shown
    assert "permutations with refits" in shown


def test_bad_input_is_named(rng):
    X, groups, units = trials_of(rng, (3, 2), n_units=3)
    lacking = [*groups]
    lacking[3:5] = "aa"
    single = trials_of(rng, (1, 1), n_units=6)
    short = [x[:1] if g == "b" else x for x, g in zip(X, groups, strict=True)]
    broken = [x.copy() for x in X]
    broken[4][2, 0] = np.inf
    models = HMM.fit_transform(X)
    for given, message in [
        ((X, lacking, units), "got unit '0' without 'b'"),
        (single, "got 1 trial per unit and group"),
        ((X, ["a"] * 15, units), "groups must name at least 2 groups, got only 'a'"),
        ((X, groups[1:], units), r"one label per trial \(15 trials\)"),
        ((X, groups, units[1:]), r"units must hold one label per trial"),
        ((short, groups, units), "of at least 2 frames in every group, got unit '0'"),
        ((broken, groups, units), r"inf.*X\[4\]|X\[4\].*inf"),
        ((models, groups, units), "refit=True needs sequences, .* got an HMMBatch"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            refitted(*given, n_permutations=19)
    for more, message in [
        ({"hmm": 3}, "hmm must be None or a transformer"),
        ({"refit": "always"}, "refit must be one of 'within', got 'always'"),
        ({"strata": units}, "strata must be None with refit=True"),
        ({"covariates": units}, "covariates must be None with refit=True"),
        ({"match": "frames"}, "match must be None with refit=True"),
        ({"refit": False}, "hmm must be None with refit=False"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            refitted(X, groups, units, **more)
