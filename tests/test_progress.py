import numpy as np
import pytest

from skawhmm import HMMKMeans, HMMTransformer, hmm_barycenter, hmm_group_test
from skawhmm.groups import HMMAligner, distance_interval, state_effects
from skawhmm.plot import HMMMapDisplay


@pytest.fixture(scope="module")
def models():
    X = [np.random.default_rng(n).normal(n % 2, 1, size=(40, 2)) for n in range(8)]
    return HMMTransformer(2, random_state=0).fit_transform(X)


def drawn_map(models, verbose):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    display = HMMMapDisplay.from_models(models, method="mds", verbose=verbose)
    pyplot.close("all")
    return display.positions


GROUPS = [0, 1] * 4
SEED = {"random_state": 0}
SHOWN = {
    "average": (
        "steps of the average",
        lambda models, v: hmm_barycenter(models, **SEED, verbose=v)[1],
    ),
    "k-means": (
        "rounds of k-means",
        lambda models, v: HMMKMeans(2, **SEED, verbose=v).fit(models).labels_,
    ),
    "aligner": (
        "steps of the average",
        lambda models, v: HMMAligner(**SEED, verbose=v).fit(models).plans_,
    ),
    "medoid": (
        "tiles",
        lambda models, v: HMMAligner("medoid", verbose=v).fit(models).plans_,
    ),
    "test": (
        "permutations",
        lambda models, v: (
            hmm_group_test(models, GROUPS, n_permutations=50, **SEED, verbose=v).pvalue
        ),
    ),
    "effects": (
        "steps of the average",
        lambda models, v: (
            state_effects(
                models, GROUPS, n_permutations=50, **SEED, verbose=v
            ).null_distribution
        ),
    ),
    "interval": (
        "fits",
        lambda models, v: (
            distance_interval(
                models[0], models[1], n_resamples=5, **SEED, verbose=v
            ).high
        ),
    ),
    "scores": (
        "sequences",
        lambda models, v: models.score([np.zeros((5, 2))] * 3, verbose=v),
    ),
    "map": ("tiles", drawn_map),
}


@pytest.mark.parametrize("name", SHOWN)
def test_long_work_shows_progress_on_request(name, models, capsys):
    label, run = SHOWN[name]
    quiet = run(models, 0)
    assert capsys.readouterr() == ("", "")
    loud = run(models, 1)
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{label}: 100%" in err
    np.testing.assert_array_equal(loud, quiet)


def test_verbose_must_be_a_number(models):
    with pytest.raises(TypeError, match="verbose must be an integer"):
        hmm_barycenter(models, verbose="yes")
    with pytest.raises(TypeError, match="verbose must be an integer"):
        models.score([np.zeros((5, 2))], verbose="yes")
    with pytest.raises(TypeError, match="verbose must be an integer"):
        distance_interval(models[0], models[1], verbose="yes")
