"""One vector per sequence: its statistics relative to shared reference models."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skawhmm.features._embedding_blocks import (
    BLOCKS,
    Recipe,
    block_names,
    embedded_rows,
)
from skawhmm.features._embedding_references import (
    ReferenceOptions,
    fit_references,
    raw_model,
    sampled_pieces,
    writable_model,
)
from skawhmm.models._batch import HMMBatch
from skawhmm.sequences._input import check_input, is_models
from skawhmm.sequences._preprocessing import Deltas, TimeChannel
from skawhmm.utils._checks import check_choice, check_integer, check_real
from skawhmm.utils._parallel import Shared, completed, writable

# Frames of a task, and the most sequences: enough work to hand out, little memory.
TASK_FRAMES = 4096
TASK_SEQUENCES = 64
# Penalties tried by the classifier; vectors have length 1.
RIDGE_ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class HMMEmbedding(TransformerMixin, BaseEstimator):
    r"""Turn every sequence into a vector relative to shared reference models.

    `fit` learns a few hidden Markov models of all training frames. `transform` runs
    forward-backward on each sequence under each of them, adapts their states to it,
    and writes down what has changed. States mean the same for all sequences, so vectors
    can be compared entry by entry: they suit linear classifiers, and indexes of
    Euclidean neighbours.

    With reference means :math:`\mu_0`, variances :math:`\sigma_0^2`, expected numbers
    of frames :math:`n_k` of :math:`T` and relevance :math:`r`, the adapted mean is
    :math:`\mu_k = (r \mu_{0k} + \sum_t g_{tk} x_t) / (n_k + r)`, the variance
    likewise, :math:`\pi_k = n_k / T`, and the blocks of each reference are

    - "means": :math:`\sqrt{\pi_k} (\mu_k - \mu_{0k}) / \sigma_{0k}`;
    - "scales": :math:`\sqrt{\pi_k} \log(\sigma_k / \sigma_{0k})`;
    - "thirds": the means block of each third of the sequence, weighted by
      :math:`\sqrt{n_{k,third} / T}`;
    - "occupancy": :math:`\sqrt{\pi_k}`;
    - "transitions": square roots of the expected transition frequencies.

    Parameters
    ----------
    n_components : int or sequence of int, default=(4, 8, 16, 32)
        Number of states of each reference. Fewer distinct frames give fewer states.

    relevance : float, default=2.0
        Weight of the reference when it is adapted, in frames a state.

    blocks : str or sequence of str, default=("means", "scales", "thirds")
        What the vectors hold.

    reference : {"hmm", "mixture"}, default="hmm"
        Whether references are hidden Markov models, or mixtures whose next state does
        not depend on the present one.

    normalize : bool, default=True
        Whether to take the signed square root of each block of each reference, give it
        length 1 and divide by the square root of the number of blocks. Without it the
        "means" and "scales" blocks keep the units of the distance between models.

    n_frames : int, default=30000
        Most training frames from which references are learned, sampled in pieces.

    max_iter : int, default=8
        Largest number of EM steps.

    tol : float, default=1e-5
        EM stops when a step gains less log likelihood than this per frame.

    reg_covar : float, default=1e-2
        Least variance of a reference state in a channel, as a share of the channel's.

    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the vectors. Work is done in double precision.

    n_jobs : int, default=None
        Number of jobs; `None` means 1 unless in a `joblib.parallel_config` context.

    random_state : int, RandomState instance or None, default=None
        Seed of the sample of frames and the start values.

    verbose : bool, default=False
        Whether to show progress.

    Attributes
    ----------
    reference_models_ : HMMBatch
        The references, in the units of the data.

    n_features_in_ : int
        Number of features of a frame; of columns if `fit` was given a 2-D array.

    n_iter_ : int
        Most EM steps made for a reference.

    See Also
    --------
    make_classifier : Classifier of sequences built on these vectors.
    HMMTransformer : One model a sequence, for distances between models.

    Notes
    -----
    Channels are standardized inside, so their units and offsets change nothing. A
    channel without variation in the training data has features 0; a channel missing in
    a sequence has features 0 there. The vector of a sequence depends on it alone, not
    on its company or `n_jobs`: a large collection can be transformed piece by piece.

    Examples
    --------
    >>> from skawhmm import HMMEmbedding
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=6, n_features=3, random_state=0)
    >>> HMMEmbedding(n_components=(2, 4), random_state=0).fit_transform(X).shape
    (6, 90)
    """

    def __init__(
        self,
        n_components: int | Sequence[int] = (4, 8, 16, 32),
        relevance: float = 2.0,
        blocks: str | Sequence[str] = ("means", "scales", "thirds"),
        *,
        reference: str = "hmm",
        normalize: bool = True,
        n_frames: int = 30000,
        max_iter: int = 8,
        tol: float = 1e-5,
        reg_covar: float = 1e-2,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.relevance = relevance
        self.blocks = blocks
        self.reference = reference
        self.normalize = normalize
        self.n_frames = n_frames
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike | None = None) -> "HMMEmbedding":  # noqa: ARG002
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
        sizes = self._check_parameters()
        sequences = self._check_sequences(X, reset=True)
        rng = check_random_state(self.random_state)
        options = ReferenceOptions(
            self.reference == "hmm",
            self.max_iter,
            self.tol,
            self.reg_covar,
            int(rng.randint(np.iinfo(np.int32).max)),
        )
        pieces = sampled_pieces(sequences, self.n_frames, rng)
        self._references, self._coordinates = fit_references(
            pieces, sizes, options, n_jobs=self.n_jobs, verbose=self.verbose
        )
        self.n_iter_ = max(reference.n_iter for reference in self._references)
        self.reference_models_ = self._reference_batch()
        return self

    def transform(self, X: Any) -> Any:
        """Turn each sequence into a vector.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences in one of the forms that `fit` takes.

        Returns
        -------
        vectors : ndarray of shape (n_sequences, n_features_out)
            One row a sequence.
        """
        check_is_fitted(self)
        sequences = self._check_sequences(X, reset=False)
        shared = Shared((sequences, self._recipe()), sum(x.nbytes for x in sequences))
        tasks = task_ranges([len(x) for x in sequences])
        results = completed(
            embedded_task,
            shared,
            tasks,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            label="vectors",
        )
        width = len(self._feature_names(["x"] * self._learned_from[0]))
        vectors = np.empty((len(sequences), width), self.dtype)
        for (first, last), rows in zip(tasks, results, strict=True):
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
            Such as ``"r0_means_s1_x2"``: reference 0, state 1, channel 2.
        """
        check_is_fitted(self)
        n_channels, form = self._learned_from
        channels = [f"x{c}" for c in range(n_channels)]
        if input_features is not None:
            given = [str(name) for name in input_features]
            if len(given) != self.n_features_in_:
                raise ValueError(
                    "input_features should have length equal to n_features_in_="
                    f"{self.n_features_in_}, got {len(given)}."
                )
            channels = given if form == "sequences" else channels
        return np.array(self._feature_names(channels), dtype=object)

    def _feature_names(self, channels):
        return [
            f"r{r}_{name}"
            for r, reference in enumerate(self._references)
            for block in checked_blocks(self.blocks)
            for name in block_names(block, len(reference.weights), channels)
        ]

    def _recipe(self):
        centre, scale = writable((self._coordinates.centre, self._coordinates.scale))
        return Recipe(
            [writable_model(r.model) for r in self._references],
            replace(self._coordinates, centre=centre, scale=scale),
            checked_blocks(self.blocks),
            float(self.relevance),
            bool(self.normalize),
        )

    def _reference_batch(self):
        models = [raw_model(r, self._coordinates) for r in self._references]
        return HMMBatch(
            [model.transmat for model in models],
            [model.states[0] for model in models],
            [model.states[1] for model in models],
            weights=[reference.weights for reference in self._references],
            startprobs=[model.startprob for model in models],
        )

    def _check_parameters(self):
        check_choice("reference", self.reference, ("hmm", "mixture"))
        check_real("relevance", self.relevance, 0, np.inf, include_low=False)
        checked_blocks(self.blocks)
        for name in ("n_frames", "max_iter"):
            check_integer(name, getattr(self, name), 1)
        for name in ("tol", "reg_covar"):
            check_real(name, getattr(self, name), 0, np.inf)
        if np.dtype(self.dtype) not in {np.dtype("f4"), np.dtype("f8")}:
            raise ValueError(
                f"dtype must be numpy.float32 or numpy.float64, got {self.dtype!r}."
            )
        sizes = np.atleast_1d(np.asarray(self.n_components, dtype=object)).tolist()
        if not sizes:
            raise ValueError("n_components must name at least 1 reference, got none.")
        return [check_integer("n_components", size, 1) for size in sizes]

    def _check_sequences(self, X, reset):
        if is_models(X):
            raise TypeError(
                f"X must hold sequences for {type(self).__name__}, got an HMMBatch."
            )
        return check_input(self, X, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def checked_blocks(blocks):
    """Return the blocks as a list of names, or raise."""
    names = [blocks] if isinstance(blocks, str) else list(blocks)
    if not names:
        raise ValueError(f"blocks must name at least 1 of {list(BLOCKS)}, got none.")
    for name in names:
        check_choice("blocks", name, tuple(BLOCKS))
    return names


def task_ranges(lengths):
    """Ranges of sequences small enough to be one task."""
    cuts, n_frames = [0], 0
    for i, length in enumerate(lengths):
        full = n_frames + length > TASK_FRAMES or i - cuts[-1] == TASK_SEQUENCES
        if full and i > cuts[-1]:
            cuts.append(i)
            n_frames = 0
        n_frames += length
    return list(zip(cuts, [*cuts[1:], len(lengths)], strict=True))


def embedded_task(shared, first, last):
    """Vectors of a range of sequences."""
    sequences, recipe = shared.value
    return embedded_rows(sequences[first:last], recipe)


def make_classifier(
    *,
    cv: Any = 3,
    n_jobs: int | None = None,
    random_state: Any = None,
    memory: Any = None,
) -> GridSearchCV:
    """Make a classifier of sequences: vectors, ridge regression, chosen channels.

    A Pipeline of :class:`Deltas`, :class:`TimeChannel`, :class:`HMMEmbedding` and
    :class:`sklearn.linear_model.RidgeClassifierCV`, in a search over what is added to
    the channels: nothing, time derivatives, derivatives over 2, 4 and 8 frames, or
    derivatives and the position in the sequence.

    Parameters
    ----------
    cv : int, splitter or iterable, default=3
        Folds by which the channels are chosen. With ``GroupKFold()``, `fit` takes the
        groups (subjects, speakers) that folds keep together.

    n_jobs : int, default=None
        Number of jobs of the embedding.

    random_state : int, RandomState instance or None, default=None
        Seed of the embedding.

    memory : str or joblib.Memory, default=None
        Where the Pipeline caches fitted steps.

    Returns
    -------
    search : GridSearchCV
        The classifier; ``search.best_params_`` tells the channels it chose.

    See Also
    --------
    HMMEmbedding : The vectors.

    Examples
    --------
    >>> from skawhmm import make_classifier
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=30, random_state=0)
    >>> search = make_classifier(cv=2, random_state=0).fit(X[:20], y[:20])
    >>> search.predict(X[20:]).shape
    (10,)
    """
    pipeline = Pipeline(
        [
            ("deltas", Deltas()),
            ("position", TimeChannel()),
            ("embedding", HMMEmbedding(n_jobs=n_jobs, random_state=random_state)),
            ("ridge", RidgeClassifierCV(alphas=RIDGE_ALPHAS)),
        ],
        memory=memory,
    )
    grid = [
        {"deltas": ["passthrough"], "position": ["passthrough"]},
        {
            "deltas": [Deltas(), Deltas(lags=(2, 4, 8))],
            "position": ["passthrough"],
        },
        {"deltas": [Deltas()], "position": [TimeChannel()]},
    ]
    return GridSearchCV(pipeline, grid, cv=cv)
