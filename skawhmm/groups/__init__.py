"""Groups of models: tests, alignment, tables, effects, uncertainty."""

from skawhmm.groups._alignment import Alignment, HMMAligner
from skawhmm.groups._effects import StateEffects, state_effects
from skawhmm.groups._registration import RegistrationInterval, registration_interval
from skawhmm.groups._results import GroupTestResult
from skawhmm.groups._stability import StabilityCurve, stability_curve
from skawhmm.groups._tables import state_table, transition_table
from skawhmm.groups._tests import hmm_group_test
from skawhmm.groups._uncertainty import DistanceInterval, distance_interval

__all__ = [
    "Alignment",
    "DistanceInterval",
    "GroupTestResult",
    "HMMAligner",
    "RegistrationInterval",
    "StabilityCurve",
    "StateEffects",
    "distance_interval",
    "hmm_group_test",
    "registration_interval",
    "stability_curve",
    "state_effects",
    "state_table",
    "transition_table",
]
