import io
import json
import struct
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import wavfile

from skawhmm.datasets import load_timit
from skawhmm.datasets._sound_files import sound
from skawhmm.datasets._timit import _FOLD_48, _folded, phn_segments
from skawhmm.sequences import mfcc

PHONES = "0 1600 h#\n1600 3200 sh\n3200 3210 q\n3210 3220 iy\n3220 4800 pcl\n"


def samples(n_samples=4800):
    return np.random.default_rng(0).integers(-3000, 3000, n_samples).astype(np.int16)


def sphere(values, order="<i2", **changes):
    """Content of a NIST SPHERE file."""
    fields = {
        "sample_count": f"-i {len(values)}",
        "sample_n_bytes": "-i 2",
        "channel_count": "-i 1",
        "sample_byte_format": "-s2 01" if order == "<i2" else "-s2 10",
        "sample_rate": "-i 16000",
        "sample_coding": "-s3 pcm",
    }
    lines = [f"{name} {value}" for name, value in (fields | changes).items() if value]
    header = "\n".join(["NIST_1A", "   1024", *lines, "end_head", ""])
    return header.encode().ljust(1024) + values.astype(order).tobytes()


def riff(values):
    file = io.BytesIO()
    wavfile.write(file, 16000, values)
    return file.getvalue()


def write(folder, speakers=("dr1-f", "dr1-m"), phones=PHONES, content=None):
    for speaker in speakers:
        place = folder / speaker
        place.mkdir(parents=True, exist_ok=True)
        (place / "SA1.PHN").write_text(phones)
        if content is None:
            wavfile.write(place / "SA1.WAV", 16000, samples())
        else:
            (place / "SA1.WAV").write_bytes(content)
    return folder


def test_segments_have_the_frames_centred_in_them(tmp_path):
    bunch = load_timit(write(tmp_path), test_size=0.5)
    assert_array_equal(bunch.target, ["sil", "sh", "iy", "sil"] * 2)
    assert_array_equal(bunch.segments.phone, ["h#", "sh", "iy", "pcl"] * 2)
    assert_array_equal(bunch.speaker, np.repeat(["dr1-f", "dr1-m"], 4))
    assert_array_equal(bunch.segments.utterance[0], "dr1-f/sa1")
    features = mfcc(samples(), 16000)
    centres = 200 + 160 * np.arange(len(features))
    first = features[centres < 1600]
    second = features[(centres >= 1600) & (centres < 3200)]
    assert_allclose(bunch.data[0], first)
    assert_allclose(bunch.data[1], second)
    # No centre lies in the ten samples of the third: it gets the nearest frame.
    nearest = np.abs(centres - 3215).argmin()
    assert_allclose(bunch.data[2], features[[nearest]])
    assert_array_equal(bunch.segments.n_frames, [len(x) for x in bunch.data])


@pytest.mark.parametrize("n_phones", [39, 48, 61])
def test_phone_sets(tmp_path, n_phones):
    _, y = load_timit(write(tmp_path, ["a"]), n_phones=n_phones, return_X_y=True)
    expected = {
        39: ["sil", "sh", "iy", "sil"],
        48: ["sil", "sh", "iy", "cl"],
        61: ["h#", "sh", "q", "iy", "pcl"],
    }
    assert_array_equal(y, expected[n_phones])


def test_riff_and_both_sphere_byte_orders_give_the_same_sound(tmp_path):
    riff = load_timit(write(tmp_path / "riff"))
    for name, order in (("little", "<i2"), ("big", ">i2")):
        content = sphere(samples(), order)
        other = load_timit(write(tmp_path / name, content=content))
        for a, b in zip(riff.data, other.data, strict=True):
            assert_array_equal(a, b)


def test_archives_are_read_like_folders(tmp_path):
    write(tmp_path / "timit")
    with zipfile.ZipFile(tmp_path / "timit.zip", "w") as archive:
        for path in (tmp_path / "timit").rglob("*.*"):
            archive.write(path, path.relative_to(tmp_path))
    folder, archive = (load_timit(tmp_path / name) for name in ("timit", "timit.zip"))
    assert_array_equal(folder.segments.utterance, archive.segments.utterance)
    for a, b in zip(folder.data, archive.data, strict=True):
        assert_array_equal(a, b)


