"""Published resonances of speech sounds, in hertz and decibels.

Vowels: G. E. Peterson and H. L. Barney, "Control methods used in a study of the
vowels", Journal of the Acoustical Society of America 24, 1952, Table II. Diphthongs and
consonants: D. H. Klatt, "Software for a cascade/parallel formant synthesizer", Journal
of the Acoustical Society of America 67, 1980, Tables I to III, one male speaker.
"""

from __future__ import annotations

# Pitch, then the first three formants; each for men, women and children.
VOWELS = {
    "iy": ((136, 235, 272), (270, 310, 370), (2290, 2790, 3200), (3010, 3310, 3730)),
    "ih": ((135, 232, 269), (390, 430, 530), (1990, 2480, 2730), (2550, 3070, 3600)),
    "eh": ((130, 223, 260), (530, 610, 690), (1840, 2330, 2610), (2480, 2990, 3570)),
    "ae": ((127, 210, 251), (660, 860, 1010), (1720, 2050, 2320), (2410, 2850, 3320)),
    "aa": ((124, 212, 256), (730, 850, 1030), (1090, 1220, 1370), (2440, 2810, 3170)),
    "ao": ((129, 216, 263), (570, 590, 680), (840, 920, 1060), (2410, 2710, 3180)),
    "uh": ((137, 232, 276), (440, 470, 560), (1020, 1160, 1410), (2240, 2680, 3310)),
    "uw": ((141, 231, 274), (300, 370, 430), (870, 950, 1170), (2240, 2670, 3260)),
    "ah": ((130, 221, 261), (640, 760, 850), (1190, 1400, 1590), (2390, 2780, 3360)),
    "er": ((133, 218, 261), (490, 500, 560), (1350, 1640, 1820), (1690, 1960, 2160)),
}

# The first three formants at the beginning and at the end.
DIPHTHONGS = {
    "ey": ((480, 1720, 2520), (330, 2020, 2600)),
    "ay": ((660, 1200, 2550), (400, 1880, 2500)),
    "oy": ((550, 960, 2400), (360, 1820, 2450)),
    "aw": ((640, 1230, 2550), (420, 940, 2350)),
    "ow": ((540, 1100, 2300), (450, 900, 2300)),
}

# Formants and their bandwidths.
SONORANTS = {
    "w": ((290, 610, 2150), (50, 80, 60)),
    "y": ((260, 2070, 3020), (40, 250, 500)),
    "r": ((310, 1060, 1380), (70, 100, 120)),
    "l": ((310, 1050, 2880), (50, 100, 280)),
}

# Formants and bandwidths; nasals have a further pole and a zero.
NASALS = {
    "m": ((480, 1270, 2130), (40, 200, 200)),
    "n": ((480, 1340, 2470), (40, 300, 300)),
}
NASAL_POLE, NASAL_ZERO, NASAL_BANDWIDTH = 270, 450, 100

# Formants, bandwidths, and the levels of the noise in formants 3 to 6 and unfiltered.
FRICATIVES = {
    "f": ((340, 1100, 2080), (200, 120, 150), (0, 0, 0, 0, 57)),
    "v": ((220, 1100, 2080), (60, 90, 120), (0, 0, 0, 0, 57)),
    "th": ((320, 1290, 2540), (200, 90, 200), (0, 0, 0, 28, 48)),
    "dh": ((270, 1290, 2540), (60, 80, 170), (0, 0, 0, 28, 48)),
    "s": ((320, 1390, 2530), (200, 80, 200), (0, 0, 0, 52, 0)),
    "z": ((240, 1390, 2530), (70, 60, 180), (0, 0, 0, 52, 0)),
    "sh": ((300, 1840, 2750), (200, 100, 300), (57, 48, 48, 46, 0)),
}
PLOSIVES = {
    "p": ((400, 1100, 2150), (300, 150, 220), (0, 0, 0, 0, 63)),
    "b": ((200, 1100, 2150), (60, 110, 130), (0, 0, 0, 0, 63)),
    "t": ((400, 1600, 2600), (300, 120, 250), (30, 45, 57, 63, 0)),
    "d": ((200, 1600, 2600), (60, 100, 170), (47, 60, 62, 60, 0)),
    "k": ((300, 1990, 2850), (250, 160, 330), (53, 43, 45, 45, 0)),
    "g": ((200, 1990, 2850), (60, 150, 280), (53, 43, 45, 45, 0)),
}
VOICED = frozenset({"v", "dh", "z", "b", "d", "g"})

# Formants 4 to 6, the same for all sounds, and their bandwidths.
HIGH_FORMANTS, HIGH_BANDWIDTHS = (3300, 3750, 4900), (250, 200, 1000)

PHONEMES = (*VOWELS, *DIPHTHONGS, *SONORANTS, *NASALS, *FRICATIVES, *PLOSIVES)
