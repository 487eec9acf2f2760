import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skawhmm.datasets import load_npz, load_timit
from skawhmm.sequences import mfcc
from skawhmm.sequences._mfcc import _fft_length, mel_filters


def slow_frame_cepstra(frame, sample_rate, n_filters=26):
    """Static coefficients of one frame, term by term."""
    n = len(frame)
    taper = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(n) / (n - 1))
    bins = np.arange(257)
    basis = np.exp(-2j * np.pi * np.outer(bins, np.arange(n)) / 512)
    power = np.abs(basis @ (frame * taper)) ** 2 / 512
    log_energies = np.log(mel_filters(n_filters, 512, sample_rate) @ power)
    coefficients = []
    for k in range(13):
        wave = np.cos(np.pi * k * (np.arange(n_filters) + 0.5) / n_filters)
        norm = np.sqrt((1 if k == 0 else 2) / n_filters)
        lifter = 1 + 11 * np.sin(np.pi * k / 22)
        coefficients.append(lifter * norm * np.sum(wave * log_energies))
    return np.array(coefficients)


def test_mfcc_against_its_definition(rng):
    signal = rng.normal(size=2000)
    emphasised = np.append(signal[0], signal[1:] - 0.97 * signal[:-1])
    features = mfcc(signal, 16000, deltas=0)
    assert len(features) == 1 + (2000 - 400) // 160
    for i in (0, 3, len(features) - 1):
        frame = emphasised[i * 160 : i * 160 + 400]
        assert_allclose(features[i], slow_frame_cepstra(frame, 16000), rtol=1e-8)


@pytest.mark.parametrize("sample_rate", [8000, 16000, 44100])
def test_mel_bands_overlap_to_one(sample_rate):
    filters = mel_filters(20, 4096, sample_rate)
    peaks = filters.argmax(axis=1)
    assert np.all(np.diff(peaks) > 0)
    # Between the first and the last centre two neighbours share each bin.
    assert_allclose(filters[:, peaks[0] + 1 : peaks[-1]].sum(axis=0), 1)


def test_level_moves_the_first_coefficient_only(rng):
    signal = rng.normal(size=4000)
    quiet, loud = mfcc(signal, 16000), mfcc(10 * signal, 16000)
    shift = np.sqrt(26) * 2 * np.log(10)
    assert_allclose(loud[:, 0] - quiet[:, 0], shift)
    assert_allclose(loud[:, 1:], quiet[:, 1:], atol=1e-9)


def test_integers_are_fractions_of_full_scale(rng):
    signal = rng.integers(-3000, 3000, size=3000).astype(np.int16)
    assert_allclose(mfcc(signal, 16000), mfcc(signal / 32768, 16000))
    coarse = (signal // 256 + 128).astype(np.uint8)
    assert_allclose(mfcc(coarse, 16000), mfcc((coarse - 128.0) / 128, 16000))


def test_deltas_are_slopes():
    ramp = np.linspace(0, 1, 8000) ** 2
    features = mfcc(ramp, 8000, window=0.02, hop=0.01)
    static, slopes = features[:, :13], features[:, 13:26]
    i = len(features) // 2
    expected = (
        static[i + 1] - static[i - 1] + 2 * static[i + 2] - 2 * static[i - 2]
    ) / 10
    assert_allclose(slopes[i], expected)
    assert_allclose(mfcc(np.ones(4000), 8000)[6:, 13:], 0, atol=1e-9)


@pytest.mark.parametrize("n_samples", [1, 10, 63, 64, 65])
def test_short_and_silent_signals_stay_finite(n_samples):
    features = mfcc(np.zeros(n_samples), 16000, window=0.004, hop=0.002)
    assert features.shape == (1, 39)
    assert np.all(np.isfinite(features))


def test_shifting_by_a_hop_shifts_the_frames(rng):
    signal = rng.normal(size=5000)
    whole, shifted = (mfcc(s, 16000, deltas=0) for s in (signal, signal[320:]))
    assert_allclose(whole[3:], shifted[1:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"signal": np.zeros((10, 2))}, r"signal must be .*\(10, 2\)"),
        ({"signal": []}, "signal must be a non-empty"),
        ({"signal": [np.nan, 1.0]}, "signal must be finite"),
        ({"signal": np.full(900, 1e155)}, r"at most 1e\+100, got 1e\+155"),
        ({"signal": np.ma.masked_less(np.arange(9, dtype="i2"), 5)}, "got nan"),
        ({"signal": [*range(900)]}, "signal must be floats, or .* got int64"),
        ({"signal": np.ones(900, np.uint64)}, "got uint64.*such as int16"),
        ({"sample_rate": 0}, r"sample_rate must be a number in \(0"),
        ({"sample_rate": 10**400}, "sample_rate must be a number in .* got 1000"),
        ({"sample_rate": 1e-300}, "window must be at least 1 sample"),
        ({"window": 25}, "window must be a time in seconds, got 25 s"),
        ({"hop": -1.0}, r"hop must be a number in \(0, inf\), got -1.0"),
        ({"window": 1e300}, "window must be at most 16777216 samples long, got 1e.300"),
        ({"n_filters": 10**7}, "n_filters must be smaller with sample_rate=16000"),
        ({"n_coefficients": 30}, "n_coefficients must be at most n_filters=26"),
        ({"deltas": 3}, "deltas must be 0, 1 or 2, got 3"),
    ],
)
def test_wrong_arguments_of_mfcc_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        mfcc(**({"signal": np.ones(1000), "sample_rate": 16000} | arguments))


