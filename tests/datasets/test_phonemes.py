import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import solve_toeplitz
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from skawhmm.datasets import _formants as tables
from skawhmm.datasets import load_npz, load_timit, make_phonemes, mfcc
from skawhmm.datasets._mfcc import mel_filters
from skawhmm.datasets._sampling import item_generator, seed_sequence
from skawhmm.datasets._speech import SAMPLE_RATE, make_speaker, synthesized_phoneme


def shared(name):
    path = Path(os.environ.get("SKAWHMM_DATA", "missing")) / name
    if not path.exists():
        pytest.skip(f"needs {name} in the folder named by SKAWHMM_DATA")
    return path


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
        ({"sample_rate": 0}, "sample_rate must be positive"),
        ({"hop": -1.0}, "hop must be positive"),
        ({"n_coefficients": 30}, "n_coefficients must be at most n_filters=26"),
        ({"deltas": 3}, "deltas must be 0, 1 or 2, got 3"),
    ],
)
def test_wrong_arguments_of_mfcc_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        mfcc(**({"signal": np.ones(1000), "sample_rate": 16000} | arguments))


def test_mfcc_agrees_with_an_independent_front_end():
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


def test_formant_tables_are_ordered():
    for pitch, *formants in tables.VOWELS.values():
        men, women, children = np.transpose(formants)
        assert np.all(np.diff(men) > 0)
        assert np.all(men < women)
        assert np.all(women < children)
        assert pitch[0] < pitch[1] < pitch[2]
    others = (tables.SONORANTS, tables.NASALS, tables.FRICATIVES, tables.PLOSIVES)
    for table in others:
        for formants, bandwidths, *levels in table.values():
            assert np.all(np.diff(formants) > 0)
            assert len(bandwidths) == 3
            assert all(len(level) == 5 for level in levels)
    assert len(tables.PHONEMES) == len(set(tables.PHONEMES)) == 34


def utterances(phoneme, group, n_utterances):
    for i in range(n_utterances):
        rng = item_generator(seed_sequence(0), i)
        yield synthesized_phoneme(rng, phoneme, make_speaker(rng, group))


def resonances(wave):
    """First three resonances of the middle of a sound, by linear prediction."""
    middle = wave[len(wave) // 2 - 320 : len(wave) // 2 + 320]
    emphasised = np.diff(middle) * np.hamming(len(middle) - 1)
    products = np.correlate(emphasised, emphasised, "full")[len(emphasised) - 1 :]
    coefficients = solve_toeplitz(products[:16], products[1:17])
    roots = np.roots(np.r_[1, -coefficients])
    roots = roots[(roots.imag > 0) & (np.abs(roots) > 0.88)]
    frequencies = np.sort(np.angle(roots) * SAMPLE_RATE / (2 * np.pi))
    return frequencies[frequencies > 150][:3]


@pytest.mark.parametrize("group", [0, 1, 2])
@pytest.mark.parametrize("vowel", ["iy", "eh", "ae", "ah", "er"])
def test_vowels_have_the_published_formants(vowel, group):
    found = [resonances(wave) for wave in utterances(vowel, group, 60)]
    measured = np.median([f for f in found if len(f) == 3], axis=0)
    pitch, *published = (row[group] for row in tables.VOWELS[vowel])
    # Prediction sees the harmonics of the pitch rather than a low first formant.
    assert_allclose(measured, published, rtol=0.1, atol=0.3 * pitch)


def mean_spectrum(phoneme, group, n_utterances):
    """Average power spectrum of the middle, on bins of 31.25 Hz."""
    total = 0
    for wave in utterances(phoneme, group, n_utterances):
        middle = wave[len(wave) // 2 - 256 : len(wave) // 2 + 256]
        total = total + np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 512)) ** 2
    return total


def test_sounds_have_the_spectra_of_their_classes():
    frequencies = np.arange(257) * SAMPLE_RATE / 512

    def share_above(phoneme, limit):
        spectrum = mean_spectrum(phoneme, 0, n_utterances=15)
        return spectrum[frequencies > limit].sum() / spectrum.sum()

    assert share_above("s", 3500) > 0.8
    assert share_above("sh", 2000) > 0.8
    assert share_above("s", 4000) > share_above("sh", 4000) + 0.3
    assert share_above("m", 1000) < 0.1
    assert share_above("aa", 3500) < 0.05
    assert 0.3 < share_above("f", 4000) < 0.7
    assert share_above("z", 1000) < share_above("s", 1000)


def test_stops_begin_quiet_and_end_loud():
    for phoneme in tables.PLOSIVES:
        ratios = []
        for i in range(10):
            rng = item_generator(seed_sequence(1), i)
            wave = synthesized_phoneme(rng, phoneme, make_speaker(rng, i % 3))
            n = len(wave) // 4
            ratios.append(
                np.sum(wave[-2 * n :] ** 2) / max(np.sum(wave[:n] ** 2), 1e-9)
            )
        assert np.median(ratios) > 2


def test_phonemes_come_with_labels_and_speakers():
    X, y, speakers = make_phonemes(2, 3, phonemes=["aa", "s"], deltas=2, random_state=0)
    assert len(X) == len(y) == len(speakers) == 12
    assert_array_equal(y, ["aa", "s"] * 6)
    assert_array_equal(speakers, np.repeat([0, 1], 6))
    assert {x.shape[1] for x in X} == {39}
    assert all(np.all(np.isfinite(x)) for x in X)


def test_an_utterance_does_not_depend_on_the_others():
    X, y, speakers = make_phonemes(2, 2, phonemes=["aa", "s", "t"], random_state=7)
    Z, _, _ = make_phonemes(3, 2, phonemes=["t", "aa"], random_state=7)
    chosen = np.flatnonzero((speakers == 1) & (y == "t"))
    for i, j in zip(chosen, (4, 6), strict=True):
        assert_array_equal(X[i], Z[j])


def test_noise_hides_quiet_sounds():
    clean, _, _ = make_phonemes(3, 4, phonemes=["f"], snr=np.inf, random_state=0)
    noisy, _, _ = make_phonemes(3, 4, phonemes=["f"], snr=0.0, random_state=0)
    assert np.mean([x[:, 0].mean() for x in noisy]) > np.mean(
        [x[:, 0].mean() + 10 for x in clean]
    )


def test_classification_is_possible_but_not_trivial():
    X, y, speakers = make_phonemes(random_state=0)
    assert len(X) == 34 * 12
    features = np.array([np.r_[x.mean(axis=0), x.std(axis=0)] for x in X])
    scores = [
        cross_val_score(model, features, y, groups=speakers, cv=GroupKFold(3)).mean()
        for model in (KNeighborsClassifier(1), LinearDiscriminantAnalysis())
    ]
    assert 0.2 < scores[0] < 0.7
    assert 0.5 < scores[1] < 0.95


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_speakers": 0}, "n_speakers must be at least 1"),
        ({"phonemes": ["aa", "xx"]}, "phonemes must be .*xx"),
        ({"phonemes": []}, "phonemes must be a non-empty"),
        ({"snr": np.nan}, "snr must be"),
    ],
)
def test_wrong_arguments_of_phonemes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_phonemes(**arguments)
