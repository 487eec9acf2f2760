"""The transformer that fits one hidden Markov model per sequence."""

from dataclasses import replace
from functools import partial
from itertools import chain
from operator import ne
from typing import Any, ClassVar

import numpy as np

from skawhmm.emissions._base import Emission
from skawhmm.emissions._gaussian import COVARIANCE_TYPES, Gaussian, check_filled
from skawhmm.emissions._registry import check_emission
from skawhmm.fitting._base import (
    WEIGHTS,
    ModelTransformer,
    make_batch,
    scored,
    with_columns,
)
from skawhmm.fitting._coordinates import OTHER_SCALE
from skawhmm.fitting._em import FitOptions, general_fits, general_pooled_fit
from skawhmm.fitting._gaussian_fit import independent_fits
from skawhmm.fitting._pooled import (
    PooledModel,
    of_other_scale,
    pooled_fit,
    pooled_fits,
)
from skawhmm.models._batch import HMMBatch
from skawhmm.sequences._forms import warn_caller
from skawhmm.sequences._names import fitted_names
from skawhmm.sequences._trials import recordings_of, unit_frames
from skawhmm.utils._checks import (
    WORK_CHECKS,
    check_boolean,
    check_choice,
    check_integer,
    check_random,
    check_real,
)
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._parallel import completed, even_ranges, workers_are_threads
from skawhmm.utils._parameters import Unused
from skawhmm.utils._seeds import random_stream

CRITERIA = ("aic", "bic")
# Largest number of states that a criterion may choose.
MOST_STATES = 8

# Parameters that do not apply if `engine` is an hmmlearn estimator.
ESTIMATOR_OPTIONS = ("init", "topology", "max_iter", "tol")


def check_size(name, value):
    """Raise unless `value` is a number of states or a criterion."""
    if not isinstance(value, str):
        check_integer(name, value, 1)
    elif value not in CRITERIA:
        raise ValueError(
            f"{name} must be an integer of at least 1, 'aic' or 'bic', got {value!r}. "
            "MarkovChainTransformer makes chains with one state per symbol."
        )


def check_engine(name, value):
    """Raise unless `value` is the name of an engine, or an estimator of hmmlearn."""
    able = hasattr(value, "fit") and hasattr(value, "set_params")
    if isinstance(value, str):
        check_choice(name, value, ("batched", "hmmlearn"))
    elif not able or isinstance(value, type):
        raise TypeError(
            f"{name} must be 'batched', 'hmmlearn' or an hmmlearn estimator, got "
            f"{type(value).__name__}."
        )


