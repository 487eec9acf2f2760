"""Use the library for the first time: ``python tests/first_run.py threading``.

The argument is the back end of joblib for parallel work. It prints what is the same on
every machine, or an error. It runs in a separate process without a writable folder.
"""

import sys

import joblib
import matplotlib as mpl
import numpy as np

from skawhmm import HMMTransformer, KNeighborsHMMClassifier, pairwise_hmm_distances
from skawhmm.datasets import make_hmm_sequences
from skawhmm.plot import HMMMapDisplay

mpl.use("agg")


def main(backend):
    X, y = make_hmm_sequences(n_sequences=20, random_state=0)
    models = HMMTransformer(2, random_state=0).fit_transform(X)
    score = KNeighborsHMMClassifier(1).fit(models, y).score(models, y)
    HMMMapDisplay.from_models(models, y, method="mds").figure_.canvas.draw()
    with joblib.parallel_config(backend=backend):
        try:
            found = pairwise_hmm_distances(models, n_jobs=2)
        except OSError as error:
            print(score, f"{type(error).__name__}: {error}")  # noqa: T201
            return
    print(score, np.array_equal(found, pairwise_hmm_distances(models)))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
