"""Models trained by glhmm: judged by the densities and forward pass of glhmm itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import psi

from skawhmm import as_models

library = pytest.importorskip("glhmm.glhmm", reason="make exchange installs glhmm")
auxiliary = pytest.importorskip("glhmm.auxiliary")
pytestmark = pytest.mark.filterwarnings("ignore")
KINDS = ["shareddiag", "diag", "sharedfull", "full", "identity"]


def trained(frames, covtype, model_mean="state", model_beta="no", X=None):
    model = library.glhmm(
        K=2, covtype=covtype, model_mean=model_mean, model_beta=model_beta
    )
    # glhmm draws from the global generator.
    np.random.seed(0)  # noqa: NPY002
    options = {"verbose": False, "cyc": 10}
    model.train(X=X, Y=frames, indices=np.array([[0, len(frames)]]), options=options)
    return model


def certain(model):
    """Make the distributions of parameters so narrow that their centres are exact."""
    for part in filter(None, model.Sigma):
        part["rate"] = part["rate"] * 1e13
        part["shape"] = part["shape"] * 1e13
        if "irate" in part:
            part["irate"] = part["irate"] / 1e13
    for part in model.mean or []:
        part["Sigma"] = part["Sigma"] * 0
    return model


def score(model, frames):
    """Return the log likelihood by the forward pass of glhmm."""
    logs = model.loglikelihood(None, frames)
    top = logs.max(axis=1)
    *_, scale = auxiliary.compute_alpha_beta_serial(
        np.exp(logs - top[:, None]), model.Pi, model.P
    )
    # glhmm leaves a factor of 2 out of the determinants of full matrices.
    is_full = "full" in model.hyperparameters["covtype"]
    return np.log(scale).sum() + top.sum() + is_full * frames.size * np.log(2) / 2


@pytest.mark.parametrize("model_mean", ["state", "shared", "no"])
@pytest.mark.parametrize("covtype", KINDS)
def test_trained_models_keep_their_likelihood(covtype, model_mean, frames):
    model = certain(trained(frames, covtype, model_mean))
    ours = as_models(model)
    assert ours.covariance_type == ("full" if "full" in covtype else "diag")
    assert_allclose(ours.score([frames])[0, 0], score(model, frames), rtol=1e-9)


def test_uncertainty_of_parameters_shifts_densities_by_a_constant(frames):
    model = trained(frames, "diag")
    logs = model.loglikelihood(None, frames)
    ours = as_models(model)
    for k, part in enumerate(model.Sigma):
        gaps = frames - ours.means[0, k]
        precise = -0.5 * (
            gaps**2 / ours.covars[0, k] + np.log(2 * np.pi * ours.covars[0, k])
        )
        shape, means = part["shape"], model.mean[k]["Sigma"]
        expected = psi(shape) - np.log(shape) - (np.ravel(means) / ours.covars[0, k])
        assert_allclose(logs[:, k], precise.sum(axis=1) + expected.sum() / 2)


def test_errors_of_models_that_cannot_be_read(frames):
    with pytest.raises(TypeError, match=r"models\[0\] must be a fitted model, got a g"):
        as_models([library.glhmm(K=2)])
    driven = trained(frames, "diag", model_beta="state", X=frames[:, :1])
    with pytest.raises(TypeError, match=r"model_beta='state'.*model_beta='no'"):
        as_models(driven)
