"""The default views: channel sets of frames, states and n-grams of symbols."""

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline, make_union

from skawhmm.features._embedding import HMMEmbedding
from skawhmm.features._ngrams import NGrams
from skawhmm.sequences._preprocessing import Deltas, TimeChannel
from skawhmm.utils._checks import check_choice

# Half the widths of slopes, and steps between the symbols of a pair.
LAGS = (1, 2, 4, 8)


def frame_views(n_jobs, random_state):
    """Return views of frames: channel sets of the embedding."""

    def embedding():
        return HMMEmbedding(dtype=np.float32, n_jobs=n_jobs, random_state=random_state)

    return [
        ("frames", embedding()),
        ("deltas", make_pipeline(Deltas(), embedding())),
        ("lags", make_pipeline(Deltas(lags=LAGS), embedding())),
        ("position", make_pipeline(Deltas(lags=LAGS), TimeChannel(), embedding())),
    ]


def symbol_views(n_jobs, random_state):
    """Return views of symbols: states of reference models, and n-grams."""
    states = HMMEmbedding(
        emission="categorical",
        dtype=np.float32,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    apart = make_union(*(NGrams(2, lag) for lag in LAGS[1:]))
    return [
        ("states", states),
        ("symbols", NGrams(1)),
        ("pairs", NGrams(2)),
        ("triples", NGrams(3)),
        ("lags", apart),
    ]


VIEWS = {"gaussian": frame_views, "categorical": symbol_views}


def make_views(
    emission: str = "gaussian", *, n_jobs: int | None = None, random_state: Any = None
) -> list[tuple[str, Any]]:
    """Make the views of the recommended classifier.

    Those of real frames are vectors of :class:`HMMEmbedding`: of the channels as they
    are ("frames"), with time derivatives ("deltas"), with derivatives over 1, 2, 4 and
    8 frames ("lags"), and with these and the position in the sequence ("position").
    Those of symbols are vectors of reference models ("states") and square roots of the
    frequencies of symbols, pairs, triples, and pairs 2, 4 and 8 steps apart ("lags").

    Parameters
    ----------
    emission : {"gaussian", "categorical"}, default="gaussian"
        Whether sequences hold real frames or symbols.

    n_jobs : int, default=None
        Number of joblib workers of each view.

    random_state : int, RandomState instance or None, default=None
        Seed of each view.

    Returns
    -------
    views : list of (str, transformer)
        Names and transformers, for :class:`HMMViewClassifier`.

    See Also
    --------
    make_classifier : A classifier with these views.

    Examples
    --------
    >>> from skawhmm.classification import make_views
    >>> [name for name, _ in make_views("categorical")]
    ['states', 'symbols', 'pairs', 'triples', 'lags']
    """
    check_choice("emission", emission, tuple(VIEWS))
    return VIEWS[emission](n_jobs, random_state)