def test_mfcc_agrees_with_an_independent_front_end(shared):
    shared("timit_nltk_sample_raw.zip")
    other = load_npz(shared("timit_nltk_mfcc39_25_10.npz"))
    ours = load_timit(shared("timit_nltk_sample_raw.zip"))
    places = zip(ours.segments.utterance, ours.segments.start, strict=True)
    index = {place: i for i, place in enumerate(places)}
    pairs = zip(other.utterance, other.start_sample, strict=True)
    matched = [index[place] for place in pairs]
    assert_array_equal(ours.target[matched], other.target)
    a = np.vstack([ours.data[i] for i in matched])
    b = np.vstack(other.data)
    # Equal shapes: both cut the utterances into the same frames.
    correlations = [np.corrcoef(a[:, k], b[:, k])[0, 1] for k in range(39)]
    assert min(correlations) > 0.9
    assert np.mean(correlations) > 0.95


@pytest.mark.parametrize("signal", [[[1], [2, 3]], ["1"] * 9, np.zeros(9, "M8[s]"), {}])
def test_signals_of_anything_but_numbers_are_named(signal):
    with pytest.raises(
        (TypeError, ValueError), match=r"^signal must be an array of num"
    ):
        mfcc(signal, 100)


@pytest.mark.parametrize("value", ["x", None, np.nan, 1.5, 1j])
def test_preemphasis_is_a_fraction(value):
    with pytest.raises((TypeError, ValueError), match=r"^preemphasis must be a number"):
        mfcc(np.ones(50), 100, preemphasis=value)


@pytest.mark.parametrize("value", [1.0, True, [], "1", None])
def test_orders_of_deltas_are_integers(value):
    with pytest.raises(TypeError, match=r"^deltas must be an integer"):
        mfcc(np.ones(50), 100, deltas=value)


def test_the_largest_signals_have_finite_coefficients():
    signal = 1e100 * np.sin(np.arange(2000))
    assert np.all(np.isfinite(mfcc(signal, 8000)))


def test_numbers_of_numpy_count_as_those_of_python(rng):
    # The nearest half-precision numbers to 0.025 and 0.01 are others.
    signal = rng.normal(size=4000)
    window, hop = np.float16(0.025), np.float16(0.01)
    wanted = mfcc(signal, 4000, window=float(window), hop=float(hop), n_filters=100)
    given = {"window": window, "hop": hop, "n_filters": np.int8(100)}
    given |= {"n_coefficients": np.uint8(13), "deltas": np.int8(2)}
    assert_array_equal(mfcc(signal, np.float16(4000), **given), wanted)


@pytest.mark.parametrize("n_filters", [26, 80, 400])
@pytest.mark.parametrize("sample_rate", [100, 8000, 44100])
def test_no_mel_band_is_empty(n_filters, sample_rate):
    # A band between two bins of the spectrum would be silent in every window.
    n_fft = _fft_length(100, sample_rate, n_filters)
    assert np.all(mel_filters(n_filters, n_fft, sample_rate).sum(axis=1) > 0)


def test_many_mel_bands_are_heard(rng):
    # With empty bands, their floor of silence would hide the level of the noise.
    signal = rng.normal(size=4000)
    given = {"n_filters": 200, "n_coefficients": 200, "deltas": 0, "window": 0.004}
    level = mfcc(signal, 44100, **given)[:, 0] / np.sqrt(200)
    assert np.all(level > -5)