def test_random_split_keeps_speakers_together(tmp_path):
    folder = write(tmp_path, [f"s{i}" for i in range(8)])
    bunch = load_timit(folder, test_size=0.25, random_state=1)
    parts = {
        part: set(bunch.speaker[bunch.split == part]) for part in ("train", "test")
    }
    assert len(parts["test"]) == 2
    assert len(parts["train"]) == 6
    assert not parts["test"] & parts["train"]
    again = load_timit(folder, test_size=0.25, random_state=1)
    assert_array_equal(bunch.split, again.split)
    assert set(load_timit(folder, test_size=0.0).split) == {"train"}


def test_split_of_the_tree_is_kept(tmp_path):
    folder = write(tmp_path, ["TRAIN/DR1/FAAA0", "TEST/DR1/FBBB0", "TRAIN/DR2/MCCC0"])
    bunch = load_timit(folder)
    assert set(bunch.speaker[bunch.split == "train"]) == {"faaa0", "mccc0"}
    assert set(bunch.speaker[bunch.split == "test"]) == {"fbbb0"}


def test_concatenated_segments_have_one_class_and_one_part(tmp_path):
    folder = write(tmp_path, [f"s{i}" for i in range(10)])
    single = load_timit(folder, test_size=0.3)
    joined = load_timit(folder, test_size=0.3, concat=3)
    for x, label, part, members in zip(
        joined.data, joined.target, joined.split, joined.members, strict=True
    ):
        assert len(members) == 3
        assert set(single.target[members]) == {label}
        assert set(single.split[members]) == {part}
        assert_array_equal(x, np.vstack([single.data[i] for i in members]))
    used = np.concatenate(joined.members)
    assert len(used) == len(set(used))
    # 14 and 6 of "sil", 7 and 3 of each of the two others, in threes.
    assert len(joined.data) == 4 + 2 + 2 * (2 + 1)
    assert joined.n_dropped_segments == 40 - 3 * 12
    with pytest.raises(ValueError, match=r"concat must not exceed .* got 20"):
        load_timit(folder, concat=20)


@pytest.mark.parametrize(
    ("phones", "message"),
    [
        ("0 10 h#\n10 20\n", "line 2: expected a first sample"),
        ("0 10 h#\n10 x sh\n", "line 2: expected a first sample"),
        ("0 10 h#\n10 20 zz\n", "line 2: 'zz' is not one of TIMIT's 61 phones"),
        ("0 10 h#\n20 20 sh\n", "line 2: the segment ends at 20"),
    ],
)
def test_malformed_annotation_is_named_with_its_line(tmp_path, phones, message):
    with pytest.raises(ValueError, match=rf"SA1\.PHN, {message}"):
        load_timit(write(tmp_path, phones=phones))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a RIFF or NIST SPHERE"),
        (b"RIFF", "damaged RIFF file"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt \x10\x00", "damaged RIFF file"),
        (b"NIST_1A\nlong\n", "line 2: expected the size of the header"),
        (b"NIST_1A\n   1024\n".ljust(1024), "expected end_head"),
        (sphere(samples(), sample_rate=None), "integer sample_rate .* got 'none'"),
        (sphere(samples(), sample_rate="-i fast"), "line 7: expected a name, a type"),
        (sphere(samples(), sample_coding="-s26 pcm,embedded-shorten-v2.00"), "uncompr"),
        (sphere(samples(), sample_count="-i 5000"), "expected 5000 samples, got 4800"),
        (sphere(samples(), sample_byte_format="-s2 11"), "expected sample_byte_format"),
        (sphere(samples(), sample_count="-i 9", channel_count="-i 2"), "one channel"),
        (sphere(samples()[:0]), "positive integer sample_count .* got 0"),
        (sphere(samples(), sample_count="-i -1"), "integer sample_count .* got -1"),
        (sphere(samples(), channel_count="-i 0"), "integer channel_count .* got 0"),
        (sphere(samples(), channel_count="-i -2"), "integer channel_count .* got -2"),
        (sphere(samples(), sample_rate="-r 16000.5"), "sample_rate .* got 16000.5"),
        (sphere(samples(), sample_rate="-r 1e999"), "sample_rate .* got inf"),
        (sphere(samples(), sample_rate="-s5 16000"), "sample_rate .* got '16000'"),
        (sphere(samples(), sample_count="-i --9"), "line 3: expected a name"),
        (sphere(samples(), sample_count="-i " + "9" * 900), "line 3: expected a name"),
        (sphere(samples(), sample_count="-i " + "8" * 15), "expected 8+ samples, got"),
        (sphere(samples(), sample_count="-i " + "9" * 18), "sample_count .* got 9+"),
        (sphere(samples(), sample_byte_format=None), "sample_byte_format 01 or 10"),
        (sphere(samples(), sample_coding="-s4 ulaw"), "pcm.*'ulaw'.*sox"),
        (b"NIST_1A\n999999\n" + sphere(samples())[16:], "samples, got 0"),
        (riff(samples())[:-10], r"damaged RIFF file \(it ends before"),
        (riff(np.full(99, np.nan)), "finite samples, got NaN"),
    ],
)
def test_malformed_sound_is_named(tmp_path, content, message):
    with pytest.raises(ValueError, match=rf"SA1\.WAV.*{message}"):
        load_timit(write(tmp_path, content=content))


