import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.datasets import load_cmu_mocap
from skawhmm.datasets._amc import CMU_JOINTS, asf_joints

SKELETON = """:version 1.10
:root
   order TX TY TZ RX RY RZ
:bonedata
  begin
     id 1
     name lhipjoint
  end
  begin
     name head   # comment
     dof rx rz
     limits (-160.0 20.0)
            (-70.0 70.0)
  end
:hierarchy
  begin
    root head
  end
"""
HEADER = "#!OML:ASF\n:FULLY-SPECIFIED\n:DEGREES\n"


def frame(number, value):
    return f"{number}\nroot {' '.join([str(value)] * 6)}\nhead {value} {-value}\n"


def write(folder, text, name="01/01_01.amc", skeleton=SKELETON):
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(text.encode())
    if skeleton is not None:
        (path.parent / "01.asf").write_text(skeleton)
    return folder


def test_motions_are_block_means_of_the_frames(tmp_path):
    text = HEADER + "".join(frame(i, i) for i in range(1, 11))
    (tmp_path / "index.csv").write_text(
        "file,label\n01/01_01.amc,walk\n07/07_02.amc,run"
    )
    bunch = load_cmu_mocap(write(tmp_path, text), fps=30)
    assert_allclose(bunch.data[0][:, 0], [2.5, 6.5])
    assert_allclose(bunch.data[0][:, 7], [-2.5, -6.5])
    names = ["tx", "ty", "tz", "rx", "ry", "rz"]
    expected = [f"root_{name}" for name in names] + ["head_rx", "head_rz"]
    assert_array_equal(bunch.feature_names, expected)
    assert_array_equal(bunch.target, ["walk"])
    assert_array_equal(bunch.files, ["01/01_01.amc"])
    assert_array_equal(bunch.subjects, ["01"])
    assert_array_equal(bunch.n_dropped_frames, [2])
    assert bunch.missing_files == ["07/07_02.amc"]
    X, y = load_cmu_mocap(tmp_path, fps=120, return_X_y=True)
    assert_allclose(X[0][:, 0], np.arange(1, 11))
    assert_array_equal(y, ["walk"])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("header", ["", HEADER])
@pytest.mark.parametrize("comment", ["", "# a comment between frames\n"])
def test_variants_of_the_format_give_the_same_frames(
    tmp_path, newline, header, comment
):
    text = header + frame(1, 5.5) + comment + frame(2, 1.5e-14) + frame(10, -7)
    folder = write(tmp_path, text.replace("\n", newline))
    bunch = load_cmu_mocap(folder, fps=120)
    assert_allclose(bunch.data[0][:, 6], [5.5, 1.5e-14, -7])
    assert_array_equal(bunch.n_missing_frames, [7])


def test_joints_may_change_their_order_within_a_file(tmp_path):
    lines = frame(2, 3).splitlines()
    swapped = "\n".join([lines[0], lines[2], lines[1], ""])
    bunch = load_cmu_mocap(write(tmp_path, frame(1, 2) + swapped), fps=120)
    assert_allclose(bunch.data[0][:, 6:], [[2, -2], [3, -3]])


def test_zero_frames_are_counted_and_kept_and_jumps_stay(tmp_path):
    text = frame(1, 0) + frame(2, 0) + frame(3, 179.0) + frame(4, -179.0)
    bunch = load_cmu_mocap(write(tmp_path, text), fps=120)
    assert_array_equal(bunch.n_zero_frames, [2])
    assert_allclose(bunch.data[0][:, 0], [0, 0, 179, -179])


def test_labels_are_also_read_from_the_text_index(tmp_path):
    text = "Subject #1 (climb)\n01_01\tforward jumps, turn around\n\n01_02\tclimb\n"
    (tmp_path / "cmu-mocap-index-text.txt").write_text(text)
    write(tmp_path, frame(1, 1))
    write(tmp_path, frame(1, 1), "01/01_07.amc")
    bunch = load_cmu_mocap(tmp_path, fps=120)
    assert_array_equal(bunch.target, ["forward jumps, turn around", ""])


def test_archives_are_read_like_folders(tmp_path):
    write(tmp_path / "tree", frame(1, 1) + frame(2, 2))
    with zipfile.ZipFile(tmp_path / "tree.zip", "w") as archive:
        for path in (tmp_path / "tree").rglob("*.a*"):
            archive.write(path, Path("all", *path.parts[-2:]))
        archive.writestr("__MACOSX/all/01/._01_01.amc", b"not a motion")
    folder = load_cmu_mocap(tmp_path / "tree", fps=120)
    archive = load_cmu_mocap(tmp_path / "tree.zip", fps=120)
    assert_array_equal(folder.data[0], archive.data[0])
    assert_array_equal(folder.files, archive.files)


