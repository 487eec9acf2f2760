"""Synthetic phonemes, as sequences of cepstral coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skawhmm.datasets._formants import PHONEMES
from skawhmm.datasets._sampling import seed_sequence
from skawhmm.datasets._speech import SAMPLE_RATE, make_speaker, synthesized_phoneme
from skawhmm.sequences._mfcc import mfcc
from skawhmm.utils._checks import check_integer, check_real
from skawhmm.utils._seeds import item_rng

# Root random streams of one call: the speakers, and the utterances.
_SPEAKERS, _UTTERANCES = 0, 1

# Root mean square of a vowel in the recording, a usual level of full scale 1.
_VOWEL_LEVEL = 0.1

# Smallest signal-to-noise ratio in decibels; vowels are inaudible well above it.
_LEAST_SNR = -200.0


def make_phonemes(
    n_speakers: int = 6,
    n_repetitions: int = 2,
    *,
    phonemes: Sequence[str] | None = None,
    snr: float = 20.0,
    window: float = 0.020,
    hop: float = 0.005,
    deltas: int = 1,
    random_state: Any = None,
) -> tuple[list[NDArray[np.float64]], NDArray[Any], NDArray[Any]]:
    """Synthesise phonemes of several speakers, as cepstral coefficients.

    Vowels, diphthongs, glides, nasals, fricatives and stops of American English are
    synthesised at 16 kHz by a source-filter model from published formant frequencies.
    Speakers (alternately men, women and children) differ in the length of the vocal
    tract, pitch, pace, breath and microphone. Each utterance has its own duration,
    melody and level, and its formants shift towards neighbouring sounds.

    Parameters
    ----------
    n_speakers : int, default=6
        Number of speakers.

    n_repetitions : int, default=2
        How often each speaker says each phoneme.

    phonemes : sequence of str or None, default=None
        The phonemes, by their TIMIT names; `None` means all 34.

    snr : float, default=20.0
        Signal-to-noise ratio in decibels: the level of a typical vowel over the white
        noise of the recording. Pass `numpy.inf` for no noise.

    window : float, default=0.020
        Length of the analysis window in seconds.

    hop : float, default=0.005
        Time from one window to the next in seconds.

    deltas : {0, 1, 2}, default=1
        Order of the time derivatives appended to the 13 static coefficients.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draw. An utterance does not depend on the other utterances drawn.

    Returns
    -------
    X : list of ndarray of shape (n_frames, 13 * (1 + deltas))
        Cepstral coefficients of the utterances.

    y : ndarray of shape (n_sequences,)
        Names of the phonemes.

    speakers : ndarray of shape (n_sequences,)
        Indices of the speakers: the groups of a speaker-independent cross-validation.

    See Also
    --------
    load_timit : Recorded phonemes.
    mfcc : The analysis.

    Notes
    -----
    Vowels have the pitches and formants of men, women and children in [1]_. Diphthongs
    and consonants have the formants of the male speaker in [2]_, scaled for women and
    children by the mean ratio of the vowels' formants. Durations, relative levels of
    the classes, and the variation between and within speakers are our own choices.

    References
    ----------
    .. [1] G. E. Peterson and H. L. Barney, "Control methods used in a study of the
       vowels", Journal of the Acoustical Society of America 24(2), 1952.
    .. [2] D. H. Klatt, "Software for a cascade/parallel formant synthesizer", Journal
       of the Acoustical Society of America 67(3), 1980.

    Examples
    --------
    >>> from skawhmm.datasets import make_phonemes
    >>> X, y, speakers = make_phonemes(3, 1, phonemes=["iy", "s", "m"], random_state=0)
    >>> len(X), X[0].shape[1]
    (9, 26)
    >>> y[:3], speakers
    (array(['iy', 's', 'm'], dtype='<U2'), array([0, 0, 0, 1, 1, 1, 2, 2, 2]))
    """
    n_speakers = check_integer("n_speakers", n_speakers, 1)
    n_repetitions = check_integer("n_repetitions", n_repetitions, 1)
    chosen = PHONEMES if phonemes is None else _chosen(phonemes)
    snr = check_real("snr", snr, _LEAST_SNR, np.inf, allow_infinity=True)
    root = seed_sequence(random_state)
    X, y, speakers = [], [], []
    for number in range(n_speakers):
        # Men, women and children alternate.
        speaker = make_speaker(item_rng(root, _SPEAKERS, number), number % 3)
        for repetition in range(n_repetitions):
            for phoneme in chosen:
                key = (_UTTERANCES, number, repetition, PHONEMES.index(phoneme))
                wave = _recording(item_rng(root, *key), phoneme, speaker, snr)
                X.append(mfcc(wave, SAMPLE_RATE, window=window, hop=hop, deltas=deltas))
                y.append(phoneme)
                speakers.append(number)
    return X, np.array(y), np.array(speakers)


def _chosen(phonemes):
    """Return distinct known phonemes."""
    try:
        chosen = tuple(phonemes)
    except TypeError:
        chosen = ()
    known = [phoneme for phoneme in PHONEMES if phoneme in chosen]
    # A phoneme named twice would give the same utterances twice.
    if not chosen or len(known) != len(chosen):
        raise ValueError(
            f"phonemes must be a non-empty selection of {', '.join(PHONEMES)}, each "
            f"named once; got {phonemes!r}."
        )
    return chosen


def _recording(rng, phoneme, speaker, snr):
    wave = synthesized_phoneme(rng, phoneme, speaker)
    noise = 10 ** (-snr / 20) * rng.standard_normal(len(wave))
    return _VOWEL_LEVEL * (wave + noise)
