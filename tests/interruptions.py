"""Interrupt work at random moments: ``python tests/interruptions.py 100 0 fit pairs``.

The arguments are the number of trials, a seed and the names of the work. It prints how
each kind of work ended. It runs in a separate process: Ctrl-C would end pytest.
"""

import pickle
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV

from skawhmm import (
    KL,
    HMMKMeans,
    HMMKMedoids,
    HMMRetriever,
    HMMTransformer,
    KNeighborsHMMClassifier,
    make_classifier,
    pairwise_hmm_distances,
)
from skawhmm.datasets import make_hmm_sequences
from skawhmm.distances import _matrix_file

# Longest time from Ctrl-C to the end of the call, in seconds. It is far more than is
# needed, for machines that are busy.
PATIENCE = 20.0

X, Y = make_hmm_sequences(n_sequences=60, n_timesteps=40, random_state=0)
HMM = HMMTransformer(3, keep_sequences=True, random_state=0)
MODELS = HMM.fit_transform(X)
SHORT_KL = KL(n_steps=300)


def fit():
    return HMMTransformer(3, random_state=0).fit_transform(X)


def pooled_fit():
    hmm = HMMTransformer(3, prior="pooled", random_state=0, n_jobs=2)
    return hmm.fit_transform(X)


def pairs():
    return pairwise_hmm_distances(MODELS, metric="coupling", n_jobs=2)


def divergences():
    return pairwise_hmm_distances(MODELS[:20], metric=SHORT_KL)


def grid_search():
    # By default an error in a fold gives a score of NaN; Ctrl-C must not.
    metrics = [SHORT_KL, KL(method="variational"), KL(method="data")]
    search = GridSearchCV(KNeighborsHMMClassifier(), {"metric": metrics}, cv=2)
    return search.fit(MODELS[:20], Y[:20]).cv_results_["mean_test_score"]


def search():
    return RETRIEVER.kneighbors(MODELS)[1]


def clustering():
    return HMMKMeans(3, max_iter=5, random_state=0).fit(MODELS).labels_


def medoids():
    return HMMKMedoids(3).fit(MODELS).labels_


def refit():
    return CLASSIFIER.fit(MODELS, Y).predict(MODELS)


def views():
    return make_classifier(random_state=0).fit(X, Y).predict(X)


RETRIEVER = HMMRetriever(3, algorithm="pruned").fit(MODELS)
CLASSIFIER = KNeighborsHMMClassifier(3).fit(X, Y)
FOLDER = tempfile.TemporaryDirectory()
MATRIX = Path(FOLDER.name) / "matrix.npy"


def file():
    return np.array(pairwise_hmm_distances(MODELS, metric="coupling", out=MATRIX))


def interrupted(work, seconds, expected):
    """Interrupt the work after some time and return how it ended."""
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            result = work()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            return "interrupted"
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
    except KeyboardInterrupt:
        return "interrupted"
    return "finished" if pickle.dumps(result) == expected else "a wrong result"


def main(n_trials, seed, *names):
    random.seed(seed)
    _matrix_file.SECURING_INTERVAL = 0.0
    # An alarm that behaves as Ctrl-C does.
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for work in (globals()[name] for name in names):
        expected = pickle.dumps(work())
        MATRIX.unlink(missing_ok=True)
        start = time.perf_counter()
        work()
        usual = time.perf_counter() - start
        outcomes = Counter()
        for trial in range(n_trials):
            if trial % 3 == 0:
                MATRIX.unlink(missing_ok=True)
            start = time.perf_counter()
            moment = random.uniform(1e-4, usual)
            outcomes[interrupted(work, moment, expected)] += 1
            if time.perf_counter() - start > usual + PATIENCE:
                outcomes["late"] += 1
        # The same work can be done after the interruption.
        same = pickle.dumps(work()) == expected
        print(work.__name__, "usable" if same else "spoilt", dict(outcomes), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
