"""Displays and the explorer: the only place that imports matplotlib."""

from skawhmm.plot._curves import AlphaCurveDisplay, RetrievalDisplay
from skawhmm.plot._dynamics import DynamicsGainDisplay
from skawhmm.plot._effects import EffectsDisplay, TransitionGraphDisplay
from skawhmm.plot._explanation import ExplanationDisplay
from skawhmm.plot._group_test import GroupTestDisplay
from skawhmm.plot._map import HMMMapDisplay
from skawhmm.plot._matrix import DistanceMatrixDisplay
from skawhmm.plot._model import HMMDisplay
from skawhmm.plot._monitor import MonitorDisplay
from skawhmm.plot._registration import RegistrationDisplay
from skawhmm.plot._sequence import SequenceDisplay
from skawhmm.plot._states import StateSummaryDisplay
from skawhmm.plot._symbol_sequences import (
    MedoidSequencesDisplay,
    SequenceFrequencyDisplay,
    SequenceIndexDisplay,
    StateDistributionDisplay,
)
from skawhmm.plot._uncertainty import (
    DistanceIntervalDisplay,
    RegistrationIntervalDisplay,
    StabilityDisplay,
)

__all__ = [
    "AlphaCurveDisplay",
    "DistanceIntervalDisplay",
    "DistanceMatrixDisplay",
    "DynamicsGainDisplay",
    "EffectsDisplay",
    "ExplanationDisplay",
    "GroupTestDisplay",
    "HMMDisplay",
    "HMMMapDisplay",
    "MedoidSequencesDisplay",
    "MonitorDisplay",
    "RegistrationDisplay",
    "RegistrationIntervalDisplay",
    "RetrievalDisplay",
    "SequenceDisplay",
    "SequenceFrequencyDisplay",
    "SequenceIndexDisplay",
    "StabilityDisplay",
    "StateDistributionDisplay",
    "StateSummaryDisplay",
    "TransitionGraphDisplay",
]
