"""Sequences: readers of containers, checks, and preprocessing steps."""

from skawhmm.sequences._containers import as_sequences
from skawhmm.sequences._delays import Delays
from skawhmm.sequences._mfcc import mfcc
from skawhmm.sequences._preprocessing import Deltas, Framewise, TimeChannel
from skawhmm.sequences._trials import Trials
from skawhmm.sequences._windows import WindowList, Windows

__all__ = [
    "Delays",
    "Deltas",
    "Framewise",
    "TimeChannel",
    "Trials",
    "WindowList",
    "Windows",
    "as_sequences",
    "mfcc",
]
