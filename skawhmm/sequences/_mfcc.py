"""Mel-frequency cepstral coefficients; needs only scipy."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import dct, rfft
from scipy.signal import get_window

from skawhmm.utils._checks import LARGEST_VALUE, check_integer, check_real
from skawhmm.utils._numbers import real_array

# Least energy of a mel band, about -100 dB of full scale: the logarithm of digital
# silence stays finite.
_ENERGY_FLOOR = 1e-10

# Windows are padded at least to this length, or further if a mel band would otherwise
# fall between two bins.
_MIN_FFT = 512

# Longest window that is transformed, including padding.
_MAX_FFT = 1 << 24

# Windows are transformed in batches of at most this many numbers.
_BLOCK = 1 << 22

# Half width, in frames, of the regression that gives the deltas (as in HTK).
_DELTA_REACH = 2

# A window of this many seconds that exceeds its signal was given in another unit.
LONG_WINDOW = 1.0


def mfcc(
    signal: ArrayLike,
    sample_rate: float,
    *,
    n_coefficients: int = 13,
    window: float = 0.025,
    hop: float = 0.010,
    n_filters: int = 26,
    preemphasis: float = 0.97,
    deltas: int = 2,
) -> NDArray[np.float64]:
    r"""Mel-frequency cepstral coefficients of a sound, with their deltas.

    Parameters
    ----------
    signal : array-like of shape (n_samples,)
        The sound. Integers of up to 32 bits are scaled from the range of their type to
        [-1, 1). Integers of 64 bits, such as a list of integers, raise an error: their
        type says nothing about the scale.

    sample_rate : float
        Samples per second.

    n_coefficients : int, default=13
        Number of static coefficients, including the overall level (c0).

    window : float, default=0.025
        Length of the analysis window in seconds.

    hop : float, default=0.010
        Time from one window to the next in seconds.

    n_filters : int, default=26
        Number of mel bands between 0 and half the sample rate.

    preemphasis : float, default=0.97
        Fraction of the previous sample that is subtracted from each sample.

    deltas : {0, 1, 2}, default=2
        Order of the time derivatives appended to the static coefficients.

    Returns
    -------
    features : ndarray of shape (n_frames, n_coefficients * (1 + deltas))
        One row per window. The i-th window begins at `i * hop`. An incomplete window at
        the end is dropped; a signal shorter than one window is padded with zeros.

    See Also
    --------
    skawhmm.datasets.load_wav_folder : Sound files, analysed by this function.
    skawhmm.datasets.load_timit : Labelled phonemes, analysed by this function.

    Notes
    -----
    The steps are: Hamming window, power spectrum, triangular bands evenly spaced on the
    mel scale :math:`2595 \log_{10}(1 + f / 700)`, logarithm, orthonormal cosine
    transform, sinusoidal lifter of length 22; deltas by regression over two frames on
    each side.
    The paper uses windows of 4 ms every 2 ms; speech recognition usually uses 25 ms
    every 10 ms.

    Examples
    --------
    >>> import numpy as np
    >>> from skawhmm.sequences import mfcc
    >>> tone = np.sin(2 * np.pi * 440 * np.arange(16000) / 16000)
    >>> mfcc(tone, 16000).shape
    (98, 39)
    >>> mfcc(tone, 16000, window=0.004, hop=0.002, deltas=0).shape
    (499, 13)
    """
    if isinstance(signal, str | PathLike):
        raise TypeError(
            f"signal must be an array of numbers, got the name {str(signal)!r}. "
            "skawhmm.datasets.load_wav_folder reads and analyses files."
        )
    samples = _check_signal(signal)
    sample_rate = check_positive("sample_rate", sample_rate)
    window, hop = check_positive("window", window), check_positive("hop", hop)
    n_filters = check_integer("n_filters", n_filters, 1)
    n_coefficients = check_integer("n_coefficients", n_coefficients, 1)
    if n_coefficients > n_filters:
        raise ValueError(
            f"n_coefficients must be at most n_filters={n_filters}, "
            f"got {n_coefficients}."
        )
    deltas = check_integer("deltas", deltas, 0)
    if deltas > 2:
        raise ValueError(f"deltas must be 0, 1 or 2, got {deltas!r}.")
    preemphasis = check_real("preemphasis", preemphasis, 0, 1)
    width, step = frame_samples(window, hop, sample_rate)
    if window >= LONG_WINDOW and width > len(samples):
        raise ValueError(
            f"window must be a time in seconds, got {window:g} s for a signal of "
            f"{len(samples) / sample_rate:.3g} s."
        )
    if window * sample_rate < 1:
        raise ValueError(
            f"window must be at least 1 sample long, got {window:g} s with "
            f"sample_rate={sample_rate:g}, the number of samples per second."
        )
    emphasised = np.append(samples[:1], samples[1:] - preemphasis * samples[:-1])
    energies = _band_energies(emphasised, sample_rate, width, step, n_filters)
    cepstra = dct(np.log(np.maximum(energies, _ENERGY_FLOOR)), norm="ortho")
    static = cepstra[:, :n_coefficients] * _lifter(n_coefficients)
    return with_deltas(static, deltas)


def check_positive(name, value):
    """Return `value` as a float, or raise unless it is finite and above zero."""
    return check_real(name, value, 0, np.inf, include_low=False)


def frame_samples(window, hop, sample_rate):
    """Numbers of samples in a window and in a hop, at least two and one."""
    width, step = window * sample_rate, hop * sample_rate
    if width > _MAX_FFT:
        raise ValueError(
            f"window must be at most {_MAX_FFT} samples long, got {window:g} s with "
            f"sample_rate={sample_rate:g}."
        )
    # With a hop longer than any sound, one window remains.
    return max(2, round(width)), max(1, round(min(step, 2.0**62)))


def _check_signal(signal):
    numbers = real_array("signal", signal)
    # The type of integers determines their scale.
    signal = np.asarray(signal)
    if signal.ndim != 1 or signal.size == 0:
        raise ValueError(
            "signal must be a non-empty one-dimensional array (one channel), "
            f"got an array of shape {signal.shape}."
        )
    bad = ~(np.abs(numbers) <= LARGEST_VALUE)
    if bad.any():
        raise ValueError(
            f"signal must be finite, with values of size at most {LARGEST_VALUE:g}, "
            f"got {numbers[bad][0]:g}."
        )
    if not np.issubdtype(signal.dtype, np.integer):
        return numbers
    if signal.dtype.itemsize == 8:
        raise ValueError(
            f"signal must be floats, or integers of up to 32 bits, whose range is that "
            f"of the sound, got {signal.dtype}. Divide by the largest possible value, "
            "such as 32768, or use the type of the recording, such as int16."
        )
    limits = np.iinfo(signal.dtype)
    half = (float(limits.max) - float(limits.min) + 1) / 2
    return (numbers - (float(limits.min) + half)) / half


def _band_energies(signal, sample_rate, width, step, n_filters):
    if len(signal) < width:
        signal = np.pad(signal, (0, width - len(signal)))
    frames = np.lib.stride_tricks.sliding_window_view(signal, width)[::step]
    n_fft = _fft_length(width, sample_rate, n_filters)
    taper = get_window("hamming", width, fftbins=False)
    filters = mel_filters(n_filters, n_fft, sample_rate).T
    energies = np.empty((len(frames), n_filters))
    size = max(_BLOCK // n_fft, 1)
    for first in range(0, len(frames), size):
        block = frames[first : first + size] * taper
        power = np.abs(rfft(block, n_fft, axis=-1)) ** 2 / n_fft
        energies[first : first + size] = power @ filters
    return energies


def _fft_length(width, sample_rate, n_filters):
    """Length of a transform that covers the window and has a bin in every mel band."""
    narrowest = _mel_edges(n_filters, sample_rate)[1]
    wanted = max(width, _MIN_FFT, sample_rate / narrowest if narrowest else np.inf)
    if wanted > _MAX_FFT:
        raise ValueError(
            f"n_filters must be smaller with sample_rate={sample_rate:g}, got "
            f"{n_filters}: the lowest mel band is only {narrowest:.2g} Hz wide."
        )
    return 2 ** int(np.ceil(np.log2(wanted)))


def _mel_edges(n_filters, sample_rate):
    """Return ends and centres of the mel bands in Hz, of shape (n_filters + 2,)."""
    top = 2595 * np.log10(1 + sample_rate / 2 / 700)
    return 700 * (10 ** (np.linspace(0, top, n_filters + 2) / 2595) - 1)


def mel_filters(n_filters, n_fft, sample_rate):
    """Triangular weights of the mel bands, of shape (n_filters, n_fft // 2 + 1)."""
    edges = _mel_edges(n_filters, sample_rate)
    bins = np.arange(n_fft // 2 + 1) * sample_rate / n_fft
    left, centre, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rise, fall = (bins - left) / (centre - left), (right - bins) / (right - centre)
    return np.clip(np.minimum(rise, fall), 0, None)


def _lifter(n_coefficients, length=22):
    return 1 + length / 2 * np.sin(np.pi * np.arange(n_coefficients) / length)


def with_deltas(static, order):
    """Append the regression derivatives of up to `order` to the static features."""
    parts = [static]
    reach = np.arange(1, _DELTA_REACH + 1)
    for _ in range(order):
        last = np.pad(parts[-1], ((_DELTA_REACH, _DELTA_REACH), (0, 0)), mode="edge")
        n_frames = len(static)
        slopes = np.zeros_like(static)
        for k in reach:
            after = last[_DELTA_REACH + k : _DELTA_REACH + k + n_frames]
            before = last[_DELTA_REACH - k : _DELTA_REACH - k + n_frames]
            slopes += k * (after - before)
        parts.append(slopes / (2 * np.sum(reach**2)))
    return np.hstack(parts)
