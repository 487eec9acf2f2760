"""Recordings with channels of any kind, and models whose states emit them."""

import json
import tempfile
from pathlib import Path

import numpy as np
from sklearn.base import clone

import skawhmm as sk
from fuzzing.channels import FAMILIES, WRONG_VALUES, recordings, template
from fuzzing.draw import pick
from fuzzing.judge import PROPERTY, BreachError, Trial, check_same
from fuzzing.names import FITTED, SEQUENCES, arguments_of
from fuzzing.params import shown
from fuzzing.uses import closed_figures, trimmed
from skawhmm import HMMTransformer, Trials
from skawhmm.emissions import ByChannel, Gamma, Gaussian

NAMES = FITTED | SEQUENCES | arguments_of(HMMTransformer) | {"Block", "Each column"}


def trial(rng):
    """Draw recordings with channels of any kind, and a fit or a use of models."""
    return pick(rng, [_fit, _fit, _spoilt, _uses, _uses, _options])(rng)


def _settings(rng):
    settings = {
        "n_components": int(rng.integers(1, 4)),
        "init": pick(rng, ["kmeans", "kmeans", "pooled"]),
        "prior": pick(rng, [None, None, "pooled"]),
        "topology": pick(rng, ["ergodic", "ergodic", "left-to-right"]),
        "n_init": pick(rng, [1, 1, 2]),
        "max_iter": pick(rng, [0, 1, 10, 100]),
    }
    if settings["prior"] is not None:
        del settings["init"]
    return settings


def _in_trials(rng, X):
    """Return recordings, some of them cut into trials."""
    if rng.random() < 0.6:
        return X, False
    return [Trials([x[:3], x[3:]]) for x in X], True


def _odd(rng, X, kinds):
    """Return recordings with something odd about them that fits must bear."""
    how = pick(rng, ["plain", "plain", "gaps", "constant", "short", "equal", "halves"])
    if how == "gaps" and "full gaussian" not in kinds:
        X = [np.where(rng.random(x.shape) < 0.2, np.nan, x) for x in X]
        for x in X:
            x[:2] = np.where(np.isnan(x[:2]), 1.0, x[:2])
    elif how == "constant":
        X = [np.repeat(x[:1], len(x), axis=0) for x in X]
    elif how == "short":
        X = [x[: pick(rng, [4, 5])] for x in X]
    elif how == "equal":
        X = [X[0].copy() for _ in X]
    elif how == "halves":
        X = [np.concatenate([x[:1]] * 4 + [x[1:2]] * 4) for x in X]
    return X, how


def _fit(rng):
    family, kinds = template(rng)
    # The density of zeros needs a probability of them.
    X, how = _odd(rng, recordings(rng, kinds, largest=pick(rng, [0, 0, 30])), kinds)
    settings = _settings(rng)
    hmm = HMMTransformer(**settings, emission=family, random_state=0)
    data, is_trials = _in_trials(rng, X)

    def verify(models):
        check_same(clone(hmm).fit_transform(data), models, "fitted twice")
        found, scores = models.info["log_likelihood"], np.diagonal(models.score(data))
        if not np.allclose(found, scores, rtol=1e-9, atol=1e-9):
            raise BreachError(PROPERTY, "log_likelihood differs from score")
        text = json.loads(models.to_json())
        check_same(sk.as_models(json.dumps(text)), models, "written as JSON")
        if "pooled" not in settings.values():
            alone = clone(hmm).fit_transform(data[:1])
            if isinstance(family, ByChannel) or kinds[0] == "gaussian":
                # Scales and floors are learned from all sequences.
                return
            check_same(trimmed(alone), trimmed(models[0]), "the first sequence alone")

    return Trial(
        f"fit of {kinds}, {how}, trials {is_trials}, {shown(settings)}",
        lambda: hmm.fit_transform(data),
        [X],
        NAMES,
        verify,
        must="states of these kinds emit such recordings" if how == "plain" else None,
    )


def _spoilt(rng):
    family, kinds = template(rng)
    X = recordings(rng, kinds)
    c, i = int(rng.integers(len(kinds))), int(rng.integers(len(X)))
    if rng.random() < 0.2:
        X[i][:, c], value = np.nan, np.nan
    else:
        value = pick(rng, WRONG_VALUES[kinds[c]])
        X[i][int(rng.integers(len(X[i]))), c] = value
    # Gaussian states and symbols skip a channel, or a sequence, without any value.
    may_lack = "gaussian" in kinds[c] or kinds[c] == "categorical"
    wrong = None if np.isnan(value) and may_lack else f"{value} in {kinds[c]}"
    if np.isnan(value) and kinds[c] == "poisson":
        wrong = None
    return Trial(
        f"fit of {kinds} with {value} in channel {c} of X[{i}]",
        lambda: HMMTransformer(2, emission=family, random_state=0).fit_transform(X),
        [X],
        NAMES,
        finite=False,
        wrong=wrong,
    )


