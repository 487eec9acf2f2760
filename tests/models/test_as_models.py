"""The door for fitted models: lists, files, own batches and bad input."""

import subprocess
import sys

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM, GaussianHMM
from numpy.testing import assert_allclose

import skawhmm
from skawhmm import HMMBatch, as_models

CHAIN = [[0.9, 0.1], [0.2, 0.8]]
GAUSSIAN = {"transmat": CHAIN, "means": [[0.0], [3.0]], "covars": [[1.0], [0.5]]}
COUNTS = {"transmat": CHAIN, "rates": [[1.0], [2.0]]}


def test_a_batch_is_returned_unchanged(make_batch):
    models = make_batch(3)
    assert as_models(models) is models
    assert skawhmm.models.as_models is as_models


def test_batches_files_and_dictionaries_in_one_list(make_batch, tmp_path):
    own = make_batch(2)
    own.save(tmp_path / "own.npz")
    (tmp_path / "own.json").write_text(own.to_json(), encoding="utf-8")
    given = {"transmat": own.transmats[0], "means": own.means[0]}
    given |= {"covars": own.covars[0], "startprob": own.startprobs[0]}
    items = [own, tmp_path / "own.npz", str(tmp_path / "own.json"), given]
    ours = as_models(items)
    assert len(ours) == 7
    assert ours[:2] == ours[2:4] == ours[4:6] == own
    assert_allclose(ours.transmats[6], own.transmats[0])


def test_libraries_and_forms_of_covariances_in_one_list(rng):
    frames = rng.normal(size=(60, 1))
    theirs = GaussianHMM(2, covariance_type="diag", random_state=0).fit(frames)
    other = {
        "initial": {"probs": [0.5, 0.5]},
        "transitions": {"transition_matrix": CHAIN},
        "emissions": {"means": [[0.0], [3.0]], "covs": [[[1.0]], [[0.5]]]},
    }
    ours = as_models(
        (model for model in (theirs, other)),
        info={"library": ["hmmlearn", "dynamax"]},
        feature_names=["x"],
    )
    assert ours.covariance_type == "full"
    assert ours.feature_names == ("x",)
    assert ours.info["library"].tolist() == ["hmmlearn", "dynamax"]
    assert_allclose(ours[0].score([frames])[0, 0], theirs.score(frames), rtol=1e-10)
    given = as_models([theirs, other], weights=[[0.5, 0.5], [0.1, 0.9]])
    assert_allclose(given.weights, [[0.5, 0.5], [0.1, 0.9]])


def test_stacks_in_a_list_are_several_models():
    stack = {name: np.stack([array] * 2) for name, array in COUNTS.items()}
    assert as_models([COUNTS, stack, COUNTS]) == as_models([COUNTS] * 4)
    assert as_models(stack) == as_models([COUNTS] * 2)


class Recording:
    def __init__(self):
        self.frames = [1.0]


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (3, r"^models must be a fitted model .*, got int"),
        (None, "got NoneType"),
        (b"models", "got bytes"),
        (np.eye(3), "got ndarray"),
        ([Recording()], r"^models\[0\] must be .*, got Recording.*from_arrays"),
        ([GAUSSIAN, 3], r"^models\[1\] must be .*, got int"),
        ([GaussianHMM(2)], r"models\[0\] must be a fitted model, got a GaussianHMM"),
        (CategoricalHMM(2), "got a CategoricalHMM that is not fitted: call its fit"),
        ([GAUSSIAN, COUNTS], "got gaussian in model 0 and poisson in model 1"),
    ],
)
def test_objects_that_are_not_models(models, words):
    with pytest.raises(TypeError, match=words):
        as_models(models)


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ([], "at least one model, got none"),
        ("models.csv", r"file of a known kind, one of .*\.mat.*, got 'models.csv'"),
        (["maw"], r"models\[0\] must name a file of a known kind, .*, got 'maw'"),
        (
            [COUNTS, {**COUNTS, "transmat": [[0.9, 0.1], [0.2, 0.7]]}],
            r"transmats must sum to one, got 0\.8999.* in model 1, state 1",
        ),
        (
            [COUNTS, {**COUNTS, "rates": [[1.0], [np.nan]]}],
            "rates must be finite, got nan in model 1, state 1",
        ),
        ([COUNTS, {**COUNTS, "startprob": [0.5, 0.5]}], "in model 0 and .* in model 1"),
        (
            {**COUNTS, "transmat_": CHAIN},
            "models must hold transmats once, got it again as 'transmat_'",
        ),
    ],
)
def test_values_that_are_not_models(models, words):
    with pytest.raises(ValueError, match=words):
        as_models(models)


def test_own_models_have_their_own_columns(make_batch):
    with pytest.raises(ValueError, match=r"^info must be None for models of this pack"):
        as_models(make_batch(2), info={"a": [1, 2]})


def test_a_missing_file_is_named(tmp_path):
    for name in ("a.json", "a.mat", "a.txt", "a.npz"):
        with pytest.raises(FileNotFoundError, match=name):
            as_models(tmp_path / name)


def test_text_in_another_encoding_is_named(tmp_path):
    (tmp_path / "a.json").write_bytes(b'{"kind": "\xff"}')
    with pytest.raises(ValueError, match="must be a text in UTF-8"):
        as_models(tmp_path / "a.json")


def test_models_of_nemos_name_what_to_do():
    kind = type("GLMHMM", (), {"__module__": "nemos.glm_hmm"})
    with pytest.raises(TypeError, match=r"GLMHMM of nemos.*from_state_costs"):
        as_models([kind()])


def test_no_library_is_imported():
    code = (
        "import sys; from skawhmm import as_models; as_models([{'transmat': [[1.0]], "
        "'rates': [[1.0]]}]); names = 'jax torch dynamax pomegranate glhmm scipy.io'; "
        "print([name for name in names.split() if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() in {"[]", "['scipy.io']"}


def test_dynamax_is_named_if_it_is_missing(make_batch):
    try:
        import dynamax  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(ImportError, match="pip install dynamax"):
            make_batch(1).to_dynamax()
    else:
        pytest.skip("dynamax is installed")


def test_models_that_other_libraries_cannot_hold(make_batch):
    costs = HMMBatch.from_state_costs([[[1.0]]], [[0.0]])
    masked = HMMBatch(
        [[[1.0]]], [[[0.0, 1.0]]], [[[1.0, 1.0]]], observed=[[True, False]]
    )
    for library in ("hmmlearn", "dynamax"):
        with pytest.raises(TypeError, match=f"a counterpart in {library}"):
            getattr(costs, f"to_{library}")()
        with pytest.raises(
            ValueError, match=f"all features for {library}, got model 0"
        ):
            getattr(masked, f"to_{library}")()
        with pytest.raises(IndexError, match=r"^index must"):
            getattr(make_batch(2), f"to_{library}")(2)