def test_valid_sphere_headers_are_read():
    _, wanted = sound(sphere(samples()), "a")
    comments = (
        "; a comment\nspeaker -s12 a b  \x85\x1c c d\nsnr -r -1.5e-3\nempty -s0 \n"
    )
    content = sphere(samples(), sample_rate="-r 16000.000", snr="-r 40.25")
    content = content.replace(
        b"sample_count", comments.encode("latin-1") + b"sample_count"
    )
    header = content[: content.index(b"end_head") + 9].replace(b"\n", b"\r\n")
    header = header.replace(b"NIST_1A\r\n   1024\r\n", b"NIST_1A\n   2048\n")
    rate, found = sound(header.ljust(2048, b"\xff") + samples().tobytes(), "a")
    assert rate == 16000
    assert_array_equal(found, wanted)


def test_consecutive_channels_are_distinguished_from_interleaved():
    left, right = samples(1000), samples(2000)[1000:]
    fields = {"channel_count": "-i 2", "sample_count": "-i 1000"}
    mixed = np.stack([left, right], axis=1)
    whole = sphere(mixed.ravel(), **fields)
    apart = sphere(mixed.T.ravel(), channels_interleaved="-s5 FALSE", **fields)
    assert_array_equal(sound(whole, "a", mono=True)[1], sound(apart, "a", mono=True)[1])


def test_variants_of_riff_files_give_the_same_sound():
    rate, wanted = sound(riff(samples()), "a")
    content = riff(samples())
    # When writing to a pipe, the header is written before the size is known.
    streamed = content[:4] + b"\xff" * 4 + content[8:40] + b"\xff" * 4 + content[44:]
    assert_array_equal(sound(streamed, "a")[1], wanted)
    sizes = struct.unpack("<4sI4s4sIHHIIHH4sI", content[:44])
    swapped = struct.pack(">4sI4s4sIHHIIHH4sI", b"RIFX", *sizes[1:])
    found = sound(swapped + samples().astype(">i2").tobytes(), "a")
    assert found[0] == rate
    assert_array_equal(found[1], wanted)
    wide = sound(riff(samples().astype(np.int64) << 48), "a")[1]
    assert_allclose(wide, wanted / 32768)


def test_two_channels_are_rejected(tmp_path):
    wavfile.write(tmp_path / "a.wav", 8000, np.zeros((5, 2), np.int16))
    with pytest.raises(ValueError, match=r"a\.wav: expected one channel, got 2"):
        sound((tmp_path / "a.wav").read_bytes(), "a.wav")


