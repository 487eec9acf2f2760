"""States that emit angles."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import HMMTransformer
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
