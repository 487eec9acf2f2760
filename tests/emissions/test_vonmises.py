"""States that emit angles."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMBatch, HMMTransformer, hmm_barycenter
from skawhmm.emissions import VonMises


def test_angles_are_wrapped_with_a_warning(rng):
    x = rng.uniform(-3, 3, (60, 1))
    inside = (x + 2 * np.pi + np.pi) % (2 * np.pi) - np.pi
    hmm = HMMTransformer(2, emission=VonMises(), random_state=0)
    models = hmm.fit_transform([inside])
    with pytest.warns(UserWarning, match=r"X\[0\].*outside of \[-pi, pi\).*wrapped"):
        turned = hmm.fit([x + 2 * np.pi])
    found = turned.transform([x + 2 * np.pi])
    assert_allclose(found.emission.locations, models.emission.locations, atol=1e-6)


def test_pi_and_missing_values_of_r_are_no_reason_to_warn(rng):
    missing = np.array([0x7FF00000000007A2], dtype=np.uint64).view(float)
    x = np.concatenate([rng.uniform(-3, 3, 60), [np.pi], missing])[:, None]
    models = HMMTransformer(2, emission=VonMises(), random_state=0).fit_transform([x])
    assert np.isfinite(models.emission.locations).all()
    assert np.isfinite(VonMises().spread([x]))


def test_states_on_both_sides_of_pi_are_averaged_at_pi():
    angles = np.array([3.0, -3.0])[:, None, None]
    concentrations = np.full((2, 1, 1), 5.0)
    models = HMMBatch.from_arrays(
        {
            "transmats": np.ones((2, 1, 1)),
            "locations": angles,
            "concentrations": concentrations,
        },
        emission=VonMises(),
    )
    average = hmm_barycenter(models, random_state=0)[0]
    assert_allclose(np.abs(average.emission.locations[0, 0, 0]), np.pi, atol=1e-9)


def test_groups_compare_angles_around_their_mean_direction():
    angles = np.array([3.0, -3.0])[:, None, None]
    states = VonMises().like(angles, np.full((2, 1, 1), 5.0))
    compared = states.compared(["turn"])["angle_turn"]
    # Both are seen from pi: 3 and 2 pi - 3, up to whole turns.
    assert_allclose(np.ptp(compared), 2 * np.pi - 6, atol=1e-12)


def test_spread_is_half_the_mean_squared_arc_of_two_frames(rng):
    x = rng.vonmises(3.0, 2.0, 400)
    arcs = np.abs(np.angle(np.exp(1j * (x[:, None] - x))))
    found = VonMises().spread([x[:, None]])
    assert_allclose(found, np.sqrt(0.5 * np.mean(arcs**2)), rtol=0.01)
