"""One vector per sequence: its statistics relative to shared reference models.

A kind implements the embedding for one family of states: it checks input, learns
references, and defines the blocks of vectors and their names. All kinds have the same
members; `KINDS` maps names of families to them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import BaseEstimator, TransformerMixin

from skawhmm._estimator import EstimatorMixin, check_symbol_input
from skawhmm.emissions._categorical import Categorical
from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._poisson import Poisson, check_count_sequences
from skawhmm.features._embedding_statistics import (
    COUNT_BLOCKS,
    GAUSSIAN_BLOCKS,
    SYMBOL_BLOCKS,
    Recipe,
    block_names,
    discrete_statistics,
    embedded_rows,
    fit_discrete_references,
    fit_gaussian_references,
    gaussian_statistics,
    raw_model,
    sampled_pieces,
    standardized_batch,
    writable_model,
)
from skawhmm.fitting._pooled import without_oversized
from skawhmm.models._batch import HMMBatch
from skawhmm.sequences._checks import check_input, input_names
from skawhmm.sequences._names import fitted_names
from skawhmm.sequences._symbols import learned_symbols, symbol_codes
from skawhmm.sequences._trials import recordings_of, split_units
from skawhmm.utils._checks import (
    check_boolean,
    check_choice,
    check_counts,
    check_float_type,
    check_integer,
    check_optional,
    check_real,
)
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._parallel import completed, writable
from skawhmm.utils._parameters import check_unused, defaults_of
from skawhmm.utils._seeds import random_stream

# Frames per task, and most sequences per task: enough work, and statistics that stay in
# the cache.
TASK_FRAMES = 4096
TASK_SEQUENCES = 32

# Blocks made of adapted parameters.
ADAPTED = frozenset({"means", "scales", "thirds", "rates"})


class GaussianKind:
    """References with Gaussian states, in standardized coordinates."""

    blocks = GAUSSIAN_BLOCKS
    default_blocks = ("means", "scales", "thirds")
    # Start values are clusters of frames, so a few EM steps are enough.
    max_iter = 4

    def checked(self, estimator, X, y=None, *, reset):
        """Return checked sequences in the form that the other members expect."""
        return check_input(estimator, X, y, reset=reset)

    def of_one_scale(self, sequences):
        """Return the sequences of similar scale, to fit references to."""
        return without_oversized(sequences, "the reference models")

    def fit(self, pieces, sizes, **options):
        """Learn the references."""
        self.references, self.coordinates = fit_gaussian_references(
            pieces, sizes, **options
        )
        return self

    def recipe(self, blocks, relevance, normalize):
        """Return how sequences become vectors."""
        centre, scale = writable((self.coordinates.centre, self.coordinates.scale))
        coordinates = replace(self.coordinates, centre=centre, scale=scale)
        return Recipe(
            [writable_model(reference.model) for reference in self.references],
            partial(standardized_batch, coordinates=coordinates),
            partial(gaussian_statistics, with_moves="transitions" in blocks),
            coordinates.active,
            {name: self.blocks[name] for name in blocks},
            relevance,
            normalize,
        )

    def channels(self, names):
        """Return the names of what a block has per state, given those of channels."""
        return names

    def batch(self):
        """Return the references as models."""
        models = [raw_model(r, self.coordinates) for r in self.references]
        weights = [reference.weights for reference in self.references]
        return HMMBatch._fitted(Gaussian(), models, weights)


class DiscreteKind:
    """References whose states emit symbols or counts; `family` has one blank state."""

    blocks: dict[str, Any]
    family: Any
    # Start values are drawn at random, so EM needs more steps.
    max_iter = 25

    def of_one_scale(self, sequences):
        """Return all sequences: symbols and counts have no scale."""
        return sequences

    def fit(self, pieces, sizes, *, verbose, **options):  # noqa: ARG002
        """Learn the references; an EM step is a single call, so no bar is shown."""
        self.references = fit_discrete_references(pieces, sizes, self.family, **options)
        return self

    def recipe(self, blocks, relevance, normalize):
        """Return how sequences become vectors."""
        return Recipe(
            [writable_model(reference.model) for reference in self.references],
            list,
            partial(discrete_statistics, family=self.family),
            None,
            {name: self.blocks[name] for name in blocks},
            relevance,
            normalize,
        )

    def batch(self):
        """Return the references as models."""
        models = [reference.model for reference in self.references]
        weights = [reference.weights for reference in self.references]
        return HMMBatch._fitted(self.family, models, weights)


class CategoricalKind(DiscreteKind):
    """References whose states emit symbols; unknown symbols count as not observed."""

    blocks = SYMBOL_BLOCKS
    default_blocks = ("transitions", "emissions")

    def checked(self, estimator, X, y=None, *, reset):
        """Return the codes of symbols."""
        sequences = check_symbol_input(estimator, X, y, reset=reset)
        if reset:
            symbols = learned_symbols(recordings_of(sequences)[0])
            self.family = Categorical(symbols)
        # Missing and unknown symbols have codes below 0 and count as not observed.
        recordings, units = split_units(sequences)
        return units.grouped(symbol_codes(recordings, self.family.symbols))

    def channels(self, names):  # noqa: ARG002
        """Return the symbols, whatever the channel is called."""
        return [str(symbol) for symbol in self.family.symbols]


class PoissonKind(DiscreteKind):
    """References whose states emit counts."""

    blocks = COUNT_BLOCKS
    default_blocks = ("transitions", "rates")

    def checked(self, estimator, X, y=None, *, reset):
        """Return counts."""
        recordings, units = check_input(estimator, X, y, reset=reset).split()
        with units.naming():
            counts = check_count_sequences(recordings)
        if reset:
            self.family = Poisson()
        return units.grouped(counts)

    def channels(self, names):
        """Return the names of what a block has per state, given those of channels."""
        return names


KINDS: dict[str, Any] = {
    "gaussian": GaussianKind,
    "categorical": CategoricalKind,
    "poisson": PoissonKind,
}


def check_blocks(name, value, kind):
    """Return the blocks of a kind that `value` names; None names the default ones."""
    known = list(kind.blocks)
    if value is None:
        return list(kind.default_blocks)
    if not isinstance(value, Iterable):
        raise TypeError(f"{name} must name some of {known}, got {value!r}.")
    blocks = [value] if isinstance(value, str) else list(value)
    if not blocks:
        raise ValueError(f"{name} must name at least 1 of {known}, got none.")
    return [check_choice(name, block, known) for block in blocks]


class HMMEmbedding(EstimatorMixin, TransformerMixin, BaseEstimator):
    r"""Turn every sequence into a vector, by its statistics under shared models.

    `fit` learns a few hidden Markov models of all training frames, the references.
    `transform` runs forward-backward on each sequence under each reference and adapts
    the states of the reference to the sequence. The vector holds the changes. States
    mean the same for all sequences, so vectors can be compared entry by entry: they
    suit linear classifiers and Euclidean nearest-neighbour indexes.

    Let a reference have Gaussian states with means :math:`\mu_{0k}` and variances
    :math:`\sigma_{0k}^2`. Of :math:`T` frames :math:`x_t`, state :math:`k` is
    expected to have :math:`n_k = \sum_t g_{tk}`. With relevance :math:`r` the adapted
    mean is :math:`\mu_k = (r \mu_{0k} + \sum_t g_{tk} x_t) / (n_k + r)`, and the
    variance is adapted likewise. With :math:`\pi_k = n_k / T`, the blocks of each
    reference are

    - "means": :math:`\sqrt{\pi_k} (\mu_k - \mu_{0k}) / \sigma_{0k}`;
    - "scales": :math:`\sqrt{\pi_k} \log(\sigma_k / \sigma_{0k})`;
    - "thirds": the means block of each third of the sequence, weighted by
      :math:`\sqrt{n_{k,third} / T}`;
    - "occupancy": :math:`\sqrt{\pi_k}`;
    - "transitions": square roots of the expected transition frequencies.

    References of symbols have the blocks "occupancy", "transitions" and

    - "emissions": :math:`\sqrt{n_{ks} / T}`, the square roots of the expected fractions
      of frames in state :math:`k` with symbol :math:`s`.

    References of counts have "occupancy", "transitions" and, with rates
    :math:`\lambda_{0k}` that are adapted as means are,

    - "rates": :math:`2 \sqrt{\pi_k} (\sqrt{\lambda_k} - \sqrt{\lambda_{0k}})`.

    Parameters
    ----------
    n_components : int or sequence of int, default=(4, 8, 16, 32)
        Number of states of each reference. Gaussian references have no more states than
        there are distinct frames.

    relevance : float, default=2.0
        Weight of the reference as a prior, in frames per state, for the blocks "means",
        "scales", "thirds" and "rates".

    blocks : str or sequence of str, default=None
        Blocks to include in the vectors, from the list above. By default "means",
        "scales" and "thirds" for Gaussian states, "transitions" and "emissions" for
        symbols, "transitions" and "rates" for counts.

    emission : {"gaussian", "categorical", "poisson"}, default="gaussian"
        What states emit: real frames, symbols or counts.

    reference : {"hmm", "mixture"}, default="hmm"
        Whether references are hidden Markov models, or mixtures whose next state does
        not depend on the present one.

    normalize : bool, default=True
        Whether to scale each block of each reference to length 1, divided by the square
        root of the number of blocks. Blocks that are not square roots already ("means",
        "scales", "thirds", "rates") are replaced by their signed square root first. If
        False, the "means" and "scales" blocks keep the units of the distance between
        models.

    max_iter : int, default=None
        Largest number of EM steps per reference. By default 4 for Gaussian states,
        which start from clusters, and 25 for others, which start at random.

    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the vectors. They are computed in double precision.

    n_jobs : int, default=None
        Number of joblib workers of `transform`; None means 1 unless in a
        `joblib.parallel_config` context. It never changes the result.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the sample of training frames and of the start values.

    verbose : int, default=0
        Whether to show progress bars.

    Attributes
    ----------
    reference_models_ : HMMBatch
        The references, in the units of the data.

    n_features_in_ : int
        Number of features of a frame; number of columns if `fit` was given a 2-D array.

    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences that have names.

    n_iter_ : int
        Largest number of EM steps that a reference took.

    See Also
    --------
    make_classifier : Classifier of sequences built on these vectors.
    HMMTransformer : One model per sequence, for distances between models.

    Notes
    -----
    Channels are standardized internally, so units and offsets do not matter. The
    entries of a channel are 0 if it does not vary in the training data, or is missing
    in the sequence. Symbols that `fit` has not seen count as not observed. After `fit`,
    the vector of a sequence depends on that sequence alone, so a large collection can
    be transformed in parts. References are learned from at most 20 000 frames: if there
    are more, `fit` draws pieces of sequences at random.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from skawhmm import HMMEmbedding
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=40, n_features=3, random_state=0)
    >>> vectors = HMMEmbedding(n_components=(2, 4), random_state=0)
    >>> ridge = make_pipeline(vectors, RidgeClassifier()).fit(X[:20], y[:20])
    >>> ridge.score(X[20:], y[20:])
    1.0

    Symbols, here letters: the two states learn to separate consonants and vowels.

    >>> words = ["banana", "tomato", "potato", "papaya", "salami", "casino"]
    >>> letters = HMMEmbedding(2, emission="categorical", random_state=0).fit(words)
    >>> letters.reference_models_.decode(["potato"])[0]
    [array([1, 0, 1, 0, 1, 0])]
    """

    _parameter_checks: ClassVar = {
        **EstimatorMixin._parameter_checks,
        "n_components": check_counts,
        "relevance": partial(check_real, low=0, high=np.inf, include_low=False),
        "emission": partial(check_choice, choices=tuple(KINDS)),
        "reference": partial(check_choice, choices=("hmm", "mixture")),
        "normalize": check_boolean,
        "max_iter": partial(check_optional, check=partial(check_integer, low=1)),
        "dtype": partial(check_float_type, choices=("float32", "float64")),
    }
    _read_later: ClassVar = frozenset({"relevance", "blocks", "normalize", "dtype"})

    def __init__(
        self,
        n_components: int | Sequence[int] = (4, 8, 16, 32),
        relevance: float = 2.0,
        blocks: str | Sequence[str] | None = None,
        *,
        emission: str = "gaussian",
        reference: str = "hmm",
        normalize: bool = True,
        max_iter: int | None = None,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.relevance = relevance
        self.blocks = blocks
        self.emission = emission
        self.reference = reference
        self.normalize = normalize
        self.max_iter = max_iter
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike | None = None) -> "HMMEmbedding":
        """Learn the references.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Training sequences; also a 3-D array padded by NaN, or a 2-D array whose
            rows are univariate sequences.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : HMMEmbedding
            The fitted transformer.
        """
        self._begin_fit()
        kind = KINDS[self.emission]()
        sizes = check_counts("n_components", self.n_components)
        sequences = kind.checked(self, X, y, reset=True)
        rng = random_stream(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        recordings, _ = recordings_of(kind.of_one_scale(sequences))
        self._kind = kind.fit(
            sampled_pieces(recordings, rng),
            sizes,
            is_chain=self.reference == "hmm",
            max_iter=kind.max_iter if self.max_iter is None else self.max_iter,
            seed=seed,
            verbose=self.verbose,
        )
        self.n_iter_ = max(reference.n_iter for reference in kind.references)
        models = kind.batch()
        self.reference_models_ = models._changed(feature_names=fitted_names(self))
        return self

    def transform(self, X: Any) -> Any:
        """Return one vector per sequence.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences, in any form that `fit` takes.

        Returns
        -------
        vectors : ndarray of shape (n_sequences, n_features_out)
            One row per sequence.
        """
        self._check_ready()
        sequences = self._kind.checked(self, X, reset=False)
        blocks = check_blocks("blocks", self.blocks, self._kind)
        recipe = self._kind.recipe(blocks, float(self.relevance), bool(self.normalize))
        recordings, firsts = recordings_of(sequences)
        lengths = np.add.reduceat([len(x) for x in recordings], firsts[:-1])
        # Items of a plain list are found faster.
        data = [*recordings], firsts, recipe, self.dtype
        tasks = task_ranges(lengths)
        results = completed(
            embedded_task,
            data,
            tasks,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            label="vectors",
        )
        vectors: Any = None
        for (first, last), rows in zip(tasks, results, strict=True):
            if vectors is None:
                vectors = np.empty((len(sequences), rows.shape[1]), self.dtype)
            vectors[first:last] = rows
        return vectors

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the entries of the vectors.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features_in_,), default=None
            Names of the channels; they are not used if `fit` was given a 2-D array.

        Returns
        -------
        names : ndarray of str
            For example ``"r0_means_s1_x2"``: reference 0, block "means", state 1,
            channel 2.
        """
        self._check_ready()
        channels = input_names(self, input_features)
        return np.array(self._feature_names(channels), dtype=object)

    def _feature_names(self, channels):
        return [
            f"r{r}_{name}"
            for r, reference in enumerate(self._kind.references)
            for block in check_blocks("blocks", self.blocks, self._kind)
            for name in block_names(
                block, len(reference.weights), self._kind.channels(channels)
            )
        ]

    def _check_parameters(self):
        super()._check_parameters()
        blocks = check_blocks("blocks", self.blocks, KINDS[self.emission])
        if not ADAPTED.intersection(blocks):
            reason = f"with emission={self.emission!r} and blocks={self.blocks!r}"
            default = defaults_of(type(self))["relevance"]
            check_unused("relevance", self.relevance, default, reason)


def task_ranges(lengths):
    """Return ranges of sequences that are small enough for one task."""
    cuts, n_frames = [0], 0
    for i, length in enumerate(lengths):
        full = n_frames + length > TASK_FRAMES or i - cuts[-1] == TASK_SEQUENCES
        if full and i > cuts[-1]:
            cuts.append(i)
            n_frames = 0
        n_frames += length
    return list(zip(cuts, [*cuts[1:], len(lengths)], strict=True))


def embedded_task(data, first, last):
    """Return the vectors of a range of sequences."""
    recordings, firsts, recipe, dtype = data
    chosen = recordings[firsts[first] : firsts[last]]
    owners = np.repeat(np.arange(last - first), np.diff(firsts[first : last + 1]))
    return embedded_rows(chosen, owners, recipe, dtype)