def full_frame(number):
    lines = [f"{name} {' '.join('1' * len(dof))}" for name, dof in CMU_JOINTS.items()]
    return "\n".join([str(number), *lines, ""])


@pytest.mark.parametrize(("groups", "n_channels"), [(None, 62), (6, 60), (27, 60)])
def test_groups_partition_the_channels(tmp_path, groups, n_channels):
    folder = write(tmp_path, full_frame(1), skeleton=None)
    bunch = load_cmu_mocap(folder, groups=groups, fps=120)
    assert bunch.data[0].shape == (1, 62)
    assert len(bunch.groups) == (groups or 1)
    channels = np.concatenate(list(bunch.groups.values()))
    assert len(channels) == len(set(channels)) == n_channels
    sizes = [name.split("_")[-1] for name in bunch.groups if groups == 6]
    assert sizes == [str(len(v)) for v in bunch.groups.values() if groups == 6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (frame(1, 1) + "2\nroot 1 2 3\n", r"line 5: expected 6 values .*'root', got 3"),
        (frame(1, 1) + "2\nroot 1 2 3 4 5 x\n", "line 5: could not convert"),
        (frame(1, 1) + "2\nroot 1 2 3 4 5 nan\n", "line 5: joint 'root' has a value"),
        (frame(1, 1) + "2\ntail 1\n", "line 5: joint 'tail' is not in the skeleton"),
        (frame(1, 1) + "2\nhead 1 2\n" + frame(3, 1), r"line 6: .* \['root'\]"),
        (frame(1, 1) + "2\nhead 1 2\n", r"line 5: .* \['root'\]"),
        (frame(1, 1) + "2\nhead 1 2\nhead 1 2\n", "line 6: joint 'head' twice"),
        (frame(2, 1) + frame(1, 1), "line 4: frame 1 follows frame 2"),
        ("root 1 2 3 4 5 6\n", "line 1: expected a frame number"),
        (HEADER, "expected frames, got none"),
        ("", "expected frames, got none"),
    ],
)
def test_malformed_motion_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=rf"01_01\.amc(, |: ){message}"):
        load_cmu_mocap(write(tmp_path, text), fps=120)


def test_malformed_skeletons_and_indexes_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"01\.asf: expected a section :root"):
        load_cmu_mocap(write(tmp_path, frame(1, 1), skeleton="nothing"), fps=120)
    with pytest.raises(ValueError, match=r"a.asf, line 2: dof before the bone's name"):
        asf_joints([":bonedata", "dof rx"], "a.asf")
    write(tmp_path, frame(1, 1))
    (tmp_path / "index.csv").write_text("file,label\nwalk\n")
    with pytest.raises(ValueError, match=r"index\.csv, line 2: expected a file"):
        load_cmu_mocap(tmp_path, fps=120)


def test_motions_of_different_skeletons_are_rejected(tmp_path):
    write(tmp_path, frame(1, 1))
    write(tmp_path, full_frame(1), "02/02_01.amc", skeleton=None)
    with pytest.raises(ValueError, match=r"02_01.amc: its channels differ"):
        load_cmu_mocap(tmp_path, fps=120)