class HMMTransformer(ModelTransformer):
    """Fit one hidden Markov model to every sequence, or unit of several `Trials`.

    All models are fitted in one compiled batch by expectation maximisation (EM). The
    model of a sequence depends on its values, on `random_state` and, with a pooled
    model, on the training sequences. It does not depend on the other sequences of the
    same call, on their order, or on `n_jobs`.

    The parameters, by what they govern:

    - the model: `n_components`, `covariance_type`, `n_mix`, `topology`;
    - what its states emit: `emission`;
    - start values and prior: `init`, `prior`, `relevance`, `n_init`;
    - when EM stops: `max_iter`, `tol`;
    - what the models carry: `weights`, `missing`, `keep_sequences`;
    - how the work is done: `engine`, `n_jobs`, `random_state`, `verbose`.

    Parameters
    ----------
    n_components : int or {"bic", "aic"}, default=3
        Number of states per model. A criterion chooses between 1 and 8 states for each
        sequence, or once for the pooled model if there is one. Sequences with fewer
        distinct frames get fewer states.

    covariance_type : {"diag", "full", "spherical", "tied"}, default="diag"
        Form of the covariances of Gaussian states; a shorthand for
        ``emission=Gaussian(covariance_type)``.

    emission : {"gaussian", "categorical", "poisson"} or Emission, default="gaussian"
        What states emit: vectors of numbers, symbols, or counts in one or more
        channels. Pass an instance to set options, such as
        ``Gaussian("full", reg_covar=0.01)`` or ``Categorical("ACGT")``, or to use your
        own family.

    n_mix : int, default=1
        Number of Gaussians per state. A state with several Gaussians becomes several
        states that are entered in fixed proportions.

    topology : {"ergodic", "left-to-right", "linear"}, default="ergodic"
        Allowed transitions: to all states; to the same and all later states; to the
        same and the next state. The last two start in the first state.

    init : {"kmeans", "pooled"}, default="kmeans"
        Start values. By default each sequence has its own: clusters of frames by
        k-means (segments in time, if the topology is not ergodic) with their
        covariances and counted transitions. With "pooled", all models start from one
        model of all training sequences, so that their states correspond. Sequences
        with values 10 000 times larger or smaller than the others are fitted without
        it, and a warning names them. The same holds for a pooled prior.

    prior : {None, "pooled"}, default=None
        With "pooled", every model is the pooled model adapted to its sequence by
        maximum a posteriori (MAP) estimation. This makes short sequences usable.

    relevance : float, default=4.0
        Weight of the pooled model as a prior, in frames per state, with
        ``prior="pooled"``.

    n_init : int, default=1
        Number of fits from different start values; the most likely one is kept. If
        there is a pooled model, only that model is fitted `n_init` times.

    max_iter : int, default=100
        Largest number of EM steps. Estimators given as `engine` ignore it, and `tol`;
        both must then keep their defaults.

    tol : float, default=1e-5
        EM stops if a step gains at most this much log likelihood per frame.

    weights : {"occupancy", "stationary", "uniform"}, default="occupancy"
        State probabilities of the models: the expected fraction of frames in each
        state, the stationary distribution of the transition matrix, or equal
        probabilities. If
        sequences are short and change state rarely, the first two are noisy, and equal
        probabilities compare the states without that noise.

    missing : {"zero", "common"}, default="zero"
        How to treat a channel that has no value at all in a sequence: "zero" gives it
        mean and variance 0, "common" leaves it out of comparisons with other models.
        Single missing values (NaN) are skipped by diagonal and spherical models; other
        models do not accept them. For Gaussian states only.

    engine : {"batched", "hmmlearn"} or hmmlearn estimator, default="batched"
        EM implementation for Gaussian states: our own compiled one, or hmmlearn's from
        the same start values. An estimator, such as ``VariationalGaussianHMM()`` or
        ``GMMHMM(n_mix=2)``, is cloned for every sequence and keeps its own start
        values, priors and stopping rule.

    keep_sequences : bool, default=False
        Whether the models keep the sequences they were fitted to;
        ``KL(method="data")`` needs them.

    n_jobs : int, default=None
        Number of joblib workers; None means 1 unless in a `joblib.parallel_config`
        context. It never changes the result.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the start values.

    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of the training sequences.

    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences that have names: data frames
        or the result of :func:`as_sequences`. The models carry them.

    pooled_model_ : HMMBatch or None
        The model of all training sequences, if `init` or `prior` is "pooled". Its
        `info` has the same columns as the models that `transform` returns.

    symbols_ : ndarray of shape (n_symbols,)
        The alphabet, if states emit symbols.

    See Also
    --------
    HMMBatch : What `transform` returns.
    MarkovChainTransformer : Chains with one state per symbol.
    HMMEmbedding : One vector per sequence, without a model of its own.

    Notes
    -----
    A parameter that has no effect must keep its default, such as `covariance_type` if
    states emit symbols. After changing parameters other than `missing`,
    `keep_sequences`, `n_jobs` and `verbose`, call `fit` again; otherwise `transform`
    raises an error that names them.

    Examples
    --------
    A sequence that jumps between two levels:

    >>> import numpy as np
    >>> from skawhmm import HMMTransformer
    >>> rng = np.random.default_rng(0)
    >>> levels = np.repeat([0.0, 5.0, 0.0, 5.0], 50)
    >>> X = [(levels + rng.normal(size=200))[:, None]]
    >>> models = HMMTransformer(n_components=2, random_state=0).fit_transform(X)
    >>> models
    HMMBatch(n_models=1, n_components=2, n_features=1, covariance_type='diag')
    >>> models.means[0].round(1)
    array([[0.1],
           [5. ]])
    >>> models.transmats[0].round(2)
    array([[0.98, 0.02],
           [0.01, 0.99]])

    In a text, every character is a symbol. One state learns the vowel, the other the
    consonants:

    >>> hmm = HMMTransformer(n_components=2, emission="categorical", random_state=0)
    >>> models = hmm.fit_transform(["banana"])
    >>> hmm.symbols_.tolist()
    ['a', 'b', 'n']
    >>> models.emissionprobs[0].round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.33, 0.67]])
    """

    _parameter_checks: ClassVar = {
        **WORK_CHECKS,
        "n_components": check_size,
        "covariance_type": partial(check_choice, choices=COVARIANCE_TYPES),
        "emission": check_emission,
        "n_mix": partial(check_integer, low=1),
        "topology": partial(
            check_choice, choices=("ergodic", "left-to-right", "linear")
        ),
        "init": partial(check_choice, choices=("kmeans", "pooled")),
        "prior": partial(check_choice, choices=(None, "pooled")),
        "relevance": partial(check_real, low=0, high=np.inf, include_low=False),
        "n_init": partial(check_integer, low=1),
        "max_iter": partial(check_integer, low=0),
        "tol": partial(check_real, low=0, high=np.inf),
        "weights": partial(check_choice, choices=WEIGHTS),
        "missing": partial(check_choice, choices=("zero", "common")),
        "engine": check_engine,
        "keep_sequences": check_boolean,
        "random_state": check_random,
    }
    _unused: ClassVar = (
        Unused(("covariance_type",), "emission", lambda e: isinstance(e, Emission)),
        Unused(
            ("covariance_type", "engine", "missing", "n_mix"),
            "emission",
            lambda emission: (
                not isinstance(check_emission("emission", emission), Gaussian)
            ),
        ),
        Unused(("relevance",), "prior", partial(ne, "pooled")),
        Unused(("prior", "n_mix"), "engine", partial(ne, "batched")),
        Unused(ESTIMATOR_OPTIONS, "engine", lambda engine: not isinstance(engine, str)),
    )
    _read_later: ClassVar = frozenset({"missing", "keep_sequences"})

    def __init__(
        self,
        n_components: int | str = 3,
        covariance_type: str = "diag",
        *,
        emission: str | Emission = "gaussian",
        n_mix: int = 1,
        topology: str = "ergodic",
        init: str = "kmeans",
        prior: str | None = None,
        relevance: float = 4.0,
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-5,
        weights: str = "occupancy",
        missing: str = "zero",
        engine: Any = "batched",
        keep_sequences: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.emission = emission
        self.n_mix = n_mix
        self.topology = topology
        self.init = init
        self.prior = prior
        self.relevance = relevance
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.weights = weights
        self.missing = missing
        self.engine = engine
        self.keep_sequences = keep_sequences
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "HMMTransformer":
        """Check the parameters and, if they ask for one, fit the pooled model.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features), or of Trials
            Training sequences; :class:`~skawhmm.sequences.Trials` group several
            recordings into one model. Also an array of shape (n_sequences, n_timesteps,
            n_features) with trailing NaN as padding, or of shape (n_sequences,
            n_timesteps) whose rows are univariate sequences. For symbols, a list of
            texts or of sequences of strings or integers.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        self._begin_fit()
        self._fitted_sequences(X, y)
        return self

    @all_or_nothing
    def fit_transform(self, X: Any, y: Any = None) -> HMMBatch:
        """Fit, and return one fitted model per sequence.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences, in any form that `fit` takes.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        models : HMMBatch
            The models, as `transform` returns them.
        """
        self._begin_fit()
        return with_columns(self._modelled(self._fitted_sequences(X, y)), X)

    def transform(self, X: Any) -> HMMBatch:
        """Return one fitted model per sequence.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences, in any form that `fit` takes.

        Returns
        -------
        models : HMMBatch
            The models, in the order of the sequences. Its `info` has the columns
            ``converged``, ``n_iter``, ``log_likelihood`` (as in `HMMBatch.score`),
            ``n_timesteps`` and ``n_trials``, plus the columns of a
            :class:`~skawhmm.sequences.WindowList`. Its `counts` are the expected
            numbers of frames per state and of transitions.
        """
        return with_columns(self._modelled(self._checked(X)), X)

    def _fitted_sequences(self, X, y):
        """Learn from the training sequences; return them checked."""
        sequences = self._learned(X, y, self._given_template())
        largest = np.iinfo(np.int32).max
        self._seed = int(random_stream(self.random_state).randint(largest))
        self._pooled: Any = None
        self.pooled_model_ = None
        if self._is_pooled:
            self._check_missing(sequences)
            self._pooled, fit = fit_pool(sequences, self._options(), self.n_jobs)
            self.pooled_model_ = make_batch(
                [fit],
                self._template,
                weights=self.weights,
                feature_names=fitted_names(self),
            )
        return sequences

    def _modelled(self, sequences):
        """Return one fitted model per checked sequence, with its log likelihood."""
        models = self._unscored(sequences)
        is_gaussian = isinstance(self._template, Gaussian)
        return scored(models, sequences, self.n_jobs) if is_gaussian else models

    def _unscored(self, sequences):
        """Return fitted models with the log likelihoods of the last EM step."""
        self._check_missing(sequences)
        fits = fit_models(
            sequences,
            self._options(),
            pooled=self._pooled,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self._warn_of_few_states(fits)
        if isinstance(self._pooled, PooledModel):
            self._warn_of_other_scales(sequences)
        return self._batch(fits, sequences, mask_missing=self.missing == "common")

    @property
    def _is_pooled(self):
        return "pooled" in {self.init, self.prior}

    def _given_template(self):
        """Return the family of states and its options, as set by the parameters."""
        if isinstance(self.emission, str) and self.emission == "gaussian":
            return Gaussian(self.covariance_type)
        return check_emission("emission", self.emission)

    def _check_missing(self, sequences):
        """Raise if values are missing and the model cannot skip them."""
        frames = unit_frames(sequences)
        self._template.check_missing(frames, is_pooled=self._is_pooled)
        if self.engine != "batched":
            reason = f"engine={self.engine!r}"
            check_filled(frames, reason, is_pooled=self._is_pooled)

    def _check_parameters(self):
        super()._check_parameters()
        self._given_template().check_options()

    def _options(self):
        # A criterion chooses among all numbers of states up to the largest.
        size = self.n_components
        return FitOptions(
            n_components=MOST_STATES if isinstance(size, str) else size,
            topology=self.topology,
            n_mix=self.n_mix,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            relevance=self.relevance if self.prior == "pooled" else 0.0,
            criterion=size if isinstance(size, str) else None,
            seed=self._seed,
            engine=self._resolved_engine(),
            template=self._template,
        )

    def _resolved_engine(self):
        """Return the engine that replaces our own EM loop, or None."""
        if isinstance(self.engine, str) and self.engine == "batched":
            return None
        from skawhmm.fitting._hmmlearn_engine import resolve_engine

        return resolve_engine(self.engine, self._template.covariance_type)

    def _warn_of_few_states(self, fits):
        if isinstance(self.n_components, str) or self._pooled is not None:
            return
        few = [i for i, fit in enumerate(fits) if fit.n_states < self.n_components]
        if few:
            warn_caller(
                f"{len(few)} of {len(fits)} sequences have fewer distinct frames than "
                f"n_components={self.n_components} and get as many states as frames; "
                f"the first is X[{few[0]}] with {fits[few[0]].n_states}."
            )

    def _warn_of_other_scales(self, sequences):
        other = of_other_scale(sequences, self._pooled)
        if other.any():
            warn_caller(
                f"{np.count_nonzero(other)} of {len(other)} sequences have values more "
                f"than {OTHER_SCALE:g} times as large or as small as those of the "
                f"pooled model; the first is X[{np.argmax(other)}]. Their models are "
                "fitted without it, and their states do not correspond to those of the "
                "others. Check their units, or standardise each sequence."
            )


# Blocks of sequences per worker, so that workers finish at about the same time. If
# blocks would exceed `MOST_WORK`, there are more.
BLOCKS_PER_JOB = 2
# Work of a fit is counted in values; each frame costs as much as this many more values.
FRAME_VALUES = 20
# Least work in a block of fits with compiled EM steps, some 10 ms: smaller blocks spend
# their time around EM runs, where threads wait for each other.
LEAST_WORK = 2**19
# A block with at most this much work stays in the shared cache.
MOST_WORK = 2**20
# Other families draw start values and take EM steps unit by unit in Python: with fewer
# frames per unit, two threads wait for each other and are slower than one.
THREAD_FRAMES = 4000


def gaussian_fits(sequences, options, pooled=None):
    """Fit models with Gaussian states; the parameters are those of `fit_models`."""
    if pooled is None:
        return independent_fits(sequences, options)
    return pooled_fits(sequences, options, pooled)


def fit_pool(sequences, options, n_jobs=None):
    """Fit one model to all sequences together."""
    options = replace(options, template=options.template.fitted_as())
    if isinstance(options.template, Gaussian):
        return pooled_fit(sequences, options, n_jobs)
    return general_pooled_fit(sequences, options)


def fit_models(sequences, options, *, pooled=None, n_jobs=None, verbose=False):
    """Fit one model per unit.

    Parameters
    ----------
    sequences : list of ndarray of shape (n_timesteps, n_features), or Trials
        Checked sequences, one entry per unit.

    options : FitOptions
        What to fit and how.

    pooled : object, default=None
        Result of `fit_pool`: the start values or the prior.

    n_jobs : int, default=None
        Number of joblib workers; the result does not depend on it.

    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    fits : list of Fit
        One per unit, in the same order.
    """
    recordings, firsts = recordings_of(sequences)
    work = [x.size + FRAME_VALUES * len(x) for x in recordings]
    sizes = np.add.reduceat(work, firsts[:-1])
    # Families without compiled EM steps take long for a single unit.
    is_compiled = options.template.has_compiled_em
    least = LEAST_WORK if is_compiled else 1
    limits = {"per_job": BLOCKS_PER_JOB, "least": least, "most": MOST_WORK}
    tasks = even_ranges(sizes, n_jobs, **limits)
    n_frames = sum(map(len, recordings)) / len(sizes)
    if not is_compiled and n_frames < THREAD_FRAMES and workers_are_threads():
        n_jobs = 1
    parts = completed(
        fit_block,
        (sequences, options, pooled),
        tasks,
        n_jobs=n_jobs,
        verbose=verbose,
        label="fits",
        amounts=[last - first for first, last in tasks],
    )
    return list(chain.from_iterable(parts))


def fit_block(data, first, last):
    """Return fits of a range of units; an error names the unit."""
    sequences, options, pooled = data
    options = replace(options, template=options.template.fitted_as())
    is_gaussian = isinstance(options.template, Gaussian)
    fits = gaussian_fits if is_gaussian else general_fits
    try:
        return fits(sequences[first:last], options, pooled)
    except ValueError as error:
        if last - first == 1:
            text = f"X[{first}] could not be fitted: {error}."
            raise ValueError(text) from error
    return [fit for i in range(first, last) for fit in fit_block(data, i, i + 1)]
