"""Views of sequences: the default ones, and their vectors, centred and scaled.

A view is a transformer that makes one vector per sequence. The ridge regression over
several views is in `_ridge`.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.pipeline import Pipeline, make_pipeline, make_union

from skawhmm.classification._channels import (
    OwnScale,
    RealChannels,
    SymbolChannel,
    symbol_blocks,
)
from skawhmm.distances._jaw import JAW
from skawhmm.emissions._by_channel import ByChannel
from skawhmm.features._embedding import HMMEmbedding
from skawhmm.features._ngrams import NGrams
from skawhmm.features._pairwise import PairwiseHMMDistance
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.numerics._lapack import in_batches
from skawhmm.sequences._preprocessing import Deltas, Framewise, TimeChannel
from skawhmm.utils._checks import check_boolean, check_choice
from skawhmm.utils._parameters import check_unused
from skawhmm.utils._seeds import random_stream

# Half-widths of slopes, and steps between the symbols of a pair.
LAGS = (1, 2, 4, 8)
# Columns converted to double precision at a time, and sequences transformed at a time;
# both limit memory.
COLUMN_BLOCK = 4096
SEQUENCE_BLOCK = 512
# Columns of sparse vectors are multiplied as dense ones if more than this fraction of
# their entries is not 0: sparse products take about 40 times as long per entry.
DENSE_FRACTION = 0.15
# Squared distances of vectors to their mean below this fraction of the squared lengths
# of both are rounding errors.
LENGTH_ROUNDING = 1e-14
# Numbers of states of the models in distance views, and the largest number of training
# sequences to which distances are computed.
DISTANCE_STATES = (3, 6)
MAX_LANDMARKS = 300
# Largest number of words in a view of symbols.
MAX_WORDS = 2**18
# Views are fitted to at most this many sequences, drawn at random from more.
FIT_SEQUENCES = 10_000


class GroupView(Pipeline):
    """A view that is used only if `fit` is given groups."""


def is_group_view(view):
    """Return whether a view is used only if there are groups."""
    return isinstance(view, GroupView)


def frame_views(n_jobs, random_state):
    """Return views of frames: embeddings of several sets of channels."""

    def embedding():
        return HMMEmbedding(dtype=np.float32, n_jobs=n_jobs, random_state=random_state)

    return [
        ("frames", embedding()),
        ("deltas", make_pipeline(Deltas(), embedding())),
        ("lags", make_pipeline(Deltas(lags=LAGS), TimeChannel(), embedding())),
    ]


def group_views(n_jobs, random_state):
    """Return the same views of frames, each sequence standardized on its own."""
    return [
        (f"own_{name}", GroupView(preceded(OwnScale(), view).steps))
        for name, view in frame_views(n_jobs, random_state)
    ]


def preceded(step, view):
    """Return a pipeline of a step and a view, which may be a pipeline itself."""
    steps = view.steps if isinstance(view, Pipeline) else [(None, view)]
    return make_pipeline(step, *(own for _, own in steps))


class LandmarkDistances(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Distances from the models of sequences to the models of some training sequences.

    Parameters
    ----------
    n_components : int
        Number of states.

    n_jobs : int, default=None
        Number of joblib workers.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the models, and of the draw of the training sequences.
    """

    def __init__(
        self, n_components: int, n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "LandmarkDistances":  # noqa: ARG002
        """Keep the models of at most `MAX_LANDMARKS` sequences."""
        chosen = sampled(X, MAX_LANDMARKS, random_stream(self.random_state))
        hmm = HMMTransformer(
            self.n_components, n_jobs=self.n_jobs, random_state=self.random_state
        )
        metric = JAW(rows="hellinger")
        self._steps = make_pipeline(
            Framewise(), PairwiseHMMDistance(metric, hmm=hmm, n_jobs=self.n_jobs)
        ).fit(chosen)
        self._n_features_out = len(chosen)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return distances of shape (n_sequences, n_landmarks)."""
        return self._steps.transform(X)


def distance_views(n_jobs, random_state):
    """Return views of distances between models with few and with more states."""
    return [
        (f"distances_{n_states}", LandmarkDistances(n_states, n_jobs, random_state))
        for n_states in DISTANCE_STATES
    ]


def mixed_views(emission, n_jobs, random_state):
    """Return views of all channels as numbers, and of each channel of symbols."""
    views = [
        (name, preceded(RealChannels(emission), view))
        for name, view in frame_views(n_jobs, random_state)
    ]
    for block in symbol_blocks(emission):
        views += [
            (f"{block}_{name}", preceded(SymbolChannel(emission, block), view))
            for name, view in symbol_views(n_jobs, random_state)
        ]
    return views


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
        ("pairs", NGrams((1, 2))),
        ("triples", NGrams(3)),
        ("short_words", NGrams((1, 6), idf=True, max_features=MAX_WORDS)),
        ("long_words", NGrams((8, 12), idf=True, max_features=MAX_WORDS)),
        ("lags", apart),
    ]


EMISSIONS = ("gaussian", "categorical")


def make_views(
    emission: Any = "gaussian",
    *,
    distances: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> list[tuple[str, Any]]:
    """Return the views of the recommended classifier.

    For real frames, views are vectors of :class:`HMMEmbedding`: of the channels
    unchanged ("frames"), with time derivatives ("deltas"), and with derivatives over 1,
    2, 4 and 8 frames and the position in the sequence ("lags"). The same three views of
    sequences that are each centred and scaled ("own_frames", "own_deltas", "own_lags")
    are used only if `fit` is given groups.

    For symbols, they are vectors of reference models ("states") and square roots of the
    frequencies of symbols and pairs ("pairs"), of triples, of words of 1 to 6 symbols,
    weighted by their inverse document frequency ("short_words"), of words of 8 to 12
    symbols likewise ("long_words"), and of pairs 2, 4 and 8 steps apart ("lags").

    For channels of several kinds, they are the first three views of frames, in which
    symbols become indicators, angles become points on a circle, and counts and positive
    numbers become square roots; and, for each block of symbols, all views of symbols,
    prefixed by its name.

    Parameters
    ----------
    emission : {"gaussian", "categorical"} or ByChannel, default="gaussian"
        Kind of the sequences: real frames, symbols or, by `ByChannel`, channels of
        several kinds.

    distances : bool, default=False
        Whether to add two views of distances to training sequences, by `JAW` with
        Hellinger rows, of models with 3 and with 6 states ("distances_3",
        "distances_6"). With more than 300 training sequences, 300 of them are drawn at
        random. For real frames only.

    n_jobs : int, default=None
        Number of joblib workers of each view.

    random_state : int, RandomState instance, Generator or None, default=None
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
    ['states', 'pairs', 'triples', 'short_words', 'long_words', 'lags']

    A table with a speed, an angle and a symbol:

    >>> from skawhmm.emissions import ByChannel, Categorical, Gamma, VonMises
    >>> blocks = [("speed", Gamma(), [0]), ("angle", VonMises(), [1])]
    >>> emission = ByChannel([*blocks, ("mode", Categorical(), [2])])
    >>> [name for name, _ in make_views(emission)][:5]
    ['frames', 'deltas', 'lags', 'mode_states', 'mode_pairs']
    """
    is_mixed = isinstance(emission, ByChannel)
    if not is_mixed:
        check_choice("emission", emission, EMISSIONS)
    if check_boolean("distances", distances) and emission != "gaussian":
        check_unused("distances", distances, False, f"with emission={emission!r}")
    if is_mixed:
        return mixed_views(emission, n_jobs, random_state)
    if emission == "categorical":
        return symbol_views(n_jobs, random_state)
    views = frame_views(n_jobs, random_state)
    if distances:
        views += distance_views(n_jobs, random_state)
    return views + group_views(n_jobs, random_state)


def check_views(name, value):
    """Raise unless `value` is a list of names and transformers, or None."""
    if value is None:
        return
    wanted = f"{name} must be a list of pairs of a name and a transformer"
    if not isinstance(value, list | tuple):
        raise TypeError(f"{wanted}, got {value!r}.")
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(f"{wanted}, got {pair!r} among them.")
        label, view = pair
        able = all(hasattr(view, member) for member in ("fit", "transform"))
        if not isinstance(label, str) or isinstance(view, type) or not able:
            raise TypeError(f"{wanted}, got {pair!r} among them.")
        if not label or "__" in label:
            raise ValueError(
                f"{name} must have names without double underscores, got {label!r}."
            )
    labels = [label for label, _ in value]
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"{name} must have distinct names, got {labels}.")


def fitted_transformer(transformer, sequences, rng):
    """Return a clone of a transformer, fitted to at most `FIT_SEQUENCES` sequences.

    It does not see the labels, so folds of the training sequences can share it.
    """
    return clone(transformer).fit(sampled(sequences, FIT_SEQUENCES, rng), None)


def sampled(sequences, n_sequences, rng):
    """Return a random sample of the sequences in their order, or all of them."""
    if len(sequences) <= n_sequences:
        return sequences
    chosen = np.sort(rng.permutation(len(sequences))[:n_sequences])
    return sequences.taken(chosen)


def vectors(transformer, sequences):
    """Yield the vectors of sequences, dense or in sparse rows, in blocks."""
    for first in range(0, len(sequences), SEQUENCE_BLOCK):
        rows = transformer.transform(sequences[first : first + SEQUENCE_BLOCK])
        if sparse.issparse(rows):
            yield first, sparse.csr_array(rows, dtype=np.float64)
            continue
        rows = np.asarray(rows)
        single = rows.dtype == np.float32
        yield first, rows if single else rows.astype(np.float64, copy=False)


def all_vectors(transformer, sequences):
    """Return the vectors of sequences as one array, or as one sparse array."""
    blocks = vectors(transformer, sequences)
    _, rows = next(blocks)
    if sparse.issparse(rows):
        parts = [rows, *(rows for _, rows in blocks)]
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    if len(rows) == len(sequences):
        return rows
    # Two copies of all vectors may not fit into memory.
    whole = np.empty((len(sequences), rows.shape[1]), rows.dtype)
    whole[: len(rows)] = rows
    for first, part in blocks:
        whole[first : first + len(part)] = part
    return whole


class View(NamedTuple):
    """A fitted transformer, and how its vectors are made comparable with other views.

    Vectors are centred by the `mean` of the training sequences. Divided by `scale`,
    they have mean squared length 1 in the training data. `basis` is None, or holds the
    principal directions for the coordinates of the primal solver: as columns or, for
    sparse vectors, as combinations of some vectors.
    """

    name: str
    transformer: Any
    mean: np.ndarray
    scale: float
    basis: Any

    @property
    def rank(self):
        """Number of coordinates."""
        return len(self.mean) if self.basis is None else self.basis.shape[1]


class Combinations(NamedTuple):
    """Directions that are combinations of sparse vectors: `rows.T @ factors`, centred.

    The directions themselves would be dense, one number per word.
    """

    rows: Any
    factors: np.ndarray

    @property
    def shape(self):
        """Numbers of features and of directions."""
        return self.rows.shape[1], self.factors.shape[1]


def standardized_view(name, transformer, rows):
    """Return the view standardized by some vectors, and their inner products.

    Parameters
    ----------
    name, transformer : str, transformer
        Name and fitted transformer.

    rows : ndarray or sparse array of shape (n_rows, n_features)
        Vectors of training sequences.

    Returns
    -------
    view : View
        The view, without a basis.

    products : ndarray of shape (n_rows, n_rows)
        Inner products of the standardized vectors.
    """
    mean = np.asarray(rows.mean(axis=0, dtype=np.float64))
    view = View(name, transformer, mean, 1.0, None)
    products = inner_products(view, rows, rows)
    spread, total = np.trace(products), float(mean @ mean) * len(products)
    # If all vectors are equal, there is nothing to scale.
    if spread <= LENGTH_ROUNDING * total:
        return view, np.zeros_like(products)
    scale = float(np.sqrt(spread / len(products)))
    return view._replace(scale=scale), products / scale**2


def principal_view(view, rows, products, max_rank):
    """Return the view with a basis of principal directions if it has more features.

    Parameters
    ----------
    view, rows, products : View, array, ndarray
        A view, vectors of training sequences, and their inner products.

    max_rank : int
        Largest number of directions.
    """
    if len(view.mean) <= max_rank:
        return view
    values, directions = in_batches(np.linalg.eigh, products)
    kept = values[-max_rank:] > values[-1] * len(values) * np.finfo(float).eps
    values, directions = values[-max_rank:][kept], directions[:, -max_rank:][:, kept]
    factors = directions / np.sqrt(values)
    if sparse.issparse(rows):
        return view._replace(basis=Combinations(rows, factors))
    return view._replace(basis=view.scale * combined(view, rows, factors))


def column_blocks(n_columns):
    """Return slices of a few thousand columns each."""
    return [slice(c, c + COLUMN_BLOCK) for c in range(0, n_columns, COLUMN_BLOCK)]


def inner_products(view, rows, others):
    """Return inner products of standardized vectors.

    For vectors in single precision, products of a few thousand columns at a time are
    computed in single and summed in double precision.
    """
    if sparse.issparse(rows):
        # Centred vectors would be dense.
        own, other = rows @ view.mean, others @ view.mean
        products = sparse_products(rows, others)
        products += view.mean @ view.mean - own[:, None] - other
        return products / view.scale**2
    products, mean = np.zeros((len(rows), len(others))), view.mean.astype(rows.dtype)
    for c in column_blocks(len(mean)):
        part = rows[:, c] - mean[c]
        other = part if others is rows else others[:, c] - mean[c]
        products += part @ other.T
    return products / view.scale**2


def sparse_products(rows, others):
    """Return all inner products of sparse rows, as an array.

    Columns with many entries in `others` are made dense, a few thousand at a time.
    """
    counts = np.bincount(others.indices, minlength=others.shape[1])
    is_dense = counts > DENSE_FRACTION * others.shape[0]
    few, many = np.flatnonzero(~is_dense & (counts > 0)), np.flatnonzero(is_dense)
    same, part = others is rows, rows[:, few]
    products = (part @ (part if same else others[:, few]).T).toarray()
    for c in column_blocks(len(many)):
        block = rows[:, many[c]].toarray()
        products += block @ (block if same else others[:, many[c]].toarray()).T
    return products


def squared_lengths(view, rows):
    """Return squared lengths of standardized vectors, of shape (n_rows,)."""
    if sparse.issparse(rows):
        squares = rows.multiply(rows).sum(axis=1)
        total = squares + view.mean @ view.mean
        lengths = total - 2 * (rows @ view.mean)
        # Rounding leaves a small remainder of vectors that equal the mean.
        lengths[lengths < LENGTH_ROUNDING * total] = 0.0
        return lengths / view.scale**2
    lengths = np.zeros(len(rows))
    for c in column_blocks(len(view.mean)):
        lengths += ((rows[:, c] - view.mean[c]) ** 2).sum(axis=1)
    return lengths / view.scale**2


def coordinates(view, rows):
    """Return standardized vectors, or their coordinates if the view has a basis."""
    if isinstance(view.basis, Combinations):
        return inner_products(view, rows, view.basis.rows) @ view.basis.factors
    if view.basis is None:
        dense = rows.toarray() if sparse.issparse(rows) else rows
        return (dense - view.mean) / view.scale
    return projected(view, rows, view.basis) / view.scale


def feature_coefs(view, coef):
    """Return coefficients of unscaled features, from coefficients of coordinates."""
    if isinstance(view.basis, Combinations):
        return combined(view, view.basis.rows, view.basis.factors @ coef)
    return (coef if view.basis is None else view.basis @ coef) / view.scale


def combined(view, rows, factors):
    """Return combinations of standardized vectors, as coefficients before scaling.

    Like the inner products, they have the precision of the vectors.
    """
    if sparse.issparse(rows):
        sums = rows.T @ factors - np.outer(view.mean, factors.sum(axis=0))
        return sums / view.scale**2
    sums = np.empty((len(view.mean), factors.shape[1]))
    mean, factors = view.mean.astype(rows.dtype), factors.astype(rows.dtype)
    for c in column_blocks(len(sums)):
        sums[c] = (rows[:, c] - mean[c]).T @ factors
    return sums / view.scale**2


def projected(view, rows, matrix):
    """Return centred vectors times a matrix, summed in double precision."""
    if sparse.issparse(rows):
        return rows @ matrix - view.mean @ matrix
    products = np.zeros((len(rows), matrix.shape[1]))
    for c in column_blocks(len(view.mean)):
        products += (rows[:, c] - view.mean[c]) @ matrix[c]
    return products


def group_sums(view, rows, coefs, members):
    """Return contributions of groups, of shape (n_rows, n_groups, n_targets).

    Parameters
    ----------
    view, rows : View, ndarray or sparse array
        A view and vectors.

    coefs : ndarray of shape (n_features, n_targets)
        Coefficients of centred vectors.

    members : sparse array of shape (n_features, n_groups)
        1 where a feature is in a group.
    """
    sums = []
    for coef in coefs.T:
        weighted = sparse.csr_array(members.multiply(coef[:, None]))
        own = rows @ weighted
        own = own.toarray() if sparse.issparse(own) else own
        sums.append(own - view.mean @ weighted)
    return np.stack(sums, axis=2)


def squared_distances(products, lengths, others):
    """Return squared distances from inner products and squared lengths."""
    # Rounding can push the distance of equal vectors below zero.
    return np.maximum(lengths[:, None] + others - 2 * products, 0.0)
