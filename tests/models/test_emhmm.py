"""Models of EMHMM in `.mat` files, written as the toolbox saves them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import loadmat, savemat

from skawhmm import as_models


def structure(rng, size=3, n_features=2, **changes):
    """Return a model with the fields and the shapes of `vbhmm_learn`."""
    states = np.empty((1, size), object)
    for k in range(size):
        root = rng.normal(size=(n_features, n_features))
        states[0, k] = {
            "mean": rng.normal(size=(1, n_features)),
            "cov": root @ root.T + np.eye(n_features),
        }
    model = {
        "prior": rng.dirichlet(np.ones(size))[:, None],
        "trans": rng.dirichlet(np.ones(size), size=size),
        "pdf": states,
        "LL": -12.5,
        "gamma": cell([np.ones((size, 4))]),
        "varpar": {"alpha": np.ones((size, 1))},
    }
    return {**model, **changes}


def cell(values, shape=None):
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape or (1, -1), order="F")


@pytest.fixture
def saved(tmp_path):
    def save(**variables):
        # MATLAB compresses, too.
        savemat(tmp_path / "models.mat", variables, do_compression=True)
        return tmp_path / "models.mat"

    return save


def test_models_of_a_file_are_its_structures(saved, rng):
    given = [structure(rng, size) for size in (3, 2, 1)]
    path = saved(hmms=cell(given), faceimg="face.png", vbopt={"alpha": 1.0})
    ours = as_models(path)
    assert ours.n_components.tolist() == [3, 2, 1]
    for n, model in enumerate(given):
        size = len(model["prior"])
        assert_allclose(ours.startprobs[n, :size], model["prior"][:, 0])
        assert_allclose(ours.transmats[n, :size, :size], model["trans"])
        assert_allclose(ours.means[n, size - 1], model["pdf"][0, -1]["mean"][0])
        assert_allclose(ours.covars[n, size - 1], model["pdf"][0, -1]["cov"])
    content = loadmat(path, simplify_cells=True)
    assert as_models(content["hmms"]) == ours
    assert as_models(content["hmms"][1]) == ours[1]


def test_cells_are_counted_by_columns(saved, rng):
    given = [structure(rng, 2) for _ in range(6)]
    path = saved(hmms=cell(given, (3, 2)))
    ours = as_models(path)
    assert as_models(loadmat(path, simplify_cells=True)["hmms"]) == ours
    assert_allclose(ours.startprobs, [model["prior"][:, 0] for model in given])


def test_one_channel_and_one_model(saved, rng):
    model = structure(rng, 2, n_features=1)
    ours = as_models(saved(hmm=model))
    assert ours.means.shape == (1, 2, 1)
    assert_array_equal(ours.covars[0, 1], model["pdf"][0, 1]["cov"])


def test_models_of_groups_are_read_from_their_field(saved, rng):
    given = [structure(rng, 2) for _ in range(2)]
    path = saved(group_hmms={"Z": np.ones((2, 1)), "hmms": cell(given)})
    assert len(as_models(path)) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trans": np.full((2, 2), 0.4)}, r"transmats must sum to one, got 0\.8"),
        (
            {"trans": np.full((2, 2), np.nan)},
            "transmats must be finite, got nan in mod",
        ),
        (
            {"trans": np.ones((3, 2))},
            r"trans of hmms\[1\] of .* must have shape \(2, 2",
        ),
        ({"prior": np.ones(3)}, r"prior of hmms\[1\] of .* must have shape \(2,\)"),
        ({"prior": "many"}, r"prior of hmms\[1\] of .* must be an array of numbers"),
        ({"trans": cell([np.eye(2)] * 2)}, r"hmms\[1\] of .* a chain per group"),
        ({"pdf": cell([{"mean": 1.0}])}, r"hmms\[1\] of .* in state 0"),
    ],
)
def test_errors_name_the_model_and_the_field(change, words, saved, rng):
    path = saved(hmms=cell([structure(rng, 2), structure(rng, 2, **change)]))
    with pytest.raises((TypeError, ValueError), match=words):
        as_models(path)


def test_a_missing_model_is_named(saved, rng):
    path = saved(hmms=cell([structure(rng, 2), np.zeros((0, 0))]))
    with pytest.raises(TypeError, match=r"hmms\[1\] of .* must be a model of EMHMM"):
        as_models(path)


def test_a_file_with_several_variables_names_them(saved, rng):
    path = saved(hmms=cell([structure(rng)] * 2), others=cell([structure(rng)] * 2))
    with pytest.raises(ValueError, match=r"\['hmms', 'others'\].*loadmat.*\['hmms'\]"):
        as_models(path)
    with pytest.raises(ValueError, match="got none"):
        as_models(saved(data=np.eye(3)))


def test_damaged_files_are_refused_or_read(saved, rng):
    # Checksums of compressed variables find damage before scipy parses them.
    path = saved(hmms=cell([structure(rng, 2)] * 2))
    content = path.read_bytes()
    for _ in range(150):
        damaged = bytearray(content)
        for place in rng.integers(len(content), size=rng.integers(1, 6)):
            damaged[place] = rng.integers(256)
        path.write_bytes(bytes(damaged[: rng.integers(1, len(content) + 1)]))
        try:
            as_models(path)
        except (TypeError, ValueError) as error:
            assert str(error)  # noqa: PT017


def test_files_of_matlab_4_are_refused(saved, rng):
    path = saved(hmms=cell([structure(rng, 2)]))
    # Older files begin with a number, by which scipy recognises them.
    path.write_bytes(b"\x00" + path.read_bytes()[1:])
    with pytest.raises(ValueError, match="files of MATLAB 5 and later"):
        as_models(path)


def test_files_of_matlab_7_3_are_named(tmp_path):
    path = tmp_path / "new.mat"
    header = b"MATLAB 7.3 MAT-file".ljust(124, b" ")
    path.write_bytes(header + b"\x00\x02IM" + bytes(512))
    with pytest.raises(ValueError, match=r"save\(\.\.\., '-v7'\)"):
        as_models(path)
