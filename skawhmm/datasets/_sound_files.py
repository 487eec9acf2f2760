"""Readers of sound files: RIFF and NIST SPHERE."""

from __future__ import annotations

import io
import struct
import warnings

import numpy as np
from scipy.io import wavfile

# Highest number of samples per second that is believed; windows are as long in samples.
MAX_RATE = 4_000_000

# What scipy raises for a damaged file: on a header that ends early it uses a variable
# that it never set, and it divides by the size of a sample.
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
    """Sample rate and samples of a sound file with one channel.

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
    elif content.startswith(b"RIFF"):
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
    try:
        with warnings.catch_warnings():
            # Chunks scipy does not know hold no samples.
            warnings.simplefilter("ignore", wavfile.WavFileWarning)
            return wavfile.read(io.BytesIO(content))
    except RIFF_ERRORS as error:
        raise ValueError(f"{place}: damaged RIFF file ({error}).") from error


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
    lacking = {"sample_rate", "sample_count"} - set(fields)
    if lacking:
        raise ValueError(f"{place}: expected {sorted(lacking)} in the header.")
    order = {"01": "<i2", "10": ">i2"}.get(str(fields.get("sample_byte_format", "01")))
    if order is None:
        raise ValueError(
            f"{place}: expected sample_byte_format 01 or 10, "
            f"got {fields['sample_byte_format']!r}."
        )
    n_channels = int(fields.get("channel_count", 1))
    n_values = int(fields["sample_count"]) * n_channels
    if len(content) - size < 2 * n_values:
        raise ValueError(
            f"{place}: expected {n_values} samples, got {(len(content) - size) // 2}."
        )
    samples = np.frombuffer(content, order, count=n_values, offset=size).astype("i2")
    shaped = samples if n_channels == 1 else samples.reshape(-1, n_channels)
    return int(fields["sample_rate"]), shaped


def _sphere_fields(header, place):
    fields: dict[str, int | str] = {}
    for number, line in enumerate(header.decode("latin-1").splitlines(), 1):
        words = line.split(None, 2)
        if words[:1] == ["end_head"]:
            return fields
        if number < 3 or not words or words[0].startswith(";"):
            continue
        if len(words) != 3 or (words[1] == "-i" and not _is_int(words[2])):
            raise ValueError(
                f"{place}, line {number}: expected a name, a type and a value, "
                f"got {line[:40]!r}."
            )
        fields[words[0]] = int(words[2]) if words[1] == "-i" else words[2].strip()
    raise ValueError(f"{place}: expected end_head within the header.")


def _is_int(word):
    return word.strip().lstrip("-").isdigit()
