"""What all estimators share: one check of the input, one distance, short ways."""

import sys
from pathlib import Path

import pytest

import skawhmm
import skawhmm._estimator as module
from skawhmm import (
    HMMKMeans,
    HMMNoveltyDetector,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    PairwiseHMMDistance,
)

HOME = str(Path(skawhmm.__file__).parent)

CALLS = {
    "predict": KNeighborsHMMClassifier(3),
    "predict_proba": KNeighborsHMMClassifier(3, algorithm="pruned"),
    "kneighbors": HMMRetriever(3),
    "radius_neighbors": HMMRetriever(3),
    "pvalues": HMMNoveltyDetector(3, false_alarm_rate=0.4),
    "explain": HMMNoveltyDetector(3, false_alarm_rate=0.4),
    "transform": PairwiseHMMDistance(output="components"),
    "score": HMMKMeans(2, random_state=0),
}


def frames_above(call, name):
    """Return the number of our frames from a call to each call of a function."""
    depth, found = 0, []

    def watch(frame, event, _):
        nonlocal depth
        if not frame.f_code.co_filename.startswith(HOME):
            return
        depth += {"call": 1, "return": -1}.get(event, 0)
        if event == "call" and frame.f_code.co_name == name:
            found.append(depth)

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("algorithm", ["brute", "pruned"])
def test_predict_reaches_all_pairs_or_the_search_in_four_frames(algorithm, make_batch):
    models = make_batch(n_models=9)
    knn = KNeighborsHMMClassifier(3, algorithm=algorithm).fit(models, [0, 1, 2] * 3)
    name = {"brute": "all_pairs", "pruned": "kneighbors"}[algorithm]
    (depth,) = frames_above(lambda: knn.predict(models), name)
    assert depth <= 4


def test_fit_transform_reaches_all_pairs_in_four_frames(make_batch):
    models = make_batch(n_models=9)
    call = PairwiseHMMDistance().fit_transform
    (depth,) = frames_above(lambda: call(models), "all_pairs")
    assert depth <= 4


@pytest.mark.parametrize("method", CALLS)
def test_the_distance_is_resolved_in_fit_only(method, make_batch, monkeypatch):
    models, y = make_batch(n_models=9), [0, 1, 2] * 3
    resolved, resolve = [], module.resolve_metric

    def counted(*args, **kwargs):
        resolved.append(args or kwargs)
        return resolve(*args, **kwargs)

    monkeypatch.setattr(module, "resolve_metric", counted)
    fitted = CALLS[method].fit(models, y)
    getattr(fitted, method)(models[:3])
    assert len(resolved) == 1


def test_sequences_are_refused_where_fit_was_given_models(make_batch, make_sequences):
    X, _ = make_sequences()
    models = HMMTransformer(1).fit_transform(X)
    with pytest.raises(TypeError, match="X must be an HMMBatch, as it was in fit"):
        PairwiseHMMDistance().fit(models).transform(X)
