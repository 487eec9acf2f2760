import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skawhmm import Framewise, HMMEmbedding, HMMTransformer, PairwiseHMMDistance
from skawhmm.datasets import make_hmm_sequences
from skawhmm.sequences import Deltas, TimeChannel
from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._checks import check_sequences


@pytest.fixture
def sequences(rng):
    return [rng.normal(size=(n, 3)) for n in (9, 4, 1, 6)]


def test_framewise_is_the_transformer_on_all_frames(sequences):
    step = Framewise(PCA(n_components=2)).fit(sequences[:3])
    oracle = PCA(n_components=2).fit(np.concatenate(sequences[:3]))
    for x, changed in zip(sequences, step.transform(sequences), strict=True):
        assert_allclose(changed, oracle.transform(x))


def test_framewise_gives_frames_the_label_of_their_sequence(sequences):
    y = np.array([0, 1, 0, 1])
    step = Framewise(LinearDiscriminantAnalysis()).fit(sequences, y)
    frames = np.concatenate(sequences)
    oracle = LinearDiscriminantAnalysis().fit(frames, np.repeat(y, [9, 4, 1, 6]))
    assert_allclose(step.transform(sequences)[0], oracle.transform(sequences[0]))


def test_framewise_nests_parameters():
    pipe = make_pipeline(Framewise(PCA()), HMMTransformer())
    pipe.set_params(framewise__transformer__n_components=1)
    assert pipe[0].transformer.n_components == 1
    assert clone(pipe).get_params()["framewise__transformer__n_components"] == 1


def test_framewise_scales_by_default(sequences):
    step = Framewise().fit(sequences)
    assert isinstance(step.transformer_, StandardScaler)
    assert_allclose(np.concatenate(step.transform(sequences)).std(axis=0), 1)


def test_framewise_takes_steps_that_fill_gaps(sequences):
    sequences[0][2, 1] = np.nan
    filled = Framewise(SimpleImputer()).fit_transform(sequences)
    assert np.isfinite(np.concatenate(filled)).all()


@pytest.mark.parametrize("lag", [1, 2, 5])
def test_deltas_of_a_ramp_are_its_slope(lag):
    ramp = np.arange(7.0)[:, None] * [2.0, -3.0]
    (changed,) = Deltas(order=2, lags=lag).fit_transform([ramp])
    assert_allclose(changed[:, 2:4], np.tile([2.0, -3.0], (7, 1)))
    assert_allclose(changed[:, 4:], 0, atol=1e-14)


def test_deltas_inside_are_central_differences(rng):
    x = rng.normal(size=(10, 2))
    (changed,) = Deltas(lags=(1, 2)).fit_transform([x])
    assert changed.shape == (10, 6)
    assert_allclose(changed[2:-2, 2:4], (x[3:-1] - x[1:-3]) / 2)
    assert_allclose(changed[2:-2, 4:], (x[4:] - x[:-4]) / 4)


def test_one_frame_stands_still():
    (changed,) = Deltas().fit_transform([[[5.0]]])
    assert_array_equal(changed, [[5.0, 0.0]])
    (changed,) = TimeChannel().fit_transform([[[5.0]]])
    assert_array_equal(changed, [[5.0, 0.0]])


def test_time_runs_from_zero_to_scale(sequences):
    for x, changed in zip(
        sequences, TimeChannel(3.0).fit_transform(sequences), strict=True
    ):
        assert_array_equal(changed[:, :3], x)
        assert_allclose(changed[:, 3], np.linspace(0, 3, len(x)))


@pytest.mark.parametrize("step", [Framewise(), Deltas(), TimeChannel()])
def test_forms_of_input_agree(step, rng):
    array = rng.normal(size=(4, 6, 2))
    array[1, 4:] = np.nan
    listed = [array[0], array[1, :4], array[2], array[3]]
    given = array.copy()
    padded = step.fit_transform(array)
    assert_array_equal(array, given)
    for x, row in zip(step.fit_transform(listed), padded, strict=True):
        assert_allclose(row[: len(x)], x)
        assert np.isnan(row[len(x) :]).all()
    assert isinstance(step.transform(listed), list)


@pytest.mark.parametrize("step", [Framewise(), Deltas(), TimeChannel()])
def test_other_numbers_of_features_are_refused(step, sequences):
    step.fit(sequences)
    assert step.n_features_in_ == 3
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
        step.transform([x[:, :2] for x in sequences])
    with pytest.raises(ValueError, match=r"X has 1 features, but .* is expecting 3"):
        step.transform(np.zeros((5, 4)))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Deltas(order=3), "order must be 1 or 2, got 3"),
        (Deltas(lags=0), "lags must be an integer of at least 1, got 0"),
        (TimeChannel(-1), r"scale must be a number in \[0, 1e\+100\], got -1"),
    ],
)
def test_bad_parameters_are_named(step, message, sequences):
    with pytest.raises(ValueError, match=message):
        step.fit(sequences)


