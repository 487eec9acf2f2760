"""Source-filter synthesis of single speech sounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter, sosfilt

from skawhmm.datasets import _formants as tables

SAMPLE_RATE = 16000

# The filter is held for this many samples (5 ms), as in Klatt's synthesiser.
_BLOCK = 80

# Shortest part of a sound in blocks: a few analysis windows.
_MIN_BLOCKS = 8

# Bandwidths of the first three formants of vowels, in hertz: typical of Klatt's table.
_VOWEL_BANDWIDTHS = (70.0, 100.0, 160.0)

# Typical durations in seconds, and levels relative to a vowel.
_DURATIONS = {"vowel": 0.14, "glide": 0.17, "sonorant": 0.09, "nasal": 0.09}
_FRICATIVE_DURATION, _CLOSURE_DURATION, _RELEASE_DURATION = 0.11, 0.06, 0.06
_SONORANT_LEVEL, _NASAL_LEVEL, _VOICE_BAR_LEVEL = 0.5, 0.35, 0.15

# Noise levels in Klatt's decibels are converted to amplitudes around this one.
_NOISE_REFERENCE_DB = 68.0


@dataclass(frozen=True)
class Speaker:
    """Properties of a speaker that are the same for all sounds."""

    group: int  # 0 a man, 1 a woman, 2 a child
    scale: np.ndarray  # factor of each of the first three formants
    pitch: float  # factor of the group's pitch
    rate: float  # factor of durations
    breath: float  # noise in the voice
    tilt: float  # coefficient of the microphone's one-pole filter


def make_speaker(rng, group):
    """Draw a speaker: length of the vocal tract, pitch, habits, microphone."""
    size = np.exp(rng.normal(0, 0.04))
    return Speaker(
        group=group,
        scale=size * np.exp(rng.normal(0, 0.03, size=3)),
        pitch=np.exp(rng.normal(0, 0.12)),
        rate=np.exp(rng.normal(0, 0.15)),
        breath=np.exp(rng.normal(np.log(0.08), 0.5)),
        tilt=rng.uniform(-0.3, 0.3),
    )


def _group_scales():
    """Mean ratio to men of the formants of men, women and children, shape (3, 3)."""
    formants = np.array([vowel[1:] for vowel in tables.VOWELS.values()], dtype=float)
    return (formants / formants[:, :, :1]).mean(axis=0).T


_GROUP_SCALES = _group_scales()


def synthesized_phoneme(rng, phoneme, speaker):
    """Waveform of one utterance of a phoneme, a vowel having unit power."""
    for members, synthesis in _MANNERS:
        if phoneme in members:
            wave = synthesis(rng, phoneme, speaker)
    gain = 10 ** (rng.normal(0, 2.5) / 20)
    # The spectrum of the microphone belongs to the speaker, at equal mean noise power.
    coloured = lfilter([np.sqrt(1 - speaker.tilt**2)], [1, -speaker.tilt], wave)
    return gain * coloured


def _n_blocks(rng, speaker, seconds):
    seconds *= speaker.rate * np.exp(rng.normal(0, 0.2))
    return max(_MIN_BLOCKS, round(seconds * SAMPLE_RATE / _BLOCK))


def _spoken(rng, formants, speaker, male=True):
    """Formants of one utterance of this speaker."""
    factor = speaker.scale * np.exp(rng.normal(0, (0.06, 0.05, 0.04)))
    if male:
        factor = factor * _GROUP_SCALES[speaker.group]
    return np.asarray(formants, dtype=float) * factor


def _track(n_blocks, knots, times):
    """Formants of each block, between knots at relative times by cosine ramps."""
    knots = np.asarray(knots)
    position = np.interp(np.linspace(0, 1, n_blocks), times, np.arange(len(times)))
    index = np.minimum(position.astype(int), len(times) - 2)
    part = 0.5 - 0.5 * np.cos(np.pi * (position - index))[:, None]
    return (1 - part) * knots[index] + part * knots[index + 1]


def _neighbour(rng, speaker):
    """Formants of the consonant a vowel comes from or goes to."""
    loci = [*tables.SONORANTS.values(), *tables.PLOSIVES.values()]
    return _spoken(rng, loci[rng.integers(len(loci))][0], speaker)


def _resonator(frequencies, bandwidths):
    """Two-pole sections of unit gain at zero frequency, shape (..., 6)."""
    radius = np.exp(-np.pi * np.asarray(bandwidths) / SAMPLE_RATE)
    angle = 2 * np.pi * np.asarray(frequencies) / SAMPLE_RATE
    second, third = -2 * radius * np.cos(angle), radius**2
    zero, one = np.zeros_like(second), np.ones_like(second)
    return np.stack([one + second + third, zero, zero, one, second, third], axis=-1)


def _antiresonator(frequency, bandwidth):
    """Section that undoes a resonator."""
    gain, _, _, _, second, third = _resonator(frequency, bandwidth)
    return np.array([1 / gain, second / gain, third / gain, 1, 0, 0])


def _cascade(source, track, bandwidths, speaker, extra=()):
    """Filter the source by all formants one after the other; the first three move."""
    stretch = _GROUP_SCALES[speaker.group, 2] * speaker.scale.mean()
    # The third formant of a front vowel must stay below the fourth.
    lift = np.maximum(0, track[:, 2:] + 300 - tables.HIGH_FORMANTS[0] * stretch)
    high = stretch * np.array(tables.HIGH_FORMANTS) + lift
    widths = np.array([*bandwidths, *tables.HIGH_BANDWIDTHS], dtype=float)
    moving = _resonator(np.hstack([track, high]), np.tile(widths, (len(track), 1)))
    fixed = np.array([*extra]).reshape(-1, 6)
    state = np.zeros((moving.shape[1] + len(fixed), 2))
    blocks = source.reshape(len(track), _BLOCK)
    wave = np.empty_like(blocks)
    for block, sections, out in zip(blocks, moving, wave, strict=True):
        out[:], state = sosfilt(np.vstack([fixed, sections]), block, zi=state)
    return wave.ravel()


def _voice(rng, n_blocks, speaker, pitch):
    """Glottal source: jittered pulses of falling pitch, and breath."""
    n_samples = n_blocks * _BLOCK
    pitch = pitch * speaker.pitch * np.exp(rng.normal(0, 0.06))
    fall = np.linspace(0, rng.normal(-0.08, 0.08), n_samples)
    wobble = np.repeat(rng.normal(0, 0.015, size=n_blocks), _BLOCK)
    phase = rng.random() + np.cumsum(pitch * np.exp(fall + wobble)) / SAMPLE_RATE
    pulses = np.diff(np.floor(phase), prepend=np.floor(phase[0]))
    pulses *= np.exp(rng.normal(0, 0.05, size=n_samples))
    breath = speaker.breath * np.sqrt(pitch / SAMPLE_RATE)
    excitation = pulses + breath * rng.standard_normal(n_samples)
    glottis = sosfilt(_resonator([0.0], [100.0]), excitation)
    return np.diff(glottis, prepend=0.0)


def _noise(rng, n_blocks, row, speaker):
    """White noise through the parallel formants 3 to 6 and around them."""
    formants, bandwidths, levels = row
    white = rng.standard_normal(n_blocks * _BLOCK)
    stretch = _GROUP_SCALES[speaker.group, 2] * speaker.scale.mean()
    frequencies = stretch * np.array([formants[2], *tables.HIGH_FORMANTS])
    frequencies *= np.exp(rng.normal(0, 0.05))
    widths = np.array([bandwidths[2], *tables.HIGH_BANDWIDTHS])
    bypass = 10 ** ((levels[-1] - _NOISE_REFERENCE_DB) / 20)
    total = bypass * white * (levels[-1] > 0)
    for frequency, width, level in zip(frequencies, widths, levels, strict=False):
        if level > 0:
            amplitude = 10 ** ((level - _NOISE_REFERENCE_DB) / 20)
            section = _resonator([frequency], [width])
            # Unit gain at the peak, so that the levels are the levels of the peaks.
            section[:, 0] *= width / frequency
            total += 2 * amplitude * sosfilt(section, white)
    return total


def _scaled(wave, level):
    return level * wave / np.sqrt(np.mean(wave**2))


def _faded(wave, rise=0.012, fall=0.02):
    """Fade in and out over this many seconds."""
    for part, seconds in ((wave, rise), (wave[::-1], fall)):
        n = min(round(seconds * SAMPLE_RATE), len(wave) // 2)
        part[:n] *= 0.5 - 0.5 * np.cos(np.pi * (np.arange(n) + 0.5) / n)
    return wave


def _pitch(speaker):
    pitches = np.array([vowel[0] for vowel in tables.VOWELS.values()], dtype=float)
    return pitches[:, speaker.group].mean()


def _vowel(rng, phoneme, speaker):
    pitch, *formants = (row[speaker.group] for row in tables.VOWELS[phoneme])
    target = _spoken(rng, formants, speaker, male=False)
    reach = rng.uniform(0.1, 0.5, size=2)
    first = target + reach[0] * (_neighbour(rng, speaker) - target)
    last = target + reach[1] * (_neighbour(rng, speaker) - target)
    n_blocks = _n_blocks(rng, speaker, _DURATIONS["vowel"])
    track = _track(n_blocks, [first, target, target, last], [0, 0.3, 0.6, 1])
    source = _voice(rng, n_blocks, speaker, pitch)
    wave = _cascade(source, track, _VOWEL_BANDWIDTHS, speaker)
    return _faded(_scaled(wave, 1.0))


def _diphthong(rng, phoneme, speaker):
    first, last = (_spoken(rng, f, speaker) for f in tables.DIPHTHONGS[phoneme])
    start = first + rng.uniform(0.1, 0.4) * (_neighbour(rng, speaker) - first)
    n_blocks = _n_blocks(rng, speaker, _DURATIONS["glide"])
    turn = rng.uniform(0.3, 0.45)
    track = _track(n_blocks, [start, first, first, last, last], [0, 0.2, turn, 0.85, 1])
    source = _voice(rng, n_blocks, speaker, _pitch(speaker))
    wave = _cascade(source, track, _VOWEL_BANDWIDTHS, speaker)
    return _faded(_scaled(wave, 1.0))


def _sonorant(rng, phoneme, speaker):
    formants, bandwidths = tables.SONORANTS[phoneme]
    target = _spoken(rng, formants, speaker)
    following = _following_vowel(rng, speaker)
    last = target + rng.uniform(0.2, 0.6) * (following - target)
    n_blocks = _n_blocks(rng, speaker, _DURATIONS["sonorant"])
    track = _track(n_blocks, [target, target, last], [0, 0.5, 1])
    source = _voice(rng, n_blocks, speaker, _pitch(speaker))
    wave = _cascade(source, track, bandwidths, speaker)
    return _faded(_scaled(wave, _SONORANT_LEVEL))


def _nasal(rng, phoneme, speaker):
    formants, bandwidths = tables.NASALS[phoneme]
    target = _spoken(rng, formants, speaker)
    last = target + rng.uniform(0, 0.3) * (_following_vowel(rng, speaker) - target)
    n_blocks = _n_blocks(rng, speaker, _DURATIONS["nasal"])
    track = _track(n_blocks, [target, target, last], [0, 0.7, 1])
    pole = _resonator(tables.NASAL_POLE, tables.NASAL_BANDWIDTH)
    zero = _antiresonator(tables.NASAL_ZERO, tables.NASAL_BANDWIDTH)
    source = _voice(rng, n_blocks, speaker, _pitch(speaker))
    wave = _cascade(source, track, bandwidths, speaker, extra=(pole, zero))
    return _faded(_scaled(wave, _NASAL_LEVEL))


def _following_vowel(rng, speaker):
    vowels = list(tables.VOWELS.values())
    vowel = vowels[rng.integers(len(vowels))]
    formants = [row[speaker.group] for row in vowel[1:]]
    return _spoken(rng, formants, speaker, male=False)


def _voice_bar(rng, n_blocks, speaker, formants, bandwidths, level):
    """Voicing heard through a closed or narrowed mouth."""
    track = np.tile(_spoken(rng, formants, speaker), (n_blocks, 1))
    source = _voice(rng, n_blocks, speaker, _pitch(speaker))
    return _scaled(_cascade(source, track, bandwidths, speaker), level)


def _fricative(rng, phoneme, speaker):
    formants, bandwidths, _ = tables.FRICATIVES[phoneme]
    n_blocks = _n_blocks(rng, speaker, _FRICATIVE_DURATION)
    wave = _faded(
        _noise(rng, n_blocks, tables.FRICATIVES[phoneme], speaker), rise=0.03, fall=0.03
    )
    if phoneme in tables.VOICED:
        # Klatt lowers the noise of voiced fricatives by 10 dB.
        wave *= 10 ** (-10 / 20)
        wave += _voice_bar(
            rng, n_blocks, speaker, formants, bandwidths, 2 * _VOICE_BAR_LEVEL
        )
    return wave


def _plosive(rng, phoneme, speaker):
    formants, bandwidths, _ = tables.PLOSIVES[phoneme]
    voiced = phoneme in tables.VOICED
    n_closure = _n_blocks(rng, speaker, _CLOSURE_DURATION)
    closure = np.zeros(n_closure * _BLOCK)
    if voiced:
        closure = _faded(
            _voice_bar(rng, n_closure, speaker, formants, bandwidths, _VOICE_BAR_LEVEL)
        )
    n_release = _n_blocks(rng, speaker, _RELEASE_DURATION)
    decay = rng.uniform(0.004, 0.010) if voiced else rng.uniform(0.008, 0.02)
    times = np.arange(n_release * _BLOCK) / SAMPLE_RATE
    burst = _noise(rng, n_release, tables.PLOSIVES[phoneme], speaker) * np.exp(
        -times / decay
    )
    # After the burst the tract opens towards the vowel: voiced, or as breath.
    locus, vowel = _spoken(rng, formants, speaker), _following_vowel(rng, speaker)
    opening = locus + 0.5 * (vowel - locus)
    track = _track(n_release, [locus, locus, opening], [0, 0.2, 1])
    if voiced:
        source, level = _voice(rng, n_release, speaker, _pitch(speaker)), 0.5
    else:
        source, level = np.diff(rng.standard_normal(len(burst)), prepend=0.0), 0.06
    release = _scaled(_cascade(source, track, bandwidths, speaker), level)
    onset = 1 / (1 + np.exp(-(times - 0.015) / 0.004))
    return np.concatenate([closure, burst + onset * release])


_MANNERS = (
    (tables.VOWELS, _vowel),
    (tables.DIPHTHONGS, _diphthong),
    (tables.SONORANTS, _sonorant),
    (tables.NASALS, _nasal),
    (tables.FRICATIVES, _fricative),
    (tables.PLOSIVES, _plosive),
)
