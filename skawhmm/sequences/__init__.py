"""What users pass: containers of sequences, checks, steps before the models."""

from skawhmm.sequences._containers import as_sequences
from skawhmm.sequences._mfcc import mfcc
from skawhmm.sequences._preprocessing import Deltas, Framewise, TimeChannel

__all__ = [
    "Deltas",
    "Framewise",
    "TimeChannel",
    "as_sequences",
    "mfcc",
]