def test_models_are_not_sequences(sequences):
    models = HMMTransformer(n_components=1).fit_transform(sequences)
    with pytest.raises(TypeError, match="X must hold sequences for Deltas"):
        Deltas().fit(models)


def test_steps_in_a_pipeline_see_training_frames_only():
    X, _ = make_hmm_sequences(n_sequences=8, random_state=0)
    pipe = make_pipeline(
        Deltas(),
        TimeChannel(),
        Framewise(),
        HMMTransformer(n_components=2, random_state=0),
        PairwiseHMMDistance(),
    )
    alone = pipe.fit(X[:5]).transform(X[5:])
    scaler = StandardScaler().fit(
        np.concatenate(make_pipeline(Deltas(), TimeChannel()).fit_transform(X[:5]))
    )
    assert_allclose(pipe[2].transformer_.mean_, scaler.mean_)
    assert_array_equal(pipe.transform(X[5:6]), alone[:1])


@pytest.mark.parametrize("transformer", [3, "scaler", [], StandardScaler])
def test_objects_that_do_not_transform_frames_are_named(transformer, make_sequences):
    with pytest.raises(TypeError, match=r"^transformer must be None or an instance"):
        Framewise(transformer).fit(make_sequences()[0])


@pytest.mark.parametrize("lags", [(), [], 0, "few", [1, 0], {}])
def test_wrong_lags_are_named(lags, make_sequences):
    with pytest.raises((TypeError, ValueError), match=r"^lags must"):
        Deltas(lags=lags).fit(make_sequences()[0])


@pytest.mark.parametrize(
    ("step", "change"),
    [(Deltas(), {"order": np.nan}), (TimeChannel(), {"scale": np.inf})],
)
def test_parameters_are_checked_after_fit_too(step, change, make_sequences):
    X, _ = make_sequences()
    fitted = clone(step).fit(X).set_params(**change)
    with pytest.raises((TypeError, ValueError), match=f"^{next(iter(change))} must"):
        fitted.transform(X)


@pytest.mark.parametrize("step", [Deltas(2, (1, 3)), TimeChannel(), Framewise()])
def test_results_pass_the_checks_that_are_not_repeated(step, sequences):
    sequences[0][2, 0] = np.nan
    sequences[1][:, 1] = np.nan
    sequences[2] = sequences[2][:1]
    given = CheckedSequences(check_sequences(sequences))
    inside = clone(step).fit(given).transform(given)
    # Transformers of frames may return anything.
    assert isinstance(inside, CheckedSequences) != isinstance(step, Framewise)
    for x, again in zip(inside, check_sequences(list(inside)), strict=True):
        assert x is again
    outside = clone(step).fit_transform(sequences)
    assert type(outside) is list
    for x, y in zip(inside, outside, strict=True):
        assert_array_equal(x, y)


def test_slopes_that_are_too_large_are_refused_by_the_next_step():
    x = np.array([[1e100], [-1e100]])
    steps = make_pipeline(Deltas(), HMMEmbedding(1))
    with pytest.raises(ValueError, match=r"X\[0\] .* at most 1e\+100, got 2e\+100"):
        steps.fit(CheckedSequences([x]))
    steps.fit(CheckedSequences([x / 2]))


def test_frames_that_a_transformer_spoils_are_refused(sequences):
    spoil = Framewise(FunctionTransformer(lambda x: x * np.inf))
    with pytest.raises(ValueError, match=r"X\[0\] must not contain infinity"):
        make_pipeline(spoil, HMMTransformer(1)).fit(CheckedSequences(sequences))


@pytest.mark.parametrize(
    "change", [lambda x: x[1:], lambda x: np.vstack([x, x]), lambda x: x[:, 0]]
)
def test_framewise_refuses_transformers_that_change_the_frames(sequences, change):
    # Frames of one sequence would become those of the next.
    step = Framewise(FunctionTransformer(change)).fit(sequences)
    with pytest.raises(ValueError, match="transformer must return one row per frame"):
        step.transform(sequences)


def test_framewise_refuses_transformers_that_return_texts(sequences):
    step = Framewise(FunctionTransformer(lambda x: x.astype(str)))
    with pytest.raises(ValueError, match=r"output of transformer must be .* strings"):
        step.fit_transform(sequences)


def test_framewise_takes_sparse_output():
    X = [[[0.0], [1.0]], [[2.0], [1.0], [0.0]]]
    found = Framewise(OneHotEncoder()).fit_transform(X)
    assert_array_equal(found[1], [[0, 0, 1], [0, 1, 0], [1, 0, 0]])


def test_lags_beyond_the_sequence_are_its_whole_length():
    X = [np.arange(4.0)[:, None], np.ones((2, 1))]
    found = Deltas(lags=2**63 - 1).fit_transform(X)
    assert_array_equal(found[0][:, 1], [1, 1, 1, 1])
    assert_array_equal(found[1][:, 1], [0, 0])