def _uses(rng):
    family, kinds = template(rng)
    X = recordings(rng, kinds, n=6)
    hmm = HMMTransformer(
        int(rng.integers(1, 3)), emission=family, random_state=0, keep_sequences=True
    )
    models, y = hmm.fit_transform(X), np.arange(6) % 2
    calls = {
        "decode": lambda: models.decode(X),
        "predict_proba": lambda: models.predict_proba(X),
        "filter_proba": lambda: models.filter_proba(X),
        "surprise": lambda: models.surprise(X),
        "sample": lambda: models.sample(9, random_state=0),
        "forecast": lambda: models.forecast(X[:1], 2).sample(random_state=0),
        "updated": lambda: models.updated(X),
        "iaw": lambda: sk.pairwise_hmm_distances(models, sk.IAW(n_samples=8)),
        "kmeans": lambda: sk.HMMKMeans(2, random_state=0).fit(models).labels_,
        "kmedoids": lambda: sk.HMMKMedoids(2).fit(models).labels_,
        "barycenter": lambda: sk.hmm_barycenter(models, random_state=0)[0],
        "aligned": lambda: sk.HMMAligner(random_state=0).fit_transform(models),
        "tables": lambda: sk.groups.state_table(models),
        "effects": lambda: (
            sk.groups.state_effects(models, y, n_permutations=9, random_state=0).columns
        ),
        "groups": lambda: (
            sk.hmm_group_test(models, y, n_permutations=9, random_state=0).pvalue
        ),
        "novelty": lambda: sk.HMMNoveltyDetector(1).fit(models).predict(models),
        "neighbours": lambda: sk.KNeighborsHMMClassifier(1).fit(models, y).predict(X),
        "page": lambda: _page(models, y),
        "picture": lambda: _drawn(models),
    }
    name = pick(rng, [*calls])

    def verify(result):
        check_same(calls[name](), result, "called twice")

    return Trial(
        f"{name} of models of {kinds}",
        calls[name],
        [models, X],
        NAMES | {"models", "model", "states", "metric", "false_alarm_rate", "measures"},
        verify,
        finite=name not in {"surprise", "tables", "effects"},
    )


def _page(models, y):
    """Write the explorer, and return its length."""
    with closed_figures(), tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        display = sk.plot.HMMMapDisplay.from_models(models, y=y)
        return len(display.to_html(Path(folder) / "map.html").read_text())


def _drawn(models):
    """Draw one model, with the values of its sequence."""
    with closed_figures():
        display = sk.plot.HMMDisplay.from_model(models[0])
        display.figure_.canvas.draw()
    return len(display.axes_)


def _options(rng):
    """Draw blocks, one of which is wrong."""
    family, kinds = template(rng)
    X = recordings(rng, kinds)
    good = [*family.blocks] if isinstance(family, ByChannel) else []
    good = good or [("all", family, slice(None))]
    name, own, columns = good[-1]
    wrong_blocks = [
        *(3, None, [], "gamma", {}, [3], [("a", own)], [(name, own, "x")]),
        [*good[:-1], (3, own, columns)],
        [*good[:-1], ("a__b", own, columns)],
        [*good[:-1], (name, Gamma, columns)],
        [*good[:-1], (name, "gamma", columns)],
        [*good[:-1], (name, own, [len(kinds)])],
        [*good[:-1], (name, own, [])],
        [*good[:-1], (name, own, [0.5])],
        [*good[:-1], (name, own, None)],
        [*good[:-1], (name, Gaussian("tied"), columns)],
        [*good[:-1], (name, Gaussian("round"), columns)],
        [*good[:-1], (name, Gamma(zero_mass="yes"), columns)],
        [*good, ("again", FAMILIES["student"](), 0)],
        [*good, (name, own, columns)],
    ]
    wrong_scales = ["far", 3, {}, {"no": 1.0}, {name: 0.0}, {name: "x"}, [1.0], np.nan]
    options = {"blocks": good, "scale": None}
    key = pick(rng, ["blocks", "blocks", "scale"])
    options[key] = pick(rng, wrong_blocks if key == "blocks" else wrong_scales)
    return Trial(
        f"fit of {kinds} with {key}={options[key]!r:.80}",
        lambda: HMMTransformer(
            2, emission=ByChannel(**options), random_state=0
        ).fit_transform(X),
        [X],
        NAMES | arguments_of(ByChannel) | {"names of blocks", "zero_mass"},
        wrong=f"{key}={options[key]!r:.60}",
    )
