"""The experiment of the paper's section 5.1 at a small size, and where we differ.

Five two-state models that differ in one parameter make ten sequences of length 100
each; every fitted model is a query for the others of its class. The scores are mean
average precisions over three draws of everything. As in the paper, the weight alpha of
the transitions is the best one for each distance.

The paper reports, from best to worst:

- means: IAW, KL, MAW;
- covariances: KL, IAW, MAW;
- transitions: MAW and IAW above KL.

Held here: IAW is above MAW for means and covariances, KL is above both for covariances,
and MAW and IAW are above KL for transitions. Not held: KL is above IAW for means too.
A sequence of 100 frames says little about how often a state occurs, and a wrong weight
moves mass from one state to the other, which costs far more than the step between
classes. R pays for that, whether states are registered by transport or by samples,
while the likelihood hardly changes. With equal weights, the true ones, both rise to
where KL is (0.83 to 0.99 for MAW).
"""

import numpy as np
import pytest

from skawhmm import IAW, KL, MAW, HMMBatch, HMMTransformer
from skawhmm import pairwise_hmm_components as components
from skawhmm import pairwise_hmm_distances as distances
from skawhmm.datasets import make_model_sequences, make_table1_models
from skawhmm.neighbors._scores import average_precision

ALPHAS = np.linspace(0, 1, 6)
STEPS = {"means": 0.6, "covariances": 0.6, "transitions": 1.0}
SEEDS = range(3)


def fitted_models(differ_in, seed):
    family = make_table1_models(differ_in, STEPS[differ_in], random_state=seed)
    X, y = make_model_sequences(family, 10, n_timesteps=100, random_state=seed)
    hmm = HMMTransformer(2, "full", random_state=0)
    return hmm.fit_transform(X), y


def best_mixture(models, y, metric):
    marginal, transition = components(models, metric=metric)
    return [
        average_precision((1 - alpha) * marginal + alpha * transition, y).mean()
        for alpha in ALPHAS
    ]


@pytest.fixture(scope="module", params=STEPS)
def scores(request):
    """Mean average precision of every distance for one family of models."""
    maw, iaw, kl = [], [], []
    for seed in SEEDS:
        models, y = fitted_models(request.param, seed)
        maw.append(best_mixture(models, y, MAW()))
        iaw.append(best_mixture(models, y, IAW(n_samples=64)))
        kl.append(average_precision(distances(models, metric=KL(n_steps=500)), y))
    return {
        "family": request.param,
        "maw": np.mean(maw, axis=0),
        "iaw": np.mean(iaw, axis=0),
        "kl": np.mean(kl),
    }


def test_orderings_of_the_distances(scores):
    maw, iaw, kl = scores["maw"].max(), scores["iaw"].max(), scores["kl"]
    if scores["family"] == "transitions":
        assert min(maw, iaw) > kl + 0.02
    else:
        assert kl > iaw > maw + 0.005


def test_best_alpha_depends_on_what_differs(scores):
    for name in ("maw", "iaw"):
        best = ALPHAS[np.argmax(scores[name])]
        if scores["family"] == "transitions":
            assert best > 0.5
        else:
            assert best == 0


@pytest.mark.parametrize("metric", [MAW(0), IAW(0, n_samples=64)])
def test_true_weights_improve_retrieval_by_means(metric):
    fitted, true = [], []
    for seed in SEEDS:
        models, y = fitted_models("means", seed)
        weights = np.full((len(models), 2), 0.5)
        even = HMMBatch(models.transmats, models.means, models.covars, weights=weights)
        fitted.append(average_precision(distances(models, metric=metric), y).mean())
        true.append(average_precision(distances(even, metric=metric), y).mean())
    assert np.mean(true) > np.mean(fitted) + 0.1
