"""What users pass: containers of sequences, checks, steps before the models."""

from skawhmm.sequences._containers import as_sequences
from skawhmm.sequences._mfcc import mfcc
from skawhmm.sequences._preprocessing import Deltas, Framewise, TimeChannel
from skawhmm.sequences._trials import Trials

__all__ = [
    "Deltas",
    "Framewise",
    "TimeChannel",
    "Trials",
    "as_sequences",
    "mfcc",
]