def test_wrong_arguments_are_named(tmp_path, monkeypatch):
    folder = write(tmp_path / "tree", frame(1, 1))
    with pytest.raises(ValueError, match="groups must be 6, 27 or None, got 5"):
        load_cmu_mocap(folder, groups=5)
    with pytest.raises(ValueError, match="fps must be an int that divides 120, got 50"):
        load_cmu_mocap(folder, fps=50)
    with pytest.raises(ValueError, match="a sequence has only 1"):
        load_cmu_mocap(folder, fps=30)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"expected .amc files"):
        load_cmu_mocap(tmp_path / "empty")
    monkeypatch.setenv("SKAWHMM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"cmu_mocap329.*mocap\.cs\.cmu\.edu"):
        load_cmu_mocap()
    (tmp_path / "text.txt").write_text("text")
    with pytest.raises(ValueError, match="expected a folder or a zip archive"):
        load_cmu_mocap(tmp_path / "text.txt")


def test_npz_cannot_be_upsampled(tmp_path):
    names = {"files": ["1/1_1.amc"], "channels": ["root_tx"], "y": ["walk"]}
    np.savez(tmp_path / "a.npz", X=np.ones((4, 1)), lengths=[4], fps=30.0, **names)
    assert load_cmu_mocap(tmp_path / "a.npz", fps=15).data[0].shape == (2, 1)
    with pytest.raises(
        ValueError, match="fps must divide the file's rate of 30, got 60"
    ):
        load_cmu_mocap(tmp_path / "a.npz", fps=60)
    np.savez(tmp_path / "b.npz", lengths=[4], fps=30.0, **names)
    with pytest.raises(ValueError, match=r"b\.npz: expected the array X or delta_T"):
        load_cmu_mocap(tmp_path / "b.npz")


def test_formats_agree(tmp_path):
    # The next test at a small size, on generated motions.
    rng = np.random.default_rng(0)
    motions = [np.round(rng.normal(size=n).cumsum(), 2) for n in (41, 24)]
    files = ["01/01_01.amc", "01/01_02.amc"]
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "index.csv").write_text(
        "file,label\n" + "".join(f"{file},walk\n" for file in files)
    )
    for motion, file in zip(motions, files, strict=True):
        text = "".join(frame(k, value) for k, value in enumerate(motion, 1))
        write(tmp_path / "tree", text, file)
    read = load_cmu_mocap(tmp_path / "tree", fps=30)
    full = [np.stack([m] * 7 + [-m], axis=1) for m in motions]
    names = {"files": files, "channels": read.feature_names, "y": ["walk"] * 2}
    slow = [x[: len(x) // 4 * 4].reshape(-1, 4, 8).mean(axis=1) for x in full]
    np.savez(
        tmp_path / "slow.npz",
        X=np.concatenate(slow),
        lengths=[len(x) for x in slow],
        fps=30.0,
        **names,
    )
    whole = [np.rint(100 * x).astype(np.int64) for x in full]
    np.savez(
        tmp_path / "fast.npz",
        delta_T=np.concatenate(
            [np.diff(x, axis=0, prepend=x[:1]) for x in whole]
        ).T.astype(np.int16),
        first=[x[0] for x in whole],
        scale=0.01,
        lengths=[len(x) for x in whole],
        fps=120.0,
        **names,
    )
    for name in ("slow", "fast"):
        other = load_cmu_mocap(tmp_path / f"{name}.npz", fps=30)
        assert_array_equal(other.files, read.files)
        assert_array_equal(other.target, read.target)
        for x, y in zip(other.data, read.data, strict=True):
            assert_allclose(x, y, atol=1e-9)


def test_shared_motions_agree_between_formats(shared):
    slow = load_cmu_mocap(shared("cmu_mocap329_30fps.npz"))
    fast = load_cmu_mocap(shared("cmu_mocap329_120fps_q.npz"), fps=30)
    files = load_cmu_mocap(shared("cmu_mocap_amc_sample.zip"), fps=30)
    assert len(slow.data) == len(fast.data) == 329
    assert len(np.unique(slow.target)) == 7
    assert_array_equal(slow.n_dropped_frames, fast.n_dropped_frames)
    assert slow.n_zero_frames.sum() == fast.n_zero_frames.sum() == 74
    assert_array_equal(slow.feature_names, files.feature_names)
    index = {name: i for i, name in enumerate(slow.files)}
    matched = [index[name] for name in files.files]
    assert len(matched) == 28
    assert_array_equal(files.target, slow.target[matched])
    for x, i in zip(files.data, matched, strict=True):
        assert_allclose(x, slow.data[i], atol=1e-3)
        # The fast file is rounded to hundredths of a degree.
        assert_allclose(x, fast.data[i], atol=6e-3)


@pytest.mark.parametrize("groups", [6, 27])
def test_shared_groups(shared, groups):
    stored = json.loads(shared("cmu_joint_groups.json").read_text())[f"groups{groups}"]
    found = load_cmu_mocap(shared("cmu_mocap329_30fps.npz"), groups=groups).groups
    assert {name: indices.tolist() for name, indices in found.items()} == stored


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (":RADIANS\n", "line 1: angles in radians"),
        ("#!OML:ASF\n :radians\n", "line 2: angles in radians"),
        (
            ":SAMPLES-PER-SECOND 60\n",
            "line 1: expected 120 frames per second, got '60'",
        ),
    ],
)
def test_motions_in_other_units_are_rejected(tmp_path, header, message):
    with pytest.raises(ValueError, match=rf"01_01\.amc, {message}"):
        load_cmu_mocap(write(tmp_path, header + frame(1, 1)), fps=120)


