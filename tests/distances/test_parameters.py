import numpy as np
import pytest
from sklearn.base import clone

from skawhmm import IAW, JAW, KL, MAW, PairwiseHMMDistance, TransitionCoupling
from skawhmm.distances import MMD
from skawhmm.distances._parameters import Parametrized

KNOWN = {
    "MAW()": MAW(),
    "MAW(alpha=0.3)": MAW(0.3, 1),
    "MAW(p=2.0, registration='identity')": MAW(p=2, registration="identity"),
    "JAW()": JAW(0.5),
    "JAW(alpha=0.1, steps='independent')": JAW(0.1, steps="independent"),
    "IAW(n_samples=8, debias=True)": IAW(n_samples=8, debias=True),
    "IAW(random_state=None)": IAW(random_state=None),
    "KL()": KL(cap=None),
    "KL(method='variational', cap=3.0)": KL(method="variational", cap=3),
    "KL(symmetric=False)": KL(symmetric=False),
    "TransitionCoupling(gamma=0.5)": TransitionCoupling(gamma=0.5),
    "MMD()": MMD(bandwidth="median"),
    "MMD(order=1, bandwidth=1.5)": MMD(order=1, bandwidth=1.5),
}


@pytest.mark.parametrize("text", KNOWN)
def test_distances_print_what_makes_them_again(text):
    metric = KNOWN[text]
    assert repr(metric) == text
    again = eval(text)
    assert again == metric
    assert vars(again) == vars(metric)
    assert hash(again) == hash(metric)
    others = [other for other in KNOWN.values() if other is not metric]
    assert all(metric != other for other in others)


def test_distances_of_different_kinds_differ():
    assert MAW(0.5, steps="joint") != JAW()
    assert MAW() != "maw"


def test_estimators_print_their_distance():
    estimator = clone(PairwiseHMMDistance(MAW(alpha=0.3)))
    assert repr(estimator) == "PairwiseHMMDistance(metric=MAW(alpha=0.3))"


def test_parameters_of_a_user_may_be_arrays():
    class Weighted(Parametrized):
        def __init__(self, weights, *, power=2, unused=None):
            self.weights = weights
            self.power = power

    metric = Weighted(np.array([1, 2]))
    assert repr(metric) == "Weighted(weights=array([1, 2]))"
    assert metric == Weighted(np.array([1, 2]), power=2)
    assert metric != Weighted(np.array([1, 3]))
