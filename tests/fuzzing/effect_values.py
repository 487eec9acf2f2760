"""Values of parameters that must have an effect, and why some may have none."""

from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold

import skawhmm as sk
from fuzzing.effect_data import COSTS, HMM, OTHER, VIEW, gaps, models, swapped
from skawhmm import HMMTransformer
from skawhmm.emissions import Gaussian

HALF = np.arange(12) // 6
METRIC: dict[str, list[Any]] = {
    "metric": ["jaw", sk.IAW(n_samples=16), "coupling", sk.MAW(0.7)],
    "alpha": [0.8],
    "p": [2],
    "metric_params": [
        {"rows": "hellinger"},
        {"registration": "identity"},
        {"n_samples": 32},
        {"n_steps": 30},
        {"gamma": 0.3},
        {"order": 1},
    ],
}
MIXED: dict[str, list[Any]] = {
    "steps": ["joint", "independent"],
    "rows": ["hellinger"],
    "registration": ["identity"],
}
RIDGES: dict[str, list[Any]] = {
    "views": [[OTHER], [VIEW, ("w", sk.HMMEmbedding((3,), random_state=0))]],
    "penalties": [5.0],
    "gammas": [(0.3,), (0.0, 0.7)],
    "cv": [3, KFold(4)],
    "class_weight": [None, {0: 1, 1: 5}],
    "solver": ["primal"],
    "max_rank": [1],
}
# Valid values by parameter: for all subjects, then for single ones.
VALUES: dict[str, list[Any]] = {
    **METRIC,
    "hmm": [HMMTransformer(3, random_state=1)],
    "n_neighbors": [2],
    "weights": ["distance"],
    "radius": [0.1, 0.5, 2.0],
    "false_alarm_rate": [0.5, 0.8],
    "n_clusters": [2],
    "max_iter": [1, 2],
    "tol": [0.5, 10.0],
    "relevance": [30.0],
    "random_state": [11],
    "n_permutations": [29],
    "units": [np.arange(12) // 4 * 2 + np.arange(12) % 2],
    "strata": [HALF],
    "y_query": [HALF],
    "reference": ["medoid"],
    "emission": ["poisson", "categorical"],
}
OWN: dict[str, dict[str, list[Any]]] = {
    "HMMTransformer": {
        "n_components": [1, 3, "aic"],
        "covariance_type": ["full", "spherical", "tied"],
        "n_mix": [2],
        "topology": ["left-to-right", "linear"],
        "init": ["pooled"],
        "prior": ["pooled"],
        "emission": ["poisson", "categorical", Gaussian(reg_covar=0.5)],
        "n_init": [6],
        "weights": ["stationary", "uniform"],
        "missing": ["common"],
        "engine": ["hmmlearn", "batched"],
        "keep_sequences": [True],
    },
    "MarkovChainTransformer": {
        "symbols": ["abcd"],
        "costs": [COSTS],
        "prior": ["pooled", 0.5],
        "weights": ["stationary", "uniform"],
        "keep_sequences": [True],
    },
    "PairwiseHMMDistance": {
        "output": ["kernel", "components", "psd_kernel"],
        "gamma": [3.0],
    },
    "HMMAligner": {
        "n_components": [1],
        "max_distance": [0.1],
        "n_resamples": [3],
        "reference": ["medoid", "barycenter"],
    },
    "HMMClassDistance": {"groups": [[[0]], {"left": [1]}], "hmm": [HMMTransformer(1)]},
    "HMMEmbedding": {
        "n_components": [(1,), 3],
        "blocks": ["occupancy"],
        "reference": ["mixture"],
        "normalize": [False],
        "dtype": [np.float32],
    },
    "HMMViewClassifier": RIDGES,
    "HMMViewRegressor": RIDGES,
    "NGrams": {
        "order": [1, 3, (1, 2)],
        "lag": [2],
        "max_features": [2],
        "n_features": [4],
        "idf": [True],
        "sparse_output": [False],
    },
    "KNeighborsHMMClassifierCV": {
        "alphas": [[0.3], [0.0, 1.0]],
        "n_neighbors": [1, [5]],
        "scoring": ["balanced_accuracy", "roc_auc"],
    },
    "HMMKMeans": {"init": ["random", "k-means++", "medoids"], "n_init": [3, 10]},
    "Delays": {"n": [2]},
    "Deltas": {"order": [2], "lags": [3, (1, 2)]},
    "TimeChannel": {"scale": [2.0]},
    "Framewise": {"transformer": [PCA(1)]},
    "pairwise_hmm_distances": {
        "Y": [models(np.random.default_rng(6))],
        "dtype": ["f4"],
    },
    "pairwise_hmm_distances_chunked": {
        "Y": [models(np.random.default_rng(6))],
        "max_memory": [1e-4],
    },
    "pairwise_hmm_components": {"Y": [models(np.random.default_rng(6))]},
    "hmm_group_test": {
        "statistic": ["energy"],
        "covariates": [np.arange(12.0) ** 2],
        "hmm": [HMMTransformer(1, random_state=0)],
        "refit": [True],
        "match": ["frames"],
    },
    "state_effects": {
        "reference": ["medoid", None, swapped(models(np.random.default_rng(6))[0])],
        "measures": ["occupancy"],
        "confidence": [0.5],
    },
    "distance_interval": {
        "c": [models(np.random.default_rng(6))[0]],
        "n_timesteps": [50],
        "method": ["block", "parametric"],
        "block_length": [2],
        "n_resamples": [5],
        "confidence": [0.5],
    },
    "registration_interval": {
        "n_timesteps": [50],
        "method": ["block", "parametric"],
        "block_length": [2],
        "n_resamples": [5],
        "confidence": [0.5],
    },
    "stability_curve": {"n_components": [(2, 3)], "hmm": [HMMTransformer(max_iter=2)]},
    "dynamics_gain": {
        "groups": [np.arange(12) // 2],
        "estimator": [sk.KNeighborsHMMClassifier(1, hmm=HMM)],
        "n_permutations": [2],
        "cv": [3],
        "scoring": ["neg_log_loss"],
    },
    "hmm_barycenter": {
        "sample_weight": [np.arange(1.0, 13.0)],
        "n_components": [1, 3],
        "update_weights": [False],
        "registration": ["identity", "transport"],
    },
    "MAW": MIXED,
    "JAW": MIXED,
    "IAW": {
        **MIXED,
        "n_samples": [32],
        "sampling": ["iid"],
        "coupling": ["sinkhorn"],
        "debias": [True],
    },
    "KL": {
        "method": ["variational", "data"],
        "n_steps": [40],
        "symmetric": [False],
        "cap": [0.3],
        "random_state": [3],
    },
    "TransitionCoupling": {"gamma": [0.3]},
    "MMD": {"order": [1], "bandwidth": [0.5]},
    "as_sequences": {
        "unit": ["label"],
        "id": ["id"],
        "time": ["t"],
        "channels": ["x", ["z", "x"]],
        "labels": ["label"],
        "lengths": [[100, 200]],
        "every": [2],
        "layout": ["channels_first"],
    },
    "mfcc": {
        "n_coefficients": [5],
        "window": [0.1],
        "hop": [0.05],
        "n_filters": [20],
        "preemphasis": [0.5],
        "deltas": [1],
    },
    "precision_at_k": {"n_retrieved": [2]},
    "retrieval_curve": {"n_levels": [5]},
    "make_classifier": {
        "emission": ["categorical"],
        "distances": [True],
        "cv": [2],
        "class_weight": [{0: 1, 1: 9}],
    },
    "make_regressor": {"emission": ["categorical"], "distances": [True], "cv": [2]},
    "make_views": {"emission": ["categorical"], "distances": [True]},
}

WORK = "changes how the work is done, never the result"
# Parameters that may change nothing in any call, with the reason.
SILENT = {
    "n_jobs": WORK,
    "verbose": WORK,
    "algorithm": "the neighbours are the same by any algorithm",
    "out": "the result is the same wherever it is put",
    "random_state": "a seed is harmless where nothing is drawn",
    "min_recall": "among few models an approximate search finds all neighbours",
}


def silence(subject, name, context):
    """Return why a parameter may have no effect in a context, or None."""
    params = context.params
    if (subject, name) == ("HMMTransformer", "init") and params.get("prior"):
        return "a prior is what the fits start from, too"
    if name == "missing" and context.data is not gaps and "emission" not in params:
        return "every channel has values"
    if (subject, name) == ("HMMKMeans", "n_init") and "init" not in params:
        return "few models have the same medoids in every run"
    by_number = {"registration": "identity"}
    if subject == "register_states" and params.get("metric_params") == by_number:
        return "states are registered by index, whatever the distance"
    if name == "max_rank" and "solver" not in params:
        return "the default solver reads it from 3001 sequences on"
    return SILENT.get(name)


# Arguments that an error may name instead: data that do not suit the value.
INSTEAD = {"emission": ("X",), "hmm": ("X",), "metric": ("IAW", "metric_params")}


def values_of(subject, name):
    """Return values of a parameter of a subject."""
    return OWN.get(subject, {}).get(name, VALUES.get(name, []))
