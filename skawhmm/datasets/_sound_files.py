"""Readers of sound files: RIFF and NIST SPHERE."""

from __future__ import annotations

import io
import re
import struct
import warnings

import numpy as np
from scipy.io import wavfile

# Largest plausible sample rate; window lengths in samples grow with it.
MAX_RATE = 4_000_000

# Size in the header of a RIFF file whose end was not known when it was written.
STREAMED = 0xFFFFFFFF

# A line of a SPHERE header: a name, then an integer, a real number, or a text of stated
# length.
FIELD = re.compile(
    r"(\S+)\s+(?:-i\s+([+-]?\d{1,18})"
    r"|-r\s+([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)"
    r"|-s(\d{1,6})(?:\s(.*))?)",
    re.ASCII,
)

# Exceptions that scipy raises for damaged files: with a truncated header it uses an
# unset variable, and it divides by the size of a sample.
RIFF_ERRORS = (
    ValueError,
    EOFError,
    OverflowError,
    NameError,
    TypeError,
    ZeroDivisionError,
    struct.error,
)


def sound(content, place, *, mono=False):
    """Return the sample rate and the samples of a sound file with one channel.

    Parameters
    ----------
    content : bytes
        The file, RIFF or uncompressed NIST SPHERE.

    place : str
        Name of the file in errors.

    mono : bool, default=False
        Whether several channels are averaged; otherwise they are an error.

    Returns
    -------
    sample_rate : int
        Samples per second.

    samples : ndarray of shape (n_samples,)
        The samples, in the type of the file.
    """
    if content.startswith(b"NIST_1A"):
        rate, samples = _sphere(content, place)
    elif content.startswith((b"RIFF", b"RIFX")):
        rate, samples = _riff(content, place)
    else:
        raise ValueError(
            f"{place}: expected a RIFF or NIST SPHERE sound file, "
            f"got one beginning with {content[:8]!r}."
        )
    if not 0 < rate <= MAX_RATE:
        raise ValueError(
            f"{place}: expected 1 to {MAX_RATE} samples per second, got {rate}."
        )
    if samples.ndim == 2 and mono:
        samples = _mixed(samples)
    if samples.ndim != 1:
        raise ValueError(f"{place}: expected one channel, got {samples.shape[1]}.")
    if samples.size == 0:
        raise ValueError(f"{place}: expected samples, got none.")
    return rate, samples


def _mixed(samples):
    """Return the mean of the channels, in the range of their type."""
    mean = samples.mean(axis=1)
    is_whole = samples.dtype.kind in "iu"
    return np.rint(mean).astype(samples.dtype) if is_whole else mean


def _riff(content, place):
    if _is_cut(content):
        raise ValueError(
            f"{place}: damaged RIFF file (it ends before the samples that its header "
            "declares)."
        )
    try:
        with warnings.catch_warnings():
            # Chunks that scipy does not know do not contain samples.
            warnings.simplefilter("ignore", wavfile.WavFileWarning)
            rate, samples = wavfile.read(io.BytesIO(content))
    except RIFF_ERRORS as error:
        raise ValueError(f"{place}: damaged RIFF file ({error}).") from error
    if samples.dtype.kind == "f" and not np.all(np.isfinite(samples)):
        raise ValueError(f"{place}: expected finite samples, got NaN or infinity.")
    # `mfcc` rejects integers of 64 bits, whose range says nothing about their scale.
    return rate, samples / 2.0**63 if samples.dtype.itemsize == 8 else samples


def _is_cut(content):
    """Whether a RIFF file ends before its samples do."""
    order = ">" if content.startswith(b"RIFX") else "<"
    place = 12
    while place + 8 <= len(content):
        name, size = struct.unpack_from(f"{order}4sI", content, place)
        place += 8
        if name == b"data":
            return size != STREAMED and size > len(content) - place
        place += size + size % 2
    return False


def _sphere(content, place):
    """Read a NIST SPHERE file: a text header of stated size, then samples."""
    lines = content[:16].split(b"\n")
    if len(lines) < 2 or not lines[1].strip().isdigit():
        raise ValueError(f"{place}, line 2: expected the size of the header.")
    size = int(lines[1])
    fields = _sphere_fields(content[:size], place)
    coding = fields.get("sample_coding", "pcm")
    if coding != "pcm" or fields.get("sample_n_bytes", 2) != 2:
        raise ValueError(
            f"{place}: expected uncompressed 16-bit samples (sample_coding pcm), got "
            f"{coding!r} of {fields.get('sample_n_bytes', 2)} bytes; convert the file "
            "with sph2pipe or sox."
        )
    order = {"01": "<i2", "10": ">i2"}.get(str(fields.get("sample_byte_format")))
    if order is None:
        raise ValueError(
            f"{place}: expected sample_byte_format 01 or 10, "
            f"got {fields.get('sample_byte_format', 'none')!r}."
        )
    rate = _sphere_count(fields, "sample_rate", place)
    n_channels = _sphere_count({"channel_count": 1} | fields, "channel_count", place)
    n_values = _sphere_count(fields, "sample_count", place) * n_channels
    if len(content) - size < 2 * n_values:
        raise ValueError(
            f"{place}: expected {n_values} samples, got "
            f"{max(len(content) - size, 0) // 2}."
        )
    samples = np.frombuffer(content, order, count=n_values, offset=size).astype("i2")
    if n_channels == 1:
        return rate, samples
    if str(fields.get("channels_interleaved", "true")).lower() == "false":
        return rate, samples.reshape(n_channels, -1).T
    return rate, samples.reshape(-1, n_channels)


def _sphere_count(fields, name, place):
    """Return a positive integer of the header."""
    value = fields.get(name, "none")
    if isinstance(value, str) or not 1 <= value < 2**53 or value != int(value):
        raise ValueError(
            f"{place}: expected a positive integer {name} in the header, got {value!r}."
        )
    return int(value)


def _sphere_fields(header, place):
    """Return the values of the header by name: integers, real numbers and texts."""
    fields: dict[str, int | float | str] = {}
    for number, line in enumerate(header.decode("latin-1").split("\n"), 1):
        words = line.split(None, 2)
        if words[:1] == ["end_head"]:
            return fields
        if number < 3 or not words or words[0].startswith(";"):
            continue
        match = FIELD.fullmatch(line.strip())
        if match is None:
            raise ValueError(
                f"{place}, line {number}: expected a name, a type and a value, "
                f"got {line[:40]!r}."
            )
        name, integer, real, length, text = match.groups()
        if length is not None:
            # A comment may follow the text, whose length is stated.
            fields[name] = (text or "")[: int(length)].strip()
        else:
            fields[name] = float(real) if integer is None else int(integer)
    raise ValueError(f"{place}: expected end_head within the header.")
