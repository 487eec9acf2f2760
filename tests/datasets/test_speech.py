import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import solve_toeplitz

from skawhmm.datasets import _formants as tables
from skawhmm.datasets._sampling import seed_sequence
from skawhmm.datasets._speech import SAMPLE_RATE, make_speaker, synthesized_phoneme
from skawhmm.utils._seeds import item_rng


def utterances(phoneme, group, n_utterances):
    for i in range(n_utterances):
        rng = item_rng(seed_sequence(0), i)
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
            rng = item_rng(seed_sequence(1), i)
            wave = synthesized_phoneme(rng, phoneme, make_speaker(rng, i % 3))
            n = len(wave) // 4
            ratios.append(
                np.sum(wave[-2 * n :] ** 2) / max(np.sum(wave[:n] ** 2), 1e-9)
            )
        assert np.median(ratios) > 2
