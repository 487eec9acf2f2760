"""Groups of models: tests, alignment, tables, effects, uncertainty."""

from skawhmm.groups._alignment import Alignment, HMMAligner
from skawhmm.groups._effects import StateEffects, state_effects
from skawhmm.groups._results import GroupTestResult
from skawhmm.groups._tables import state_table, transition_table
from skawhmm.groups._tests import hmm_group_test
from skawhmm.groups._uncertainty import (
    DistanceInterval,
    StabilityCurve,
    distance_interval,
    stability_curve,
)

__all__ = [
    "Alignment",
    "DistanceInterval",
    "GroupTestResult",
    "HMMAligner",
    "StabilityCurve",
    "StateEffects",
    "distance_interval",
    "hmm_group_test",
    "stability_curve",
    "state_effects",
    "state_table",
    "transition_table",
]
