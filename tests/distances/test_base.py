import pytest
from sklearn.base import clone

from skawhmm import IAW, JAW, KL, MAW, PairwiseHMMDistance, TransitionCoupling
from skawhmm.distances import MMD
from skawhmm.utils._digest import content_digest

KNOWN = {
    "MAW()": MAW(),
    "MAW(alpha=0.3)": MAW(0.3, 1),
    "MAW(p=2, registration='identity')": MAW(p=2, registration="identity"),
    "JAW()": JAW(0.5),
    "JAW(alpha=0.2, steps='independent')": JAW(0.2, steps="independent"),
    "IAW(n_samples=8, debias=True)": IAW(n_samples=8, debias=True),
    "IAW(random_state=None)": IAW(random_state=None),
    "KL()": KL(cap=None),
    "KL(method='variational', cap=3)": KL(method="variational", cap=3),
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


@pytest.mark.parametrize("metric", KNOWN.values(), ids=KNOWN)
def test_distances_are_parameter_objects(metric):
    params = metric.get_params()
    assert type(metric)(**params) == metric
    assert clone(metric) == metric
    assert clone(metric) is not metric
    fresh = type(metric)().set_params(**params)
    assert fresh == metric
    assert fresh.get_params() == params


def test_jaw_is_maw_with_joint_steps():
    one, two = JAW(), MAW(0.5, steps="joint")
    assert one == two
    assert hash(one) == hash(two)
    assert content_digest(one) == content_digest(two)
    assert one != MAW(0.5)
    assert content_digest(one) != content_digest(MAW(0.5))


def test_subclasses_differ_from_the_distance_they_extend():
    class Other(JAW):
        pass

    assert Other() != JAW()
    assert Other() != MAW(0.5, steps="joint")
    assert MAW() != "maw"


def test_estimators_print_their_distance():
    estimator = clone(PairwiseHMMDistance(MAW(alpha=0.3)))
    assert repr(estimator) == "PairwiseHMMDistance(metric=MAW(alpha=0.3))"
