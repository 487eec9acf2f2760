"""Mel-frequency cepstral coefficients; needs only scipy."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import dct, rfft
from scipy.signal import get_window

from skawhmm.utils._checks import check_integer, check_real
from skawhmm.utils._numbers import real_array

# Least energy of a mel band, about -100 dB of full scale: the logarithm of digital
# silence stays finite.
_ENERGY_FLOOR = 1e-10

# Short windows are padded to this length, so that no mel band falls between two bins.
_MIN_FFT = 512

# Windows are transformed together up to this many numbers, whatever they overlap.
_BLOCK = 1 << 22

# Half width, in frames, of the regression that gives the deltas (as in HTK).
_DELTA_REACH = 2


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
        The sound. Integers are scaled from the range of their type to [-1, 1).

    sample_rate : float
        Samples per second.

    n_coefficients : int, default=13
        Number of static coefficients, including that of the overall level (c0).

    window : float, default=0.025
        Length of the analysis window in seconds.

    hop : float, default=0.010
        Time from one window to the next in seconds.

    n_filters : int, default=26
        Number of mel bands between 0 and half the sample rate.

    preemphasis : float, default=0.97
        Share of the previous sample that is subtracted from each sample.

    deltas : {0, 1, 2}, default=2
        Order of the time derivatives appended to the static coefficients.

    Returns
    -------
    features : ndarray of shape (n_frames, n_coefficients * (1 + deltas))
        One row per window. The i-th window begins at `i * hop`. Only whole windows
        count; a signal shorter than one window is padded with zeros.

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
    The paper uses windows of 4 ms every 2 ms; usual in speech recognition are 25 ms
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
    samples = _check_signal(signal)
    for name, value in {
        "sample_rate": sample_rate,
        "window": window,
        "hop": hop,
    }.items():
        check_positive(name, value)
    check_integer("n_filters", n_filters, 1)
    check_integer("n_coefficients", n_coefficients, 1)
    if n_coefficients > n_filters:
        raise ValueError(
            f"n_coefficients must be at most n_filters={n_filters}, "
            f"got {n_coefficients}."
        )
    if deltas not in {0, 1, 2}:
        raise ValueError(f"deltas must be 0, 1 or 2, got {deltas!r}.")
    check_real("preemphasis", preemphasis, 0, 1)
    width, step = frame_samples(window, hop, sample_rate)
    emphasised = np.append(samples[:1], samples[1:] - preemphasis * samples[:-1])
    energies = _band_energies(emphasised, sample_rate, width, step, n_filters)
    cepstra = dct(np.log(np.maximum(energies, _ENERGY_FLOOR)), norm="ortho")
    static = cepstra[:, :n_coefficients] * _lifter(n_coefficients)
    return with_deltas(static, deltas)


def check_positive(name, value):
    """Raise unless the argument `name` is a finite number above zero."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    if not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}.")


def frame_samples(window, hop, sample_rate):
    """Numbers of samples in a window and in a hop, at least two and one."""
    return max(2, round(window * sample_rate)), max(1, round(hop * sample_rate))


def _check_signal(signal):
    numbers = real_array("signal", signal)
    # The type of whole numbers tells their scale.
    signal = np.asarray(signal)
    if signal.ndim != 1 or signal.size == 0:
        raise ValueError(
            "signal must be a non-empty one-dimensional array (one channel), "
            f"got an array of shape {signal.shape}."
        )
    if np.issubdtype(signal.dtype, np.integer):
        limits = np.iinfo(signal.dtype)
        half = (float(limits.max) - float(limits.min) + 1) / 2
        return (signal - (float(limits.min) + half)) / half
    if not np.all(np.isfinite(numbers)):
        raise ValueError("signal must be finite, got NaN or infinity.")
    return numbers


def _band_energies(signal, sample_rate, width, step, n_filters):
    if len(signal) < width:
        signal = np.pad(signal, (0, width - len(signal)))
    frames = np.lib.stride_tricks.sliding_window_view(signal, width)[::step]
    n_fft = max(_MIN_FFT, 2 ** int(np.ceil(np.log2(width))))
    taper = get_window("hamming", width, fftbins=False)
    filters = mel_filters(n_filters, n_fft, sample_rate).T
    energies = np.empty((len(frames), n_filters))
    size = max(_BLOCK // n_fft, 1)
    for first in range(0, len(frames), size):
        block = frames[first : first + size] * taper
        power = np.abs(rfft(block, n_fft, axis=-1)) ** 2 / n_fft
        energies[first : first + size] = power @ filters
    return energies


def mel_filters(n_filters, n_fft, sample_rate):
    """Triangular weights of the mel bands, of shape (n_filters, n_fft // 2 + 1)."""
    top = 2595 * np.log10(1 + sample_rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, n_filters + 2) / 2595) - 1)
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
