"""Common mistakes of new users, and what each message has to say.

Every entry of the table names what was expected, what came instead, and what to do
about it; where the expectation says what is allowed, it is what to do.
"""

import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from skawhmm import (
    KL,
    MAW,
    AlphaMixer,
    Framewise,
    HMMBatch,
    HMMKMeans,
    HMMMonitor,
    HMMNoveltyDetector,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    KNeighborsHMMClassifierCV,
    KNeighborsHMMRegressor,
    PairwiseHMMDistance,
    Trials,
    as_models,
    as_sequences,
    dynamics_gain,
    hmm_barycenter,
    hmm_distance,
    hmm_group_test,
    make_classifier,
    make_regressor,
    pairwise_hmm_components,
    pairwise_hmm_distances,
    register_states,
)
from skawhmm.datasets import (
    load_japanese_vowels,
    load_npz,
    load_wav_folder,
    make_hmm_sequences,
)
from skawhmm.emissions import ByChannel, Gaussian
from skawhmm.features import HMMClassDistance, NGrams
from skawhmm.fitting import MarkovChainTransformer
from skawhmm.groups import distance_interval, state_effects, state_table
from skawhmm.neighbors import average_precision
from skawhmm.plot import (
    AlphaCurveDisplay,
    DistanceMatrixDisplay,
    EffectsDisplay,
    ExplanationDisplay,
    GroupTestDisplay,
    HMMDisplay,
    HMMMapDisplay,
    SequenceDisplay,
    SequenceIndexDisplay,
)
from skawhmm.sequences import Deltas, Windows, mfcc

HALF = [[0.5, 0.5], [0.5, 0.5]]
WORDS = ["abab", "bcbc", "abcabc"]


def table_of(name):
    """Return a table with a column of some name."""
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({name: np.arange(8.0), "other": np.arange(8.0)})


class Mistake(NamedTuple):
    """A mistake, as a function of some data, and parts of the message."""

    do: Callable
    error: type[Exception]
    expected: str
    came: str
    remedy: str


def transformer(**params):
    return HMMTransformer(**{"n_components": 2, "random_state": 0, **params})


def neighbors(**params):
    return KNeighborsHMMClassifier(**{"n_neighbors": 1, "hmm": transformer(), **params})


def given_distances(**params):
    return KNeighborsHMMClassifier(1, metric="precomputed", **params)


def changed(x, value):
    x = x.copy()
    x[3, 1] = value
    return x


def wrongly_read(path, content):
    path.write_bytes(content)
    return HMMBatch.load(path)


def gaussian_hmm():
    return pytest.importorskip("hmmlearn.hmm").GaussianHMM(2)


def fitted_hmm(d):
    model = gaussian_hmm()
    model.startprob_, model.transmat_ = np.full(2, 0.5), np.array(HALF)
    model.means_, model.covars_ = np.eye(2, 3), np.ones((2, 3))
    return model