def test_skeletons_in_radians_or_with_repeated_bones_are_rejected(tmp_path):
    units = SKELETON.replace(":root", ":units\n mass 1.0\n angle rad\n:root")
    with pytest.raises(ValueError, match=r"01\.asf, line 4: angles in radians"):
        load_cmu_mocap(write(tmp_path, frame(1, 1), skeleton=units), fps=120)
    twice = SKELETON.replace(
        ":hierarchy", "begin\n name head\n dof rx\nend\n:hierarchy"
    )
    with pytest.raises(ValueError, match="bone 'head' twice"):
        load_cmu_mocap(write(tmp_path, frame(1, 1), skeleton=twice), fps=120)


@pytest.mark.parametrize("header", ["\ufeff", ":SAMPLES-PER-SECOND 120.0\n", "\n \n"])
def test_headers_of_the_database_are_read(tmp_path, header):
    units = SKELETON.replace(":root", ":UNITS\n angle deg\n:ROOT")
    folder = write(tmp_path, header + HEADER + frame(1, 7), skeleton=units)
    assert load_cmu_mocap(folder, fps=120).data[0].tolist() == [[7.0] * 7 + [-7.0]]


@pytest.mark.parametrize("number", ["9" * 5000, "\u00b2", "1_0"])
def test_frame_numbers_must_be_digits(tmp_path, number):
    with pytest.raises(ValueError, match=r"01_01\.amc, line 4: "):
        load_cmu_mocap(write(tmp_path, frame(1, 1) + frame(number, 1)), fps=120)


def test_numbers_with_underscores_are_rejected(tmp_path):
    text = frame(1, 1) + frame(2, 1).replace("head 1", "head 1_0")
    with pytest.raises(ValueError, match="line 6: expected numbers, got '1_0 -1'"):
        load_cmu_mocap(write(tmp_path, text), fps=120)


def test_all_channels_of_any_skeleton_are_one_group(tmp_path):
    skeleton = SKELETON.replace("name head", "name my_tail")
    text = frame(1, 1).replace("head", "my_tail")
    bunch = load_cmu_mocap(write(tmp_path, text, skeleton=skeleton), fps=120)
    assert_array_equal(bunch.groups["all"], np.arange(8))


def test_motions_of_several_subjects_in_a_folder_have_their_own_skeletons(tmp_path):
    write(tmp_path, frame(1, 1), "all/01_01.amc")
    swapped = SKELETON.replace("dof rx rz", "dof rz rx")
    (tmp_path / "all" / "02.asf").write_text(swapped)
    bunch = load_cmu_mocap(tmp_path, fps=120)
    assert_array_equal(bunch.feature_names[-2:], ["head_rx", "head_rz"])
    (tmp_path / "all" / "01.asf").rename(tmp_path / "all" / "03.asf")
    with pytest.raises(ValueError, match=r"one named 01\.asf, got several"):
        load_cmu_mocap(tmp_path, fps=120)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fps": [30.0, 30]}, "fps must be a number"),
        ({"fps": 0}, "fps must be a number"),
        ({"fps": np.nan}, "fps must be a number"),
        ({"fps": "x"}, "fps must be a number"),
        ({"y": ["a"]}, r"y must have shape \(2,\)"),
        ({"files": [1, 2]}, "files must hold strings"),
        ({"channels": ["root_tx"]}, r"channels must have shape \(2,\)"),
        ({"n_zero_frames": [1]}, r"n_zero_frames must have shape \(2,\)"),
        ({"delta_T": np.ones((2, 8), int)}, r"first must have shape \(2, 2\)"),
    ],
)
def test_inconsistent_archives_of_motions_are_named(tmp_path, changes, message):
    arrays = {"X": np.ones((8, 2)), "lengths": [4, 4], "y": ["a", "b"], "fps": 30.0}
    arrays |= {"files": ["1/a", "2/b"], "channels": ["root_tx", "root_ty"]}
    np.savez(tmp_path / "a.npz", **arrays)
    assert len(load_cmu_mocap(tmp_path / "a.npz").data) == 2
    np.savez(tmp_path / "a.npz", **(arrays | changes))
    with pytest.raises(ValueError, match=message):
        load_cmu_mocap(tmp_path / "a.npz")


@pytest.mark.parametrize("groups", [[], "six", 7, True, 6.0])
def test_wrong_groups_are_named(tmp_path, groups):
    with pytest.raises((TypeError, ValueError), match="groups must be"):
        load_cmu_mocap(tmp_path, groups=groups)
