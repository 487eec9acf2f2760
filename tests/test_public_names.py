from importlib import import_module
from pathlib import Path

import pytest

import skawhmm

# Where each public name is documented.
HOMES = {
    "skawhmm": [
        "show_versions",
    ],
    "skawhmm.sequences": [
        "as_sequences",
        "Delays",
        "Deltas",
        "Framewise",
        "mfcc",
        "TimeChannel",
        "Trials",
        "WindowList",
        "Windows",
    ],
    "skawhmm.models": [
        "as_models",
        "Forecast",
        "HMMBatch",
        "HMMStream",
    ],
    "skawhmm.emissions": [
        "Bernoulli",
        "ByChannel",
        "Categorical",
        "Emission",
        "Gamma",
        "Gaussian",
        "NegativeBinomial",
        "Poisson",
        "SimpleEmission",
        "StudentT",
        "VonMises",
    ],
    "skawhmm.fitting": [
        "HMMTransformer",
        "MarkovChainTransformer",
    ],
    "skawhmm.distances": [
        "AggregatedDistance",
        "Distance",
        "hmm_distance",
        "IAW",
        "JAW",
        "KL",
        "LearnedDistance",
        "MAW",
        "MMD",
        "pairwise_hmm_components",
        "pairwise_hmm_distances",
        "pairwise_hmm_distances_chunked",
        "register_states",
        "RegisteringDistance",
        "TransitionCoupling",
    ],
    "skawhmm.features": [
        "AlphaMixer",
        "HMMClassDistance",
        "HMMEmbedding",
        "NGrams",
        "PairwiseHMMDistance",
    ],
    "skawhmm.neighbors": [
        "average_precision",
        "HMMNoveltyDetector",
        "HMMRetriever",
        "HMMShards",
        "KNeighborsHMMClassifier",
        "KNeighborsHMMClassifierCV",
        "KNeighborsHMMRegressor",
        "precision_at_k",
        "retrieval_auc",
        "retrieval_curve",
    ],
    "skawhmm.cluster": [
        "hmm_barycenter",
        "HMMKMeans",
        "HMMKMedoids",
    ],
    "skawhmm.classification": [
        "dynamics_gain",
        "Explanation",
        "HMMViewClassifier",
        "HMMViewRegressor",
        "make_classifier",
        "make_regressor",
        "make_views",
    ],
    "skawhmm.groups": [
        "Alignment",
        "distance_interval",
        "DistanceInterval",
        "registration_interval",
        "RegistrationInterval",
        "GroupTestResult",
        "hmm_group_test",
        "HMMAligner",
        "stability_curve",
        "StabilityCurve",
        "state_effects",
        "state_table",
        "StateEffects",
        "transition_table",
    ],
    "skawhmm.monitoring": [
        "HMMMonitor",
    ],
    "skawhmm.plot": [
        "AlphaCurveDisplay",
        "DistanceIntervalDisplay",
        "RegistrationIntervalDisplay",
        "DistanceMatrixDisplay",
        "DynamicsGainDisplay",
        "EffectsDisplay",
        "ExplanationDisplay",
        "GroupTestDisplay",
        "HMMDisplay",
        "HMMMapDisplay",
        "MedoidSequencesDisplay",
        "MonitorDisplay",
        "RegistrationDisplay",
        "RetrievalDisplay",
        "SequenceDisplay",
        "SequenceFrequencyDisplay",
        "SequenceIndexDisplay",
        "StabilityDisplay",
        "StateDistributionDisplay",
        "StateSummaryDisplay",
        "TransitionGraphDisplay",
    ],
    "skawhmm.datasets": [
        "data_home",
        "load_basic_motions",
        "load_cmu_mocap",
        "load_gene_families",
        "load_japanese_vowels",
        "load_npz",
        "load_spoken_digits",
        "load_timit",
        "load_ts",
        "load_wav_folder",
        "make_hmm_sequences",
        "make_model_sequences",
        "make_phonemes",
        "make_seed_models",
        "make_table1_models",
    ],
}
# Names of packages that can also be imported from `skawhmm`.
CORE = {
    "AlphaMixer",
    "as_models",
    "as_sequences",
    "dynamics_gain",
    "Framewise",
    "hmm_barycenter",
    "hmm_distance",
    "hmm_group_test",
    "HMMBatch",
    "HMMEmbedding",
    "HMMKMeans",
    "HMMKMedoids",
    "HMMMonitor",
    "HMMNoveltyDetector",
    "HMMRetriever",
    "HMMTransformer",
    "IAW",
    "JAW",
    "KL",
    "KNeighborsHMMClassifier",
    "KNeighborsHMMClassifierCV",
    "KNeighborsHMMRegressor",
    "make_classifier",
    "make_regressor",
    "MAW",
    "pairwise_hmm_components",
    "pairwise_hmm_distances",
    "PairwiseHMMDistance",
    "register_states",
    "show_versions",
    "TransitionCoupling",
    "Trials",
}
API = Path(__file__).parents[1] / "docs" / "api.md"


@pytest.mark.parametrize("home", [home for home in HOMES if home != "skawhmm"])
def test_packages_export_their_names_and_no_others(home):
    assert {*import_module(home).__all__} == {*HOMES[home]}


def test_top_level_exports_the_core_and_nothing_else():
    assert {*skawhmm.__all__} == CORE
    assert len(CORE) <= 32


def test_every_name_has_one_package():
    names = [name for names in HOMES.values() for name in names]
    assert len(names) == len({*names})
    for home, names in HOMES.items():
        for name in {*names} & CORE:
            assert getattr(skawhmm, name) is getattr(import_module(home), name)


def test_packages_can_be_reached_without_importing_them_first():
    for home in HOMES:
        if home != "skawhmm":
            package = getattr(skawhmm, home.split(".")[1])
            assert package is import_module(home)
            assert home.split(".")[1] in dir(skawhmm)
    with pytest.raises(AttributeError, match="has no attribute 'nowhere'"):
        skawhmm.nowhere  # noqa: B018


def test_every_name_is_listed_under_its_package():
    home, listed = "", {name: [] for name in HOMES}
    for line in API.read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            home = line.split()[-1]
        elif line.startswith("   ") and line.strip().isidentifier():
            listed[home].append(line.strip())
    assert {home: sorted(names) for home, names in listed.items()} == {
        home: sorted(names) for home, names in HOMES.items()
    }