def frame(**columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def written_twice(d):
    pairwise_hmm_distances(d.models, out=d.folder / "distances.npy")
    pairwise_hmm_distances(d.models, alpha=0.7, out=d.folder / "distances.npy")


MISTAKES = {
    # What users did on a second try: speech, brains, tables, life courses, wearables.
    "labels of frames": Mistake(
        lambda d: neighbors().fit(d.X, [np.zeros(len(x)) for x in d.X]),
        *(ValueError, "y must hold one label per entry of X", "values at 0", "frames"),
    ),
    "classes before sequences": Mistake(
        lambda d: neighbors().fit(d.y, d.X),
        *(ValueError, "y must hold one label per entry of X", "values at 0", "frames"),
    ),
    "a parameter of the name of a distance": Mistake(
        lambda d: neighbors(metric="maw").set_params(metric__alpha=0.5),
        *(ValueError, "metric__alpha sets a parameter", "metric='maw'", "MAW()"),
    ),
    "a batch as groups": Mistake(
        lambda d: hmm_group_test(d.models, d.models),
        *(TypeError, "groups must hold one entry per model", "got an HMMBatch"),
        "HMMBatch.concatenate",
    ),
    "a measurement as groups": Mistake(
        lambda d: state_effects(d.models, np.linspace(20, 70, len(d.models))),
        *(ValueError, "groups must hold labels of groups", "different numbers"),
        "covariates",
    ),
    "an estimator as groups": Mistake(
        lambda d: dynamics_gain(d.X, d.y, neighbors()),
        *(TypeError, "groups must hold one label per sequence"),
        *("got a KNeighborsHMMClassifier", "groups"),
    ),
    "a step of sequences in place of a transformer of rows": Mistake(
        lambda d: Framewise(Deltas()).fit(d.X),
        *(TypeError, "transformer must transform rows", "got Deltas()"),
        "a step of the pipeline",
    ),
    "a figure in place of axes": Mistake(
        lambda d: DistanceMatrixDisplay.from_distances(
            d.distances, ax=pytest.importorskip("matplotlib.figure").Figure()
        ),
        *(TypeError, "ax must hold matplotlib axes", "got Figure", "plt.subplots()"),
    ),
    "the name of a place in place of axes": Mistake(
        lambda d: HMMDisplay.from_model(d.models[0], ax="left"),
        *(TypeError, "ax must hold matplotlib axes", "got str", "plt.subplots()"),
    ),
    "an explanation of novelty": Mistake(
        lambda d: ExplanationDisplay.from_estimator(HMMNoveltyDetector(), d.X),
        *(TypeError, "estimator must be a fitted HMMViewClassifier"),
        *("got HMMNoveltyDetector", "make_classifier()"),
    ),
    "several sequences in the display of one": Mistake(
        lambda d: SequenceDisplay.from_model(d.models[0], d.X),
        *(TypeError, "sequence must be a single recording", "got a list of"),
        "Pass one of them",
    ),
    "a page with the name of a picture": Mistake(
        lambda d: HMMMapDisplay.from_models(d.models).to_html(d.folder / "map.png"),
        *(ValueError, "path must name a page", "map.png", "savefig"),
    ),
    "a title that is a number": Mistake(
        lambda d: HMMMapDisplay.from_models(d.models).to_html(
            d.folder / "map.html", title=2024
        ),
        *(TypeError, "title must be a text", "got 2024", "title"),
    ),
    "distances with the name of a table": Mistake(
        lambda d: pairwise_hmm_distances(d.models, out=d.folder / "distances.csv"),
        *(ValueError, "out must name a file of one array", "distances.csv"),
        "matrix.npy",
    ),
    "arrays in place of a file of sequences": Mistake(
        lambda d: load_npz({"X": d.X}),
        *(TypeError, "path must be the name of a file", "got dict", "path"),
    ),
    "no folder of sounds": Mistake(
        lambda d: load_wav_folder(None),
        *(TypeError, "path must be the name of a file", "got NoneType", "path"),
    ),
    "a grouped table": Mistake(
        lambda d: as_sequences(table_of("run").groupby("run")),
        *(TypeError, "data must be a table", "got a DataFrameGroupBy", "as id"),
    ),
    "a list of batches to compare": Mistake(
        lambda d: pairwise_hmm_distances([*d.models]),
        *(TypeError, "X must be an HMMBatch", "got list", "HMMBatch.concatenate(X)"),
    ),
    "components as a tuple": Mistake(
        lambda d: given_distances().fit(pairwise_hmm_components(d.models), d.y),
        *(TypeError, "needs X to be one array", "got a tuple of 2", "np.stack"),
    ),
    "a list of batches to learn from": Mistake(
        lambda d: given_distances().set_params(metric="maw").fit([*d.models], d.y),
        *(TypeError, "is not an array of numbers", "A batch of models"),
        "HMMBatch.concatenate",
    ),
    # Sequences in a form that cannot be read.
    "one univariate sequence": Mistake(
        lambda d: transformer().fit(d.X[0][:, 0]),
        *(ValueError, "X must be a list of arrays", "got a 1D array", "[X]"),
    ),
    "a list of numbers": Mistake(
        lambda d: transformer().fit([0.5, 1.5, 2.0]),
        *(ValueError, "must have shape (n_timesteps, n_features)", "got ()", "[X]"),
    ),
    "one recording as a matrix": Mistake(
        lambda d: transformer().fit(np.tile(d.X[0], (10, 1))),
        *(UserWarning, "If it is one recording", "as 300 univariate", "write [X]"),
    ),
    "channels before time": Mistake(
        lambda d: transformer().fit([x.T for x in d.X]),
        ValueError,
        "All sequences in X must have the same number of features",
        "got [30, 31",
        'as_sequences(X, layout="channels_first")',
    ),
    "channels before time, equal lengths": Mistake(
        lambda d: transformer().fit([x[:30].T for x in d.X]),
        UserWarning,
        "If channels come before time",
        "8 sequences of 3 timesteps with 30 features",
        'as_sequences(X, layout="channels_first")',
    ),
    "four axes": Mistake(
        lambda d: transformer().fit(np.zeros((2, 3, 4, 5))),
        ValueError,
        "X must be a list of arrays",
        "got shape (2, 3, 4, 5)",
        "or an array of shape (n_sequences, n_timesteps, n_features)",
    ),
    "recordings of a unit without Trials": Mistake(
        lambda d: transformer().fit([[d.X[0], d.X[1]], [d.X[2]]]),
        ValueError,
        "X[0] must be an array of numbers of shape (n_timesteps, n_features)",
        "got rows of different sizes",
        "Trials(X[0])",
    ),
    "equally long recordings of a unit without Trials": Mistake(
        lambda d: transformer().fit([[d.X[0][:9], d.X[1][:9]], [d.X[2]]]),
        ValueError,
        "X[0] must have shape (n_timesteps, n_features)",
        "got (2, 9, 3)",
        "Trials(X[0])",
    ),
    "Trials of a single recording without a list": Mistake(
        lambda d: Trials(d.X[0]),
        *(TypeError, "recordings must be a list", "got an array", "Trials([x])"),
    ),
    "Trials without recordings": Mistake(
        lambda d: transformer().fit([Trials(d.X), Trials([])]),
        *(ValueError, "at least 1 recording", "got empty Trials", "X[1]"),
    ),
    "a trial without frames": Mistake(
        lambda d: transformer().fit([Trials([d.X[0], np.empty((0, 3))])]),
        *(ValueError, "at least 1 timestep", "got none", "trial 1 of X[0]"),
    ),
    "trials of different channels": Mistake(
        lambda d: transformer().fit([Trials(d.X), Trials([d.X[0], d.X[1][:, :2]])]),
        ValueError,
        "All sequences in X must have the same number of features",
        "got [2, 3]",
        "trial 1 of X[1]",
    ),
    "a unit without a transition": Mistake(
        lambda d: transformer().fit([Trials(d.X), Trials([x[:1] for x in d.X])]),
        *(ValueError, "a trial of at least 2 frames", "got 8 trials of 1", "X[1]"),
    ),
    "Trials without a list of units": Mistake(
        lambda d: transformer().fit(Trials(d.X)),
        *(TypeError, "must be a list of units", "got Trials of 8", "given as [X]"),
    ),
    "Trials in Trials": Mistake(
        lambda d: Trials([Trials(d.X)]),
        *(TypeError, "recordings must be arrays", "got Trials", "among them"),
    ),
    "a label per trial": Mistake(
        lambda d: make_classifier().fit([Trials(d.X[:4]), Trials(d.X[4:])], d.y),
        *(ValueError, "one value per entry", "got 8 values", "2 entries"),
    ),
    "windows longer than a recording": Mistake(
        lambda d: Windows(50).fit_transform(d.X),
        *(ValueError, "length must be at most", "got 50", "X[0] with 30"),
    ),
    "a monitor of short recordings": Mistake(
        lambda d: HMMMonitor().fit(d.X),
        *(ValueError, "length must be at most", "got 200", "X[0] with 30"),
    ),
    "families of channels without their columns": Mistake(
        lambda d: transformer(emission=ByChannel(["gaussian", "gamma"])).fit(d.X),
        *(TypeError, "a tuple", "got 'gaussian'", "(name, family, columns)"),
    ),
    "the name of a family of channels": Mistake(
        lambda d: transformer(emission=ByChannel([("a", "gaussian", [0])])).fit(d.X),
        *(TypeError, "a family of states", "got 'gaussian'", "Gaussian()"),
    ),
    "a channel without a family": Mistake(
        lambda d: transformer(emission=ByChannel([("a", Gaussian(), [0])])).fit(d.X),
        *(ValueError, "Each column must be in a block", "[1, 2] of 3", "Leave them"),
    ),
    "channels by names that sequences lack": Mistake(
        lambda d: transformer(emission=ByChannel([("a", Gaussian(), ["speed"])])).fit(
            d.X
        ),
        *(ValueError, "needs sequences with names", "['speed']", "data frames"),
    ),
    "negative numbers for gamma": Mistake(
        lambda d: transformer(emission="gamma").fit(d.X),
        *(ValueError, "must not hold negative", "got -", "'gamma'"),
    ),
    "sequences to exchange": Mistake(
        lambda d: as_models(d.X),
        *(TypeError, "a fitted model", "got ndarray", "HMMBatch.from_arrays"),
    ),
    "symbols and an age in a wide table": Mistake(
        lambda d: as_sequences(frame(y1=["S", "W"], y2=["W", "W"], age=[30, 41])),
        *(ValueError, "must hold numbers", "got strings", "channels=['y1', 'y2']"),
    ),
    "symbols that are missing in a visible chain": Mistake(
        lambda d: MarkovChainTransformer().fit([["a", np.nan, "b"], ["a", "b"]]),
        *(ValueError, "without NaN", "got 1 NaN", "X[0]"),
    ),
    "numbers in an index plot": Mistake(
        lambda d: SequenceIndexDisplay.from_sequences(d.X),
        *(ValueError, "a sequence of symbols", "got shape (30, 3)", "(n_timesteps,)"),
    ),
    "too few groups in an index plot": Mistake(
        lambda d: SequenceIndexDisplay.from_sequences(WORDS, ["a"]),
        *(ValueError, "one label per sequence", "got shape (1,)", "3 sequences"),
    ),
    "a step of dates as a number": Mistake(
        lambda d: as_sequences(
            frame(
                who=[1, 1], t=pd.to_datetime(["2020-01-01", "2020-01-02"]), x=[1.0, 2]
            ),
            id="who",
            time="t",
            every=1,
        ),
        *(TypeError, "a timedelta", "got 1", "pandas.Timedelta"),
    ),
    "a spell that ends before it begins": Mistake(
        lambda d: as_sequences(
            frame(who=[1], a=[5], b=[3], s=["A"]), id="who", time=("a", "b")
        ),
        *(ValueError, "must not end before it begins", "a=5 and b=3", "row 0"),
    ),
    "a distance in capitals": Mistake(
        lambda d: pairwise_hmm_distances(d.models, metric="MAW"),
        *(ValueError, "metric must be one of", "got 'MAW'", "Did you mean 'maw'"),
    ),
    "a level of explanations": Mistake(
        lambda d: (
            make_classifier(random_state=0).fit(d.X, d.y).explain(d.X, by="channels")
        ),
        *(ValueError, "by must be one of", "'channels'", "Did you mean 'channel'"),
    ),
    "groups that were not compared": Mistake(
        lambda d: EffectsDisplay.from_effects(
            state_effects(d.models, d.y, n_permutations=99, random_state=0), ("0", "9")
        ),
        *(ValueError, "groups must be one of the pairs", "('0', '9')", "('0', '1')"),
    ),
    "units without a column of trials": Mistake(
        lambda d: as_sequences(frame(who=[1, 1, 2], x=[0.5, 1, 2]), unit="who"),
        *(ValueError, "id must name", "got None", "the column of the trials"),
    ),
    "lengths that do not add up": Mistake(
        lambda d: as_sequences(d.X[0], lengths=[3, 4], unit=[0, 1]),
        *(ValueError, "lengths must sum to", "got the sum 7", "frames of data"),
    ),
    "no sequences": Mistake(
        lambda d: transformer().fit([]),
        *(ValueError, "at least one sequence", "got none", "X must hold"),
    ),
    "an empty sequence": Mistake(
        lambda d: transformer().fit([d.X[0], np.empty((0, 3))]),
        *(ValueError, "at least 1 timestep", "got none", "X[1]"),
    ),
    "nothing": Mistake(
        lambda d: transformer().fit(None),
        *(TypeError, "must be a list of sequences", "got None", "X must be a list"),
    ),
    "the name of a file": Mistake(
        lambda d: transformer().fit("recordings.csv"),
        TypeError,
        "X must be a list of sequences",
        "got a single str",
        "files are not read",
    ),
    "a dictionary": Mistake(
        lambda d: transformer().fit({"a": d.X[0], "b": d.X[1]}),
        *(TypeError, "a list of arrays", "got a dict", "X, ids = as_sequences(X)"),
    ),
    "a generator": Mistake(
        lambda d: transformer().fit(x for x in d.X),
        *(TypeError, "a list of arrays", "got a generator", "X = list(X)"),
    ),
    "a long table": Mistake(
        lambda d: transformer().fit(frame(id=[1, 1, 2], t=[0, 1, 0], x=[0.5, 1, 2])),
        TypeError,
        "X must be a list of arrays or an array",
        "got a table (pandas DataFrame of 3 rows and 3 columns)",
        "as_sequences(X, id='id', time='t')",
    ),
    "a missing column": Mistake(
        lambda d: as_sequences(frame(who=[1, 1, 2], x=[0.5, 1, 2]), id="subject"),
        *(ValueError, "id must name a column", "got 'subject'", "one of ['who', 'x']"),
    ),
    "lengths as in hmmlearn": Mistake(
        lambda d: transformer().fit(np.concatenate(d.X), [len(x) for x in d.X]),
        ValueError,
        "y must hold one label per sequence",
        "got 8 integers that sum to the",
        "as_sequences(X, lengths=y)",
    ),
    "texts for the classifier of frames": Mistake(
        lambda d: make_classifier().fit(["abab", "bcbc"] * 4, d.y),
        ValueError,
        "must be an array of numbers",
        "got strings",
        'make_classifier("categorical")',
    ),
    "numbers as strings in a table": Mistake(
        lambda d: as_sequences(
            frame(who=[1, 1, 2, 2], x=["1.5", "2", "3", "4"], z=[1.0, 2, 3, 4]),
            id="who",
        ),
        *(ValueError, "'x' must hold numbers", "got strings", "pandas.to_numeric"),
    ),
    "symbols and numbers in a sequence": Mistake(
        lambda d: transformer(emission="categorical").fit([["a", 2, "b"]]),
        *(ValueError, "strings or integers", "such as 2", "Missing symbols are None"),
    ),
    "columns that describe sequences": Mistake(
        lambda d: as_sequences(
            frame(who=[1, 1, 2, 2], age=[30, 30, 41, 41], x=[1.0, 2, 3, 4]), id="who"
        ),
        *(UserWarning, "describe sequences, not frames", "['age']", "channels=['x']"),
    ),
    "a step in a wrong unit": Mistake(
        lambda d: as_sequences(
            frame(who=[1, 1], t=[0.0, 1e6], x=[1.0, 2.0]), id="who", time="t", every=1
        ),
        *(ValueError, "time between rows", "1e+06 frames of 2", "unit of the column"),
    ),
    "spells that overlap": Mistake(
        lambda d: as_sequences(
            frame(who=[1, 1], a=[1, 3], b=[3, 5], s=["A", "B"]),
            id="who",
            time=("a", "b"),
        ),
        *(ValueError, "must not repeat a time", "got 3 twice", "argument id"),
    ),
    "texts that are not spells": Mistake(
        lambda d: as_sequences(["A-A-B"], layout="sps"),
        *(ValueError, '"(A,3)-(B,2)"', "got 'A-A-B' at 0", "layout='sps'"),
    ),
    "a parameter of a transformer that is None": Mistake(
        lambda d: KNeighborsHMMClassifier().set_params(hmm__n_components=4),
        ValueError,
        "must be a transformer",
        "got hmm=None",
        "hmm=HMMTransformer(n_components=4)",
    ),
    "the curve of alpha of another classifier": Mistake(
        lambda d: AlphaCurveDisplay.from_estimator(neighbors().fit(d.X, d.y)),
        TypeError,
        "a fitted KNeighborsHMMClassifierCV",
        "got KNeighborsHMMClassifier",
        "AlphaCurveDisplay(alphas, scores",
    ),
    "a folder that does not exist": Mistake(
        lambda d: load_wav_folder(d.folder / "sounds"),
        *(
            FileNotFoundError,
            "path must be an existing path",
            "none of:",
            "a folder or",
        ),
    ),
    "a single group of models to leave out": Mistake(
        lambda d: KNeighborsHMMClassifierCV().fit(d.models, d.y, groups=["ann"] * 8),
        *(ValueError, "groups must name", "got only 'ann'", "at least 2 groups"),
    ),
    "texts as numbers": Mistake(
        lambda d: transformer().fit(WORDS),
        *(TypeError, "must be an array of numbers", "got a text", '"categorical"'),
    ),
    "strings in an array": Mistake(
        lambda d: transformer().fit([np.array(["1.0", "x"])]),
        *(ValueError, "must be an array of numbers", "got strings", '"categorical"'),
    ),
    "rows of unequal size": Mistake(
        lambda d: transformer().fit([[[1.0, 2.0], [3.0]], [[1.0, 2.0]]]),
        ValueError,
        "must be an array of numbers",
        "got rows of different sizes [1, 2]",
        "of shape (n_timesteps, n_features)",
    ),
    "a sparse matrix": Mistake(
        lambda d: transformer().fit(sparse.csr_array(d.X[0])),
        *(TypeError, "dense sequences are required", "Sparse data", "X.toarray()"),
    ),
    "an infinite value": Mistake(
        lambda d: transformer().fit([changed(d.X[0], np.inf)]),
        *(ValueError, "X[0] must not contain", "infinity", "use NaN for values not"),
    ),
    "a sequence of NaN": Mistake(
        lambda d: transformer().fit([d.X[0], np.full((5, 3), np.nan)]),
        *(ValueError, "at least 1 observed value", "got only NaN", "X[1]"),
    ),
    "models as sequences": Mistake(
        lambda d: transformer().fit(d.models),
        *(TypeError, "X must hold sequences", "got an HMMBatch", "HMMRetriever"),
    ),
    "hmmlearn models as sequences": Mistake(
        lambda d: neighbors().fit([fitted_hmm(d), fitted_hmm(d)], [0, 1]),
        TypeError,
        "X[0] must be an array of numbers",
        "got a GaussianHMM",
        "as_models(X)",
    ),
    "hmmlearn models as models": Mistake(
        lambda d: pairwise_hmm_distances([fitted_hmm(d), fitted_hmm(d)]),
        *(TypeError, "X must be an HMMBatch", "got list", "as_models(X)"),
    ),
    "an unfitted hmmlearn model": Mistake(
        lambda d: as_models([gaussian_hmm()]),
        TypeError,
        "models[0] must be a fitted model",
        "got a GaussianHMM that is not fitted",
        "call its fit first",
    ),
    "an estimator as a model": Mistake(
        lambda d: as_models([neighbors()]),
        TypeError,
        "models[0] must be a fitted model of hmmlearn, dynamax",
        "got KNeighborsHMMClassifier",
        "HMMBatch.from_arrays takes the arrays of any model",
    ),
    "foreign models of two kinds": Mistake(
        lambda d: as_models(
            [
                {"transmat": [[1.0]], "means": [[0.0]], "covars": [[1.0]]},
                {"transmat": [[1.0]], "rates": [[1.0]]},
            ]
        ),
        TypeError,
        "All models must have one kind of states",
        "got gaussian in model 0",
        "poisson in model 1",
    ),
    "a table of models": Mistake(
        lambda d: as_models("models.csv"),
        ValueError,
        "models must name a file of a known kind",
        "got 'models.csv'",
        "one of ['.npz', '.json', '.mat', '.txt']",
    ),
    "sequences as models": Mistake(
        lambda d: pairwise_hmm_distances(d.X),
        *(TypeError, "X must be an HMMBatch", "got list", "HMMTransformer makes one"),
    ),
    "sequences to average": Mistake(
        lambda d: hmm_barycenter(d.X),
        *(TypeError, "models must be an HMMBatch", "got list", "HMMTransformer makes"),
    ),
    "a batch instead of one model": Mistake(
        lambda d: hmm_distance(d.models, d.models),
        *(ValueError, "a must hold one model", "got 8", "models[i] takes one out"),
    ),
    "models for a scikit-learn classifier": Mistake(
        lambda d: SVC().fit(d.models, d.y),
        TypeError,
        "an array of numbers",
        "A batch of models is not",
        "Turn it into distances first, for example with PairwiseHMMDistance",
    ),
    "sequences after models": Mistake(
        lambda d: KNeighborsHMMClassifier(1).fit(d.models, d.y).predict(d.X),
        TypeError,
        "X must be an HMMBatch",
        "got sequences",
        "pass sequences to fit",
    ),
    # Estimators that have not seen data.
    "transform before fit": Mistake(
        lambda d: transformer().transform(d.X),
        *(NotFittedError, "HMMTransformer", "is not fitted yet", "Call 'fit'"),
    ),
    "predict before fit": Mistake(
        lambda d: make_classifier().predict(d.X),
        *(NotFittedError, "HMMViewClassifier", "is not fitted yet", "Call 'fit'"),
    ),
    # Parameters.
    "alpha above 1": Mistake(
        lambda d: hmm_distance(d.models[0], d.models[1], alpha=1.5),
        *(ValueError, "alpha must be a number", "got 1.5", "in [0, 1]"),
    ),
    "alpha as a percentage": Mistake(
        lambda d: neighbors(alpha="50%").fit(d.models, d.y),
        *(TypeError, "alpha must be a number", "got '50%'", "in [0, 1]"),
    ),
    "order zero": Mistake(
        lambda d: pairwise_hmm_distances(d.models, p=0),
        *(ValueError, "p must be a number", "got 0", "in (0, 2]"),
    ),
    "no states": Mistake(
        lambda d: transformer(n_components=0).fit(d.X),
        *(ValueError, "n_components must be an integer", "got 0", "of at least 1"),
    ),
    "automatic number of states": Mistake(
        lambda d: transformer(n_components="auto").fit(d.X),
        *(ValueError, "n_components must be an integer", "got 'auto'", "'bic'"),
    ),
    "more neighbours than models": Mistake(
        lambda d: HMMRetriever().fit(d.models).kneighbors(d.models, n_neighbors=9),
        ValueError,
        "n_neighbors must be at most",
        "got n_neighbors = 9",
        "n_samples = 8",
    ),
    "more clusters than models": Mistake(
        lambda d: HMMKMeans(n_clusters=20).fit(d.models),
        *(ValueError, "n_clusters must be at most", "n_clusters=20", "n_samples=8"),
    ),
    "an unknown distance": Mistake(
        lambda d: pairwise_hmm_distances(d.models, metric="wasserstein"),
        *(ValueError, "metric must be one of", "got 'wasserstein'", "'maw', 'iaw'"),
    ),
    "a class as a distance": Mistake(
        lambda d: pairwise_hmm_distances(d.models, metric=MAW),
        *(TypeError, "metric must be one of", "got <class", "Write metric=MAW()"),
    ),
    "the name of a distance in capitals": Mistake(
        lambda d: pairwise_hmm_distances(d.models, metric="MAW"),
        *(ValueError, "metric must be one of 'maw'", "got 'MAW'", "mean 'maw'?"),
    ),
    "a parameter of a distance set to a wrong value": Mistake(
        lambda d: pairwise_hmm_distances(d.models, metric=MAW().set_params(alpha=2)),
        *(ValueError, "alpha must be a number in [0, 1]", "got 2", "in [0, 1]"),
    ),
    "registrations of a distance without": Mistake(
        lambda d: register_states(d.models[0], d.models[1], metric=KL()),
        *(TypeError, "metric must register states", "got KL()", "'maw', 'iaw'"),
    ),
    "a function as a distance": Mistake(
        lambda d: pairwise_hmm_distances(d.models, metric=lambda a, b: 1.0),
        TypeError,
        "an object with symmetric, prepare and distances",
        "got <function",
        "documentation of Distance shows how",
    ),
    "a parameter of another distance": Mistake(
        lambda d: pairwise_hmm_distances(d.models, metric_params={"gamma": 0.5}),
        *(ValueError, "metric_params of 'maw' may be", "got ['gamma']", "'steps'"),
    ),
    "components of a distance without components": Mistake(
        lambda d: pairwise_hmm_components(d.models, metric="kl"),
        *(TypeError, "a marginal and a transition component", "got 'kl'", "'jaw'"),
    ),
    "an unknown topology": Mistake(
        lambda d: transformer(topology="left_right").fit(d.X),
        *(ValueError, "topology must be one of", "got 'left_right'", "'left-to-right'"),
    ),
    "an unknown type of covariance": Mistake(
        lambda d: transformer(covariance_type="diagonal").fit(d.X),
        *(ValueError, "covariance_type must be one of", "got 'diagonal'", "'diag'"),
    ),
    "an unknown kind of states": Mistake(
        lambda d: transformer(emission="normal").fit(d.X),
        *(ValueError, "emission must be one of", "got 'normal'", "'gaussian'"),
    ),
    "a parameter without the name of its step": Mistake(
        lambda d: GridSearchCV(
            make_pipeline(transformer(), neighbors()), {"alpha": [0, 0.5]}, cv=2
        ).fit(d.X, d.y),
        *(ValueError, "Valid parameters are", "Invalid parameter 'alpha'", "steps"),
    ),
    "a class as a step": Mistake(
        lambda d: Framewise(StandardScaler).fit(d.X),
        *(TypeError, "transformer must be", "got <class", "such as StandardScaler()"),
    ),
    "differences of order zero": Mistake(
        lambda d: Deltas(order=0).fit(d.X),
        *(ValueError, "order must be an integer", "got 0", "of at least 1"),
    ),
    "a stereo signal": Mistake(
        lambda d: mfcc(np.ones((100, 2)), 16000),
        *(ValueError, "one-dimensional", "array of shape (100, 2)", "one channel"),
    ),
    "a signal as a list of integers": Mistake(
        lambda d: mfcc([*range(-500, 500)], 16000),
        *(ValueError, "signal must be floats", "got int64", "Divide by the largest"),
    ),
    "a signal beyond any range": Mistake(
        lambda d: mfcc(np.full(900, 1e155), 16000),
        *(ValueError, "signal must be finite", "got 1e+155", "of size at most 1e+100"),
    ),
    "a step that drops frames": Mistake(
        lambda d: Framewise(FunctionTransformer(lambda x: x[1:])).fit_transform(d.X),
        *(ValueError, "transformer must return", "got shape", "one row per frame"),
    ),
    "symbols that are long numbers": Mistake(
        lambda d: NGrams().fit([[2**60, 2**60 + 1]]),
        *(ValueError, "integers of size below 2**53", "got 1.15", "as strings"),
    ),
    "a huge count": Mistake(
        lambda d: transformer(n_init=10**400).fit(d.X),
        *(ValueError, "n_init must be an integer", "got 1000", "below 2**63"),
    ),
    # Labels and groups.
    "labels of two types": Mistake(
        lambda d: average_precision(d.distances, d.y, [*map(str, d.y)]),
        *(ValueError, "y_query must hold labels", "got <U1 and", "of the type of"),
    ),
    "too few labels": Mistake(
        lambda d: KNeighborsHMMClassifier(1).fit(d.models, d.y[:-1]),
        *(ValueError, "y must hold one value per entry of X", "got 7", "8 entries"),
    ),
    "no labels": Mistake(
        lambda d: HMMClassDistance().fit(d.X, None),
        *(ValueError, "requires y to be passed", "y is None", "HMMClassDistance"),
    ),
    "numbers as classes": Mistake(
        lambda d: KNeighborsHMMClassifier(1).fit(d.models, np.linspace(0, 1, 8)),
        ValueError,
        "expects discrete classes",
        "continuous values",
        "Maybe you are trying to fit a classifier",
    ),
    "names as numbers": Mistake(
        lambda d: KNeighborsHMMRegressor(n_neighbors=1).fit(d.models, ["a", "b"] * 4),
        *(ValueError, "y must be", "got strings", "an array of numbers"),
    ),
    "a single class": Mistake(
        lambda d: make_classifier().fit(d.X, np.zeros(8, int)),
        *(ValueError, "needs at least 2 classes", "got 1 class", "in y"),
    ),
    "a single group": Mistake(
        lambda d: hmm_group_test(d.models, ["treated"] * 8),
        *(ValueError, "at least 2 groups", "got only 'treated'", "groups must name"),
    ),
    "a unit without a condition": Mistake(
        lambda d: hmm_group_test(
            d.X, list("aabbaaaa"), units=[0] * 4 + [1] * 4, refit=True
        ),
        *(ValueError, "every group", "got unit '1' without 'b'", "Every unit must"),
    ),
    "one trial per condition": Mistake(
        lambda d: hmm_group_test(
            d.X, ["a", "b"] * 4, units=np.repeat(np.arange(4), 2), refit=True
        ),
        *(ValueError, "2 or more trials", "got 1 trial per unit", "pass them with"),
    ),
    "conditions that do not vary within units": Mistake(
        lambda d: hmm_group_test(
            d.X,
            list("aaaabbbb"),
            units=np.repeat(np.arange(4), 2),
            refit="within",
        ),
        *(
            ValueError,
            "groups must vary within units",
            "4 units",
            "refit=True permutes",
        ),
    ),
    "models for a test that fits them": Mistake(
        lambda d: hmm_group_test(d.models, d.y, refit=True),
        *(TypeError, "refit=True needs sequences", "got an HMMBatch", "fitted again"),
    ),
    "an unfitted transformer for the test of groups": Mistake(
        lambda d: hmm_group_test(HMMTransformer(), d.y),
        *(TypeError, "X must be an HMMBatch", "got HMMTransformer", "makes models"),
    ),
    "too few groups": Mistake(
        lambda d: hmm_group_test(d.models, d.y[:-1]),
        *(ValueError, "one label per model", "got shape (7,)", "8 models"),
    ),
    "groups of text and numbers": Mistake(
        lambda d: hmm_group_test(d.models, ["a", 0] * 4),
        *(TypeError, "groups must hold labels of one type", "int (0)", "Write all of"),
    ),
    "an array of text and numbers": Mistake(
        lambda d: state_effects(d.models, np.array(["a", 0] * 4, dtype=object)),
        *(TypeError, "groups must hold labels of one type", "int (0)", "Write all of"),
    ),
    "classes of text and numbers": Mistake(
        lambda d: neighbors().fit(d.X, ["a", 0] * 4),
        *(TypeError, "y must hold labels of one type", "int (0)", "Write all of them"),
    ),
    "classes of views of text and numbers": Mistake(
        lambda d: make_classifier().fit(d.X, np.array(["a", 0] * 4, dtype=object)),
        *(TypeError, "y must hold labels of one type", "int (0)", "Write all of them"),
    ),
    "classes of distances of text and numbers": Mistake(
        lambda d: HMMClassDistance().fit(d.X, ["a", 0] * 4),
        *(TypeError, "y must hold labels of one type", "int (0)", "Write all of them"),
    ),
    "an effect at a confidence of one": Mistake(
        lambda d: state_effects(d.models, d.y, confidence=1.0),
        *(ValueError, "confidence must be a number in (0, 1)", "got 1.0", "in (0, 1)"),
    ),
    "an interval at a confidence of one": Mistake(
        lambda d: distance_interval(d.models[0], d.models[1], confidence=1.0),
        *(ValueError, "confidence must be a number in (0, 1)", "got 1.0", "in (0, 1)"),
    ),
    "a detector with a rate of one": Mistake(
        lambda d: HMMNoveltyDetector(false_alarm_rate=1.0).fit(d.models),
        *(
            ValueError,
            "false_alarm_rate must be a number in (0, 1)",
            "got 1.0",
            "in (0, 1)",
        ),
    ),
    "a table with a column named emission": Mistake(
        lambda d: neighbors().fit(table_of("emission"), d.y),
        *(TypeError, "X must be a list of arrays", "got a table", "as_sequences(X)"),
    ),
    "a table with such a column for the test of groups": Mistake(
        lambda d: hmm_group_test(table_of("emission"), d.y),
        *(ValueError, "X must be an HMMBatch", "got shape (8, 2)", "n_models"),
    ),
    "sequences for the test of groups": Mistake(
        lambda d: hmm_group_test(d.X, d.y),
        *(TypeError, "X must be an HMMBatch", "got list", "HMMTransformer makes"),
    ),
    "folds by group without groups": Mistake(
        lambda d: cross_val_score(neighbors(), d.X, d.y, cv=GroupKFold(2)),
        *(ValueError, "'groups' parameter", "None", "should not be"),
    ),
    "too few groups of sequences": Mistake(
        lambda d: dynamics_gain(d.X, d.y, groups=[0, 1]),
        *(
            ValueError,
            "groups must hold one label per",
            "got shape (2,)",
            "8 sequences",
        ),
    ),
    "labels of another length in a score": Mistake(
        lambda d: average_precision(d.distances, d.y[:-1]),
        *(ValueError, "y must hold one label per item", "got shape (7,)", "8 items"),
    ),
    # Channels.
    "columns of another name": Mistake(
        lambda d: transformer().fit([d.table, d.table.rename(columns={"a": "q"})]),
        *(
            ValueError,
            "X[1] must have the same columns as X[0], ['a', 'b']",
            "got ['q', 'b']",
            "missing ['a'] and unexpected ['q']",
        ),
    ),
    "columns of another name than in fit": Mistake(
        lambda d: (
            transformer().fit([d.table]).transform([d.table.rename(columns=str.upper)])
        ),
        *(
            ValueError,
            "should match those",
            "unseen at fit time:\n- A",
            "missing:\n- a",
        ),
    ),
    "columns in another order than in fit": Mistake(
        lambda d: transformer().fit([d.table]).transform([d.table[["b", "a"]]]),
        *(ValueError, "should match", "Feature names must be", "in the same order"),
    ),
    "models of other channels": Mistake(
        lambda d: pairwise_hmm_distances(
            transformer().fit_transform([d.table]),
            transformer().fit_transform([d.table[["b", "a"]]]),
        ),
        *(ValueError, "same feature names", "got ['a', 'b']", "in the same order"),
    ),
    "distances as sequences": Mistake(
        lambda d: neighbors().fit(d.distances, d.y),
        *(
            ValueError,
            "X must hold sequences",
            "symmetric with a zero diagonal",
            'write KNeighborsHMMClassifier(metric="precomputed")',
        ),
    ),
    "distances for a step that computes distances": Mistake(
        lambda d: PairwiseHMMDistance().fit(d.distances),
        *(
            ValueError,
            "X must hold sequences",
            "PairwiseHMMDistance does not take distances",
            'KNeighborsHMMClassifier(metric="precomputed")',
        ),
    ),
    "sequences of unequal width": Mistake(
        lambda d: transformer().fit([d.X[0], d.X[1][:, :2]]),
        *(ValueError, "the same number of features", "got [2, 3]", "All sequences"),
    ),
    "models of unequal width": Mistake(
        lambda d: pairwise_hmm_distances(d.models, d.narrow),
        *(ValueError, "the same number of features", "got 3 and 2", "X and Y"),
    ),
    "models of two kinds": Mistake(
        lambda d: pairwise_hmm_distances(d.models, d.texts),
        *(TypeError, "one kind of states", "got gaussian and cat", "X and Y"),
    ),
    "other channels than in fit": Mistake(
        lambda d: KNeighborsHMMClassifier(1).fit(d.models, d.y).predict(d.narrow),
        *(ValueError, "is expecting 3 features", "X has 2 features", "as input"),
    ),
    "one sequence to predict": Mistake(
        lambda d: neighbors().fit(d.X, d.y).predict(d.X[0]),
        *(ValueError, "is expecting 3 features", "X has 1 feature", "write [X]"),
    ),
    # Precomputed distances.
    "components of an unknown distance": Mistake(
        lambda d: given_distances().fit(np.stack([d.distances] * 2, axis=2), d.y),
        *(ValueError, "alpha must be a number", "got None", "JAW alpha=0.5"),
    ),
    "alpha with distances": Mistake(
        lambda d: given_distances(alpha=0.5).fit(d.distances, d.y),
        *(ValueError, "alpha must be None", "got 0.5", "if X holds distances"),
    ),
    "alpha with a distance object": Mistake(
        lambda d: PairwiseHMMDistance(MAW(0.3), alpha=0.5).fit(d.models),
        *(ValueError, "alpha must be None", "got 0.5", "metric=MAW(alpha=0.3)"),
    ),
    "alpha of a distance without components": Mistake(
        lambda d: hmm_distance(d.models[0], d.models[1], "kl", alpha=0.5),
        *(ValueError, "alpha must be None", "got 0.5", "with metric='kl'"),
    ),
    "hmm with fitted models": Mistake(
        lambda d: neighbors().fit(d.models, d.y),
        *(ValueError, "hmm must be None", "HMMTransformer", "if X is an HMMBatch"),
    ),
    "covariances of symbols": Mistake(
        lambda d: transformer(covariance_type="full", emission="categorical").fit(
            WORDS
        ),
        *(ValueError, "covariance_type must be 'diag'", "'full'", "emission='cat"),
    ),
    "a parameter changed after fit": Mistake(
        lambda d: transformer().fit(d.X).set_params(prior="pooled").transform(d.X),
        *(ValueError, "prior must", "'pooled'", "Call fit again"),
    ),
    "a parameter of hmm changed after fit": Mistake(
        lambda d: (
            neighbors().fit(d.X, d.y).set_params(hmm__prior="pooled").predict(d.X)
        ),
        *(ValueError, "hmm__prior must", "'pooled'", "Call fit again"),
    ),
    "distances that are not square": Mistake(
        lambda d: given_distances().fit(d.distances[:, :5], d.y),
        ValueError,
        "X must be a square matrix of distances",
        "got shape (8, 5)",
        "between the training models",
    ),
    "sequences as distances": Mistake(
        lambda d: given_distances().fit(d.X, d.y),
        *(TypeError, "matrix of distances", "list of sequences", "PairwiseHMMDistance"),
    ),
    "a kernel as distances": Mistake(
        lambda d: given_distances().fit(np.exp(-d.distances), d.y),
        *(ValueError, "X must hold distances", "largest on the diagonal", "SVC"),
    ),
    "negative distances": Mistake(
        lambda d: given_distances().fit(-d.distances, d.y),
        *(ValueError, "X must hold distances", "largest on the diagonal", "kernel"),
    ),
    "a distance that is NaN": Mistake(
        lambda d: given_distances().fit(changed(d.distances, np.nan), d.y),
        *(ValueError, "one number per pair", "got NaN in row 3, column 1", "Infinite"),
    ),
    "distances to other models": Mistake(
        lambda d: given_distances().fit(d.distances, d.y).predict(d.distances[:, :3]),
        *(ValueError, "is expecting 8 features", "X has 3 features", "as input"),
    ),
    "components with three parts": Mistake(
        lambda d: AlphaMixer().fit(np.ones((8, 8, 3))),
        ValueError,
        "components of shape (n_models, n_models_fit, 2)",
        "got shape (8, 8, 3)",
        "distances of shape",
    ),
    # Models by hand.
    "one model instead of several": Mistake(
        lambda d: HMMBatch(HALF, [[0.0], [1.0]], [[1.0], [1.0]]),
        *(ValueError, "2 axes per model", "got shape (2,)", "as a list of one"),
    ),
    "a transposed transition matrix": Mistake(
        lambda d: HMMBatch(
            [np.array([[0.9, 0.3], [0.1, 0.7]])], [[[0], [1]]], [[[1], [1]]]
        ),
        *(ValueError, "must sum to one", "got 1.2", "transpose it"),
    ),
    "a negative variance": Mistake(
        lambda d: HMMBatch([HALF], [[[0], [1]]], [[[1], [-1]]]),
        *(ValueError, "covars must not be negative", "got -1", "model 0, state 1"),
    ),
    "means of too many states": Mistake(
        lambda d: HMMBatch([HALF], [[[0], [1], [2]]], [[[1], [1]]]),
        *(ValueError, "must have shape (2, 1)", "got (3, 1)", "2 states, 1 features"),
    ),
    "an index beyond the models": Mistake(
        lambda d: d.models[8],
        *(IndexError, "within the 8 models", "got 8", "An index must lie"),
    ),
    "means of models of symbols": Mistake(
        lambda d: d.texts.means,
        *(AttributeError, "'categorical'", "have no means", "They have emissionprobs"),
    ),
    # Symbols and counts.
    "a symbol outside the alphabet": Mistake(
        lambda d: transformer(emission="categorical").fit(WORDS).transform(["abz"]),
        *(ValueError, "among the 3 symbols", "symbol 'z'", "Categorical(symbols)"),
    ),
    "numbers as symbols": Mistake(
        lambda d: NGrams().fit(d.X),
        *(ValueError, "a sequence of symbols", "got shape (", "(n_timesteps,)"),
    ),
    "negative counts": Mistake(
        lambda d: transformer(emission="poisson").fit([np.array([1, 2, -3])]),
        *(ValueError, "must hold counts", "got -3", "integers from 0"),
    ),
    # Files and packages.
    "a file of something else": Mistake(
        lambda d: wrongly_read(d.folder / "models.csv", b"time,x\n0,1\n"),
        *(ValueError, "must be a complete", "something else", "HMMBatch.save writes"),
    ),
    "a truncated file": Mistake(
        lambda d: wrongly_read(d.folder / "cut.npz", b"PK\x03\x04" + bytes(40)),
        *(ValueError, "must be a complete", "cut short", "HMMBatch.save writes"),
    ),
    "a name of another format": Mistake(
        lambda d: d.models.save(d.folder / "models.csv"),
        *(ValueError, "an archive of arrays", "models.csv", "such as 'models.npz'"),
    ),
    "a file in a folder that does not exist": Mistake(
        lambda d: d.models.save(d.folder / "results" / "models.npz"),
        *(FileNotFoundError, "an existing folder", "models.npz", "create it first"),
    ),
    "distances to a folder that does not exist": Mistake(
        lambda d: pairwise_hmm_distances(d.models, out=d.folder / "a" / "d.npy"),
        *(FileNotFoundError, "out must name", "d.npy", "create it first"),
    ),
    "models saved to a number": Mistake(
        lambda d: d.models.save(3),
        *(TypeError, "path must be the name of a file", "got int", "a str or a path"),
    ),
    "a monitor loaded from nothing": Mistake(
        lambda d: HMMMonitor.load(None),
        *(TypeError, "path must be the name of a file", "got NoneType", "a str or a"),
    ),
    "a folder in the place of a file": Mistake(
        lambda d: HMMBatch.load(d.folder),
        *(ValueError, "must be a complete", "it is a folder", "HMMBatch.save writes"),
    ),
    "the name of a sound file": Mistake(
        lambda d: mfcc("a.wav", 16000),
        *(TypeError, "signal must be an array", "'a.wav'", "load_wav_folder reads"),
    ),
    "a window of sound in milliseconds": Mistake(
        lambda d: mfcc(np.ones(8000), 8000, window=25),
        *(ValueError, "window must be a time in seconds", "25 s", "a signal of 1 s"),
    ),
    "a sample rate in kilohertz": Mistake(
        lambda d: mfcc(np.ones(8000), 8),
        *(ValueError, "at least 1 sample", "sample_rate=8", "samples per second"),
    ),
    "a wide table of symbols": Mistake(
        lambda d: transformer(emission="categorical").fit(
            frame(y1=["S", "W"], y2=["W", "W"])
        ),
        *(TypeError, "a list of arrays", "2 rows and 2", "X, ids = as_sequences(X)."),
    ),
    "decimals as texts in a single column": Mistake(
        lambda d: as_sequences(frame(who=[1, 1, 2], x=["1.5", "2", "3"]), id="who"),
        *(UserWarning, "'x' holds texts", "'1.5'", "pandas.to_numeric"),
    ),
    "numbers as texts in an array": Mistake(
        lambda d: transformer().fit([d.X[0].astype(str)]),
        *(ValueError, "an array of numbers", "got strings", "x.astype(float)"),
    ),
    "texts for the regressor of frames": Mistake(
        lambda d: make_regressor().fit(WORDS * 3, np.arange(9.0)),
        *(ValueError, "array of numbers", "strings", 'make_regressor("categorical")'),
    ),
    "frames as symbols": Mistake(
        lambda d: transformer(emission="categorical").fit(d.X),
        *(ValueError, "of shape (n_timesteps,)", "got shape (30, 3)", "ByChannel"),
    ),
    "a label that is missing": Mistake(
        lambda d: neighbors().fit(d.X, ["a"] * 7 + [np.nan]),
        *(ValueError, "y must hold a label for every", "got nan", "at index 7"),
    ),
    "a label of views that is None": Mistake(
        lambda d: make_classifier().fit(d.X, pd.Series([*"aaabbbb", None])),
        *(ValueError, "y must hold a label for every", "got", "at index 7"),
    ),
    "a label of a score that is missing": Mistake(
        lambda d: average_precision(d.distances, ["a"] * 7 + [None]),
        *(ValueError, "y must hold a label for every item", "got None", "index 7"),
    ),
    "a group that is missing": Mistake(
        lambda d: hmm_group_test(d.models, ["a"] * 4 + ["b"] * 3 + [np.nan]),
        *(ValueError, "groups must hold a label for every", "got nan", "index 7"),
    ),
    "no groups": Mistake(
        lambda d: state_effects(d.models, None),
        *(ValueError, "groups must hold one label per model", "got None", "8 models"),
    ),
    "a column of labels with gaps": Mistake(
        lambda d: as_sequences(
            frame(who=[1, 1, 2], x=[0.5, 1, 2], y=["a", "a", None]),
            id="who",
            labels="y",
        ),
        *(ValueError, "'y' must hold one label per", "got none", "in sequence 2"),
    ),
    "a column of info that does not exist": Mistake(
        lambda d: state_effects(d.models, "diagnosis"),
        *(ValueError, "groups must hold one", "got 'diagnosis'", "one of ['conv"),
    ),
    "categories as covariates": Mistake(
        lambda d: hmm_group_test(d.models, d.y, covariates=["f", "m"] * 4),
        *(TypeError, "covariates must be", "got strings", "as columns of 0 and 1"),
    ),
    "a transformer for a test that fits nothing": Mistake(
        lambda d: hmm_group_test(d.models, d.y, hmm=transformer()),
        *(ValueError, "hmm must be None", "got HMMTransformer", "refit=False"),
    ),
    "classes as groups to leave out": Mistake(
        lambda d: KNeighborsHMMClassifierCV(n_neighbors=1).fit(
            d.models, d.y, groups=d.y
        ),
        *(UserWarning, "groups should name", "classes [0, 1]", "such as the speaker"),
    ),
    "one recording as a matrix of the right width": Mistake(
        lambda d: d.models[0].decode(d.X[0]),
        *(ValueError, "expecting 3 features", "X has 1 features", "write [X]"),
    ),
    "one recording for a monitor": Mistake(
        lambda d: HMMMonitor(10).fit(d.X[0]),
        *(ValueError, "length must be at most", "got 10 and X[0] with 3", "write [X]"),
    ),
    "a prior by a wrong name": Mistake(
        lambda d: transformer(prior="pool").fit(d.X),
        *(ValueError, "prior must be one of None", "got 'pool'", "mean 'pooled'"),
    ),
    "effects in the display of a test": Mistake(
        lambda d: GroupTestDisplay.from_result(d.distances),
        *(TypeError, "result must be the result", "got ndarray", "hmm_group_test"),
    ),
    "a matrix of other distances": Mistake(
        written_twice,
        ValueError,
        "was begun with other models or parameters",
        'now "MAW(alpha=0.7',
        "Choose another file or delete it",
    ),
}
MISSING = {
    "hmmlearn, to exchange": (
        *("hmmlearn", lambda d: d.models.to_hmmlearn(0)),
        ("needs hmmlearn", "not installed", "pip install hmmlearn"),
    ),
    "hmmlearn, to fit": (
        *("hmmlearn", lambda d: transformer(engine="hmmlearn").fit_transform(d.X)),
        ("needs hmmlearn", "not installed", "pip install hmmlearn"),
    ),
    "pandas": (
        *("pandas", lambda d: state_table(d.models)),
        ("data frame of pandas", "not installed", "pip install pandas"),
    ),
    "sktime": (
        *("sktime", lambda d: load_japanese_vowels()),
        ("sktime", "was not found", "pip install"),
    ),
}


@pytest.fixture(scope="module")
def data():
    X, y = make_hmm_sequences(
        8, n_features=3, n_timesteps=(30, 40), separation=3, random_state=1
    )
    # A length that some other sequence does not have.
    X[0], X[1] = X[0][:30], X[1][:31]
    models = transformer().fit_transform(X)
    return SimpleNamespace(
        X=X,
        y=y,
        models=models,
        narrow=transformer().fit_transform([x[:, :2] for x in X]),
        texts=transformer(emission="categorical").fit_transform(WORDS),
        distances=PairwiseHMMDistance().fit_transform(models),
        table=pd.DataFrame(X[0][:, :2], columns=["a", "b"]),
    )


def says(message, *parts):
    for part in parts:
        assert part in message, f"{part!r} is not in: {message}"
    # No address of an object, no name of a private module.
    assert not re.search(r"skawhmm\.\w+\._", re.sub(r"<class .*?>", "", message))


@pytest.mark.parametrize("name", MISTAKES)
def test_message_says_what_to_do(name, data, tmp_path):
    mistake = MISTAKES[name]
    data.folder = tmp_path
    # Warnings are errors in these tests.
    with pytest.raises(mistake.error) as caught:
        mistake.do(data)
    says(str(caught.value), mistake.expected, mistake.came, mistake.remedy)


@pytest.mark.parametrize("name", MISSING)
def test_missing_package_is_named(name, data, monkeypatch):
    package, do, parts = MISSING[name]
    monkeypatch.delenv("SKAWHMM_DATA", raising=False)
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises((ImportError, FileNotFoundError)) as caught:
        do(data)
    says(str(caught.value), *parts)


def test_table_of_mistakes_is_long():
    assert len(MISTAKES) + len(MISSING) >= 55
