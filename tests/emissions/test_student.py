"""States with heavy tails."""

import numpy as np
from emissions.numerical_w2 import numerical_w2, positive
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from skawhmm.emissions import StudentT


@given(
    st.tuples(st.floats(-3, 3), positive, st.floats(2.6, 40)),
    st.tuples(st.floats(-3, 3), positive, st.floats(2.6, 40)),
)
@settings(max_examples=15, deadline=None)
def test_student_costs_are_wasserstein_distances(a, b):
    distributions = [stats.t(dof, location, scale) for location, scale, dof in (a, b)]
    arrays = np.array([a, b]).T[:, :, None, None]
    cost = np.sqrt(StudentT().like(*arrays).cross(np.array([0]), np.array([1])))
    # The integral leaves out the farthest tails, the family does not.
    assert_allclose(cost[0, 0, 0], numerical_w2(*distributions), rtol=5e-3, atol=1e-6)


def test_student_costs_of_equal_freedom_have_a_closed_form():
    states = [[0.0, 1.5], [1.0, 2.0], [4.0, 4.0]]
    family = StudentT().like(*np.array(states)[:, :, None, None])
    cost = family.cross(np.array([0]), np.array([1]))[0, 0, 0]
    assert_allclose(cost, 1.5**2 + 2 * (2 - 1) ** 2, rtol=1e-12)
