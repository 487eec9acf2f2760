"""Read damaged files: ``python tests/mutations.py 500 0``.

The arguments are the number of files of each kind and a seed. It prints how reading
ended for each kind. It is a process of its own, since a crash would end pytest and
since its memory is limited.
"""

import io
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

from skawhmm import HMMBatch
from skawhmm.datasets import (
    load_cmu_mocap,
    load_npz,
    load_timit,
    load_ts,
    load_wav_folder,
)

# What reading a file of a few kilobytes may take on top of the process, in bytes.
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
FRAMES = archive(X=np.ones((5, 2)), lengths=np.array([2, 3]), y=np.array(["a", "b"]))

# The files of each kind, and what reads the folder or the file named after it.
KINDS = {
    "models": ([{"a.npz": one} for one in models()], HMMBatch.load, "a.npz"),
    "npz": ([{"a.npz": FRAMES}], load_npz, "a.npz"),
    "ts": ([{"a.ts": SERIES.encode()}], load_ts, "a.ts"),
    "wav": ([{"s/a.wav": riff()}], load_wav_folder, ""),
    "timit": ([SPEECH, OLD_SPEECH], load_timit, ""),
    "timit_zip": ([{"a.zip": zipped(SPEECH)}], load_timit, "a.zip"),
    "amc": ([MOTIONS], load_cmu_mocap, ""),
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
    """A number in the text becomes large, negative or no number at all."""
    digits = [n for n, byte in enumerate(content) if 48 <= byte <= 57]
    if not digits:
        return content
    place = digits[rng.integers(len(digits))]
    words = [b"9" * 12, b"9" * 20, b"9" * 400, b"-1", b"nan", b"1e999", b"inf", b""]
    return content[:place] + words[rng.integers(len(words))] + content[place + 1 :]


def repeated_line(rng, content):
    lines = content.split(b"\n")
    lines.insert(rng.integers(len(lines)), lines[rng.integers(len(lines))])
    return b"\n".join(lines)


def with_member(rng, content):
    """A member of an archive is mutated, with a checksum that says it is whole."""
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
        return "refused" if str(error) else f"{type(error).__name__} without words"
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
