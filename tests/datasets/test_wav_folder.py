import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import wavfile

from skawhmm.datasets import load_wav_folder
from skawhmm.sequences import mfcc


@pytest.fixture
def folder(tmp_path, rng):
    for name in ("yes/b.wav", "yes/a.WAV", "no/deep/c.wav", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.write_text("no sound")
        else:
            samples = rng.integers(-3000, 3000, size=4000).astype(np.int16)
            wavfile.write(path, 8000, samples)
    return tmp_path


def test_folders_are_labels(folder):
    bunch = load_wav_folder(folder)
    assert bunch.files == ["no/deep/c.wav", "yes/a.WAV", "yes/b.wav"]
    assert bunch.target.tolist() == ["deep", "yes", "yes"]
    assert bunch.target_names == ["deep", "yes"]
    assert_array_equal(bunch.sample_rate, [8000] * 3)
    rate, samples = wavfile.read(folder / "yes" / "b.wav")
    assert_array_equal(bunch.data[2], mfcc(samples, rate))


def test_labels_by_file_name_and_mfcc_options(folder):
    X, y = load_wav_folder(
        folder, label=lambda name: name[-5], return_X_y=True, deltas=0, hop=0.02
    )
    assert y.tolist() == ["c", "a", "b"]
    assert X[0].shape[1] == 13
    with pytest.raises(ValueError, match="deltas must be 0, 1 or 2"):
        load_wav_folder(folder, deltas=5)


def test_channels_are_averaged(tmp_path):
    times = np.arange(4000) / 8000
    left = (8000 * np.sin(2 * np.pi * 440 * times)).astype(np.int16)
    wavfile.write(tmp_path / "both.wav", 8000, np.stack([left, 0 * left], axis=1))
    (x,) = load_wav_folder(tmp_path).data
    # Rounding to integers does not change the loud bands.
    assert_allclose(x[:, 1], mfcc(left / 2 / 32768, 8000)[:, 1], rtol=0.05)


def test_archives_are_read_like_folders(folder, tmp_path):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in folder.rglob("*.[wW]*"):
            archive.write(path, path.relative_to(folder))
    archived, bunch = load_wav_folder(tmp_path / "all.zip"), load_wav_folder(folder)
    assert archived.files == bunch.files
    assert_array_equal(archived.data[0], bunch.data[0])


def test_files_that_are_not_sounds_are_named(folder, tmp_path):
    (folder / "yes" / "d.wav").write_bytes(b"RIFF but not really")
    with pytest.raises(ValueError, match=r"yes/d\.wav: damaged RIFF"):
        load_wav_folder(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"end in \.wav, got none"):
        load_wav_folder(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="SKAWHMM_DATA"):
        load_wav_folder(tmp_path / "nowhere")