def test_missing_files_are_named(tmp_path, monkeypatch):
    folder = write(tmp_path / "x")
    (folder / "dr1-m" / "SA1.WAV").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"dr1-m/SA1\.PHN: expected a sound file"
    ):
        load_timit(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"expected .phn files"):
        load_timit(tmp_path / "empty")
    monkeypatch.setenv("SKAWHMM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="LDC93S1"):
        load_timit()


def test_wrong_arguments_are_named(tmp_path):
    folder = write(tmp_path)
    with pytest.raises(ValueError, match="n_phones must be 39, 48 or 61, got 40"):
        load_timit(folder, n_phones=40)
    with pytest.raises(
        ValueError, match="concat must be an integer of at least 1, got 0"
    ):
        load_timit(folder, concat=0)
    with pytest.raises(ValueError, match=r"test_size must be in \[0, 1\), got 1"):
        load_timit(folder, test_size=1)


def test_folded_phones_are_48_and_39():
    assert len(_FOLD_48) == 60
    for n_phones in (48, 39):
        assert len({_folded(phone, n_phones) for phone in _FOLD_48}) == n_phones
    # Lee and Hon's table: stops before their release are silence, zh is sh.
    assert _folded("pcl", 39) == _folded("h#", 39) == "sil"
    assert _folded("zh", 39) == _folded("sh", 39) == "sh"


def test_shared_folding(shared):
    stored = json.loads(shared("timit_61_48_39.json").read_text())
    assert len(stored) == 61
    for phone, folded in stored.items():
        assert phn_segments([f"0 1 {phone}"], "") == [(phone, 0, 1)]
        if phone != "q":
            assert [_folded(phone, 48), _folded(phone, 39)] == folded
    for n_phones in (48, 39):
        kept = {_folded(phone, n_phones) for phone in stored if phone != "q"}
        assert len(kept) == n_phones


def check_papers_settings(path, concat, n_segments):
    bunch = load_timit(path, window=0.004, hop=0.002, concat=concat)
    assert len(bunch.segments.phone) == n_segments
    assert {x.shape[1] for x in bunch.data} == {39}
    assert all(np.all(np.isfinite(x)) for x in bunch.data)
    assert len(bunch.data) * concat + bunch.n_dropped_segments == n_segments
    parts = [
        set("+".join(bunch.speaker[bunch.split == p]).split("+")) for p in bunch.split
    ]
    assert {len(part) for part in parts} == {4, 12}


def test_small_corpus_with_the_papers_settings(tmp_path):
    folder = write(tmp_path, [f"s{i}" for i in range(16)])
    check_papers_settings(folder, concat=4, n_segments=64)


def test_shared_corpus_with_the_papers_settings(shared):
    path = shared("timit_nltk_sample_raw.zip")
    check_papers_settings(path, concat=20, n_segments=6044)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_phones": [39]}, "n_phones must be an integer"),
        ({"test_size": "half"}, "test_size must be a number"),
        ({"test_size": True}, "test_size must be a number"),
        ({"test_size": 1}, r"test_size must be in \[0, 1\)"),
        ({"test_size": 10**400}, "test_size must be a number"),
        ({"concat": True}, "concat must be an integer"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(tmp_path, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        load_timit(write(tmp_path), **arguments)


@pytest.mark.parametrize("start", ["9" * 5000, "\u00b2", "-1"])
def test_numbers_of_samples_must_be_digits(start):
    with pytest.raises(ValueError, match="line 1: expected a first sample"):
        phn_segments([f"{start} 9 h#"], "a.phn")


def test_phone_after_the_end_of_the_sound_is_rejected(tmp_path):
    folder = write(tmp_path, phones=PHONES + "4800 4900 h#\n")
    with pytest.raises(ValueError, match=r"PHN: 'h#' starts at sample 4800, .* 4800"):
        load_timit(folder)
