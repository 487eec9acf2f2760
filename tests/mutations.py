"""Read damaged files: ``python tests/mutations.py 500 0``.

The arguments are the number of files of each kind and a seed. It prints how reading
ended for each kind. It runs in a separate process, since a crash would end pytest and
since its memory is limited.
"""

import io
import json
import os
import resource
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.io import wavfile

from skawhmm import HMMBatch, pairwise_hmm_distances
from skawhmm.datasets import (
    load_cmu_mocap,
    load_gene_families,
    load_npz,
    load_timit,
    load_ts,
    load_wav_folder,
)

# Memory that reading a file of a few kilobytes may take, in bytes.
MEMORY = 400_000_000

RNG = np.random.default_rng(0)
SAMPLES = RNG.integers(-3000, 3000, 2400).astype(np.int16)
PHONES = "0 800 h#\n800 1600 sh\n1600 1610 q\n1610 2400 pcl\n"
SKELETON = """:version 1.10
:root
   order TX TY TZ RX RY RZ
:bonedata
  begin
     name head
     dof rx rz
  end
"""
MOTION = "#!OML:ASF\n:DEGREES\n" + "".join(
    f"{n}\nroot {n} 2 3 4 5 6\nhead {n} -1.5\n" for n in range(1, 20)
)
SERIES = "@classLabel true up down\n@data\n" + "1,2,3:4,5,?:up\n3,2:6,5:down\n" * 4
SPHERE = (
    "NIST_1A\n   1024\nsample_count -i 2400\nsample_n_bytes -i 2\nchannel_count -i 1\n"
    "sample_byte_format -s2 01\nsample_rate -i 16000\nsample_coding -s3 pcm\nend_head\n"
)


def models():
    chain, rng = np.full((3, 2, 2), 0.5), np.random.default_rng(0)
    gaussian = HMMBatch(chain, rng.normal(size=(3, 2, 2)), np.ones((3, 2, 2)))
    symbols = HMMBatch.from_emissionprobs(chain, np.full((3, 2, 4), 0.25))
    counts = HMMBatch.from_rates(chain, np.ones((3, 2, 2)), info={"id": [1, 2, 3]})
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        for batch in (gaussian, symbols, counts):
            batch.save(f"{folder}/a.npz")
            contents.append(Path(f"{folder}/a.npz").read_bytes())
    return contents


