"""The recommended classifier and regressor, their views, and what order adds."""

from skawhmm.classification._dynamics import dynamics_gain
from skawhmm.classification._estimators import HMMViewClassifier, HMMViewRegressor
from skawhmm.classification._explanation import Explanation
from skawhmm.classification._recommended import make_classifier, make_regressor
from skawhmm.classification._views import make_views

__all__ = [
    "Explanation",
    "HMMViewClassifier",
    "HMMViewRegressor",
    "dynamics_gain",
    "make_classifier",
    "make_regressor",
    "make_views",
]