def archive(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def riff():
    file = io.BytesIO()
    wavfile.write(file, 16000, SAMPLES)
    return file.getvalue()


def zipped(files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(name, content)
    return file.getvalue()


SPEECH = {"s/a.wav": riff(), "s/a.phn": PHONES.encode()}
OLD_SPEECH = {
    "s/a.wav": SPHERE.encode().ljust(1024) + SAMPLES.tobytes(),
    "s/a.phn": PHONES.encode(),
}
MOTIONS = {"01/01.asf": SKELETON.encode(), "01/01_01.amc": MOTION.encode()}
MOTION_ARRAYS = archive(
    X=np.ones((8, 2)),
    lengths=np.array([4, 4]),
    y=np.array(["a", "b"]),
    files=np.array(["1/a", "2/b"]),
    channels=np.array(["root_tx", "root_ty"]),
    fps=np.array(30.0),
)
GENES = archive(
    X=np.array([0, 1, 1]),
    lengths=np.array([1, 2]),
    y=np.array([3, 4]),
    symbols=np.array(["A", "C"]),
)
FRAMES = archive(X=np.ones((5, 2)), lengths=np.array([2, 3]), y=np.array(["a", "b"]))

BATCH = HMMBatch(np.ones((3, 1, 1)), np.arange(3.0)[:, None, None], np.ones((3, 1, 1)))


def matrix():
    """The files of a complete matrix."""
    with tempfile.TemporaryDirectory() as folder:
        pairwise_hmm_distances(BATCH, out=f"{folder}/a.npy")
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def continue_matrix(path):
    found = pairwise_hmm_distances(BATCH, out=path)
    np.testing.assert_array_equal(found, pairwise_hmm_distances(BATCH))


def read_genes(path):
    os.environ["SKAWHMM_DATA"] = str(path)
    return load_gene_families()


# The files of each kind, and what reads the folder or the file named after it.
KINDS = {
    "models": ([{"a.npz": one} for one in models()], HMMBatch.load, "a.npz"),
    "npz": ([{"a.npz": FRAMES}], load_npz, "a.npz"),
    "ts": ([{"a.ts": SERIES.encode()}], load_ts, "a.ts"),
    "wav": (
        [{"s/a.wav": riff()}, {"s/a.wav": OLD_SPEECH["s/a.wav"]}],
        load_wav_folder,
        "",
    ),
    "timit": ([SPEECH, OLD_SPEECH], load_timit, ""),
    "timit_zip": ([{"a.zip": zipped(SPEECH)}], load_timit, "a.zip"),
    "amc": ([MOTIONS], load_cmu_mocap, ""),
    "amc_npz": ([{"a.npz": MOTION_ARRAYS}], load_cmu_mocap, "a.npz"),
    "genes": ([{"discrete_gene_families.npz": GENES}], read_genes, ""),
    "matrix": ([matrix()], continue_matrix, "a.npy"),
    "amc_zip": ([{"a.zip": zipped(MOTIONS)}], load_cmu_mocap, "a.zip"),
}


def flipped(rng, content):
    content = bytearray(content)
    for place in rng.integers(len(content), size=rng.integers(1, 9)):
        content[place] ^= 1 << rng.integers(8)
    return bytes(content)


def cut(rng, content):
    return content[: rng.integers(len(content))]


def noisy(rng, content):
    first = rng.integers(len(content))
    return content[:first] + rng.bytes(20) + content[first + 20 :]


def stretched(rng, content):
    first = rng.integers(len(content))
    return content[:first] + rng.bytes(rng.integers(1, 50)) + content[first:]


def shortened(rng, content):
    first = rng.integers(len(content))
    return content[:first] + content[first + rng.integers(1, 50) :]


def with_huge_field(rng, content):
    """A binary number in the first bytes becomes large or negative."""
    first, value = rng.integers(min(len(content), 200)), rng.integers(1 << 24, 1 << 32)
    field = int(value).to_bytes(4, "little")
    return content[:first] + field + content[first + 4 :]


def with_huge_number(rng, content):
    """A number in the text becomes large, negative or something else."""
    digits = [n for n, byte in enumerate(content) if 48 <= byte <= 57]
    if not digits:
        return content
    place = digits[rng.integers(len(digits))]
    words = [b"9" * 12, b"9" * 20, b"9" * 400, b"-1", b"nan", b"1e999", b"inf", b""]
    return content[:place] + words[rng.integers(len(words))] + content[place + 1 :]


# Invalid values for any field of a header.
HOSTILE = [
    *(
        b"-1",
        b"0",
        b"-0",
        b"1e999",
        b"nan",
        b"inf",
        b"1_0",
        b"0x10",
        b"+1",
        b"1.5",
        b"",
    ),
    *(b"9" * 18, b"9" * 30, b"9" * 5000, b"-" + b"9" * 5000, b"\xb2", b"\xd9\xa3"),
    *(b"[" * 100_000, b"(" * 5000, b"{" * 5000, b'{"a":' * 50_000, b"null", b"true"),
    *(b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"None", b"'", b'"', b"\\", b"\n\n", b":"),
]


def with_hostile_word(rng, content):
    """A word of the first lines becomes an invalid value."""
    head = content[:2000]
    places = [n for n, byte in enumerate(head) if chr(byte).isalnum()]
    if not places:
        return content
    first = last = places[rng.integers(len(places))]
    while first > 0 and chr(content[first - 1]).isalnum():
        first -= 1
    while last < len(content) and chr(content[last]).isalnum():
        last += 1
    return content[:first] + HOSTILE[rng.integers(len(HOSTILE))] + content[last:]


# Types and shapes that do not match the data, or are not valid.
TYPES = [
    *("'<f8'", "'<f4'", "'>f8'", "'|O'", "'<U0'", "'<U1000000000'", "'|V2000000000'"),
    *("[('a', '<f8')]", "[('a', '|O')]", "'<M8[s]'", "'<c16'", "'|b1'", "'<u8'", "''"),
    *("'<f2'", "'<i1'", "None", "3", "[]", "'f8,f8'", "'<f16'", "[" * 80 + "]" * 80),
]
SHAPES = [
    *(
        "()",
        "(0,)",
        "(-1,)",
        "(2, -2)",
        "(10**9,)",
        "(9999999999999999999999,)",
        "(3,)",
    ),
    *("(0, 9999999999999)", "(2, 2, 2)", "('a',)", "3", "None", "(1.5,)", "(True,)"),
    *("(2, 1)", "(1, 2)", "(4, 1, 1, 1)", "(" + "1, " * 70 + ")"),
]


def with_hostile_array(rng, content):
    """The header of an array declares another type or shape."""
    if not content.startswith(b"\x93NUMPY\x01"):
        return with_hostile_word(rng, content)
    kind, shape = TYPES[rng.integers(len(TYPES))], SHAPES[rng.integers(len(SHAPES))]
    order = ["True", "False", "0", "'no'"][rng.choice(4, p=[0.1, 0.7, 0.1, 0.1])]
    text = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}\n"
    rest = content[10 + int.from_bytes(content[8:10], "little") :]
    size = len(text).to_bytes(2, "little")
    return content[:8] + size + text.encode() + rest


def with_hostile_json(rng, content):
    """A field of the header of models becomes something else."""
    start, end = content.find(b"{\x00\x00\x00"), content.rfind(b"}")
    if start < 0 or not content.startswith(b"\x93NUMPY"):
        return with_hostile_array(rng, content)
    text = content[start : end + 4].decode("utf-32-le")
    fields = json.loads(text)
    name = sorted(fields)[rng.integers(len(fields))]
    words = ["1e999", "-1", "null", "true", "[]", "{}", '"x"', "2", "9" * 5000]
    words += ["[" * 50_000 + "]" * 50_000, "NaN", '"\\ud800"', '{"a": [1]}', "1.5"]
    fields[name] = "@"
    changed = json.dumps(fields).replace('"@"', words[rng.integers(len(words))])
    file = io.BytesIO()
    np.save(file, np.array(changed))
    return file.getvalue()


def repeated_line(rng, content):
    lines = content.split(b"\n")
    lines.insert(rng.integers(len(lines)), lines[rng.integers(len(lines))])
    return b"\n".join(lines)


def with_member(rng, content):
    """A member of an archive is mutated, with a valid checksum."""
    if not content.startswith(b"PK"):
        return stretched(rng, content)
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        files = {name: source.read(name) for name in source.namelist()}
    name = sorted(files)[rng.integers(len(files))]
    return zipped({**files, name: mutated(rng, files[name])})


def without_member(rng, content):
    if not content.startswith(b"PK"):
        return shortened(rng, content)
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        files = {name: source.read(name) for name in source.namelist()}
    files.pop(sorted(files)[rng.integers(len(files))])
    return zipped(files)


PLAIN = (
    flipped,
    cut,
    noisy,
    stretched,
    shortened,
    with_huge_field,
    with_huge_number,
    with_hostile_word,
    with_hostile_array,
    with_hostile_json,
    repeated_line,
)


def mutated(rng, content):
    change = PLAIN[rng.integers(len(PLAIN))]
    return change(rng, content) if content else content


def damaged(rng, content):
    choice = rng.integers(len(PLAIN) + 6)
    if choice < len(PLAIN):
        return PLAIN[choice](rng, content)
    return (without_member if choice == len(PLAIN) else with_member)(rng, content)


def outcome(read, path):
    try:
        read(path)
    except (ValueError, OSError) as error:
        # The message names the damaged file.
        named = path.parent.name in str(error)
        return "refused" if named else f"unnamed: {type(error).__name__}: {error}"
    except BaseException:
        return " ".join(traceback.format_exc().splitlines()[-5:])
    return "read"


def limit_memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    used = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def main(n_files, seed):
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for kind, (sources, read, name) in KINDS.items():
            rng = np.random.default_rng([seed, *kind.encode()])
            outcomes = Counter()
            for trial in range(n_files):
                place = Path(folder) / f"{kind}{trial}"
                files = dict(sources[trial % len(sources)])
                victim = sorted(files)[rng.integers(len(files))]
                files[victim] = damaged(rng, files[victim])
                for path, content in files.items():
                    (place / path).parent.mkdir(parents=True, exist_ok=True)
                    (place / path).write_bytes(content)
                outcomes[outcome(read, place / name)] += 1
            print(kind, dict(outcomes), flush=True)  # noqa: T201


if __name__ == "__main__":
    # The first call of each reader imports what it needs.
    main(1, 1)
    limit_memory()
    main(int(sys.argv[1]), int(sys.argv[2]))
