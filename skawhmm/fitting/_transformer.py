"""Sequences in, models out."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin

from skawhmm.emissions._registry import FAMILIES
from skawhmm.fitting._coordinates import OTHER_SCALE
from skawhmm.fitting._em_loop import FitOptions
from skawhmm.fitting._markov_chain import pooled_chain, uniform_chain, visible_fits
from skawhmm.fitting._parallel_fit import fit_models, fit_pool, make_batch, scored
from skawhmm.fitting._pooled import PooledModel, of_other_scale
from skawhmm.models._batch import HMMBatch
from skawhmm.sequences._checks import check_not_distances
from skawhmm.sequences._forms import check_not_lengths, warn_caller, warn_of_form
from skawhmm.sequences._names import check_names, fitted_names, matched_columns
from skawhmm.utils._checks import (
    check_boolean,
    check_choice,
    check_integer,
    check_n_jobs,
    check_random,
    check_real,
    check_verbose,
)
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._parameters import ParametersMixin, Unused
from skawhmm.utils._seeds import random_stream

OPTIONS = {
    "emission": FAMILIES,
    "covariance_type": ("diag", "full", "spherical", "tied"),
    "init": ("kmeans", "pooled"),
    "topology": ("ergodic", "left-to-right", "linear"),
    "weights": ("occupancy", "stationary", "uniform"),
    "missing": ("zero", "common"),
}

# Parameters that only some families of states have, by family.
FAMILY_OPTIONS = {name: family.fit_options for name, family in FAMILIES.items()}


def other_options(name):
    """Return the parameters of other families of states than the named one."""
    return tuple(
        sorted(frozenset().union(*FAMILY_OPTIONS.values()) - FAMILY_OPTIONS[name])
    )


CRITERIA = ("aic", "bic")

# Parameters that an estimator of hmmlearn has itself, or does not have.
ESTIMATOR_OPTIONS = ("init", "topology", "max_iter", "tol")


def is_visible(n_components):
    """Whether states are the symbols themselves."""
    return isinstance(n_components, str) and n_components == "symbols"


class HMMTransformer(ParametersMixin, TransformerMixin, BaseEstimator):
    """Fit one hidden Markov model to every sequence.

    All models are fitted in one compiled batch by expectation maximisation (EM). The
    model of a sequence depends on its values, on `random_state` and, with a pooled
    model, on the training sequences. It does not depend on the other sequences of the
    same call, on their order, or on `n_jobs`.

    The parameters, by what they govern:

    - the model: `n_components`, `max_components`, `covariance_type`, `n_mix`,
      `topology`;
    - what its states emit: `emission`, `symbols`, `symbol_costs`;
    - start values and prior: `init`, `prior`, `relevance`, `n_init`;
    - when EM stops, and the least variance: `max_iter`, `tol`, `reg_covar`;
    - what the models carry: `weights`, `missing`, `keep_sequences`;
    - how the work is done: `engine`, `n_jobs`, `random_state`, `verbose`.

    Parameters
    ----------
    n_components : int or {"bic", "aic", "symbols"}, default=3
        Number of states per model. A criterion chooses the number between 1 and
        `max_components` for each sequence; with a pooled model it chooses once, for
        that model. Sequences with fewer distinct frames get fewer states.
        "symbols", with ``emission="categorical"``, makes visible Markov chains: one
        state per symbol of the alphabet, with transitions that are counted, not
        learned by EM.

    covariance_type : {"diag", "full", "spherical", "tied"}, default="diag"
        Form of the covariances of Gaussian states. Spherical covariances are stored as
        diagonal ones, tied covariances as full ones.

    emission : {"gaussian", "categorical", "poisson"}, default="gaussian"
        What states emit: vectors of numbers, symbols, or counts in one or more
        channels.

    symbols : str or array-like of shape (n_symbols,), default=None
        With ``emission="categorical"``, all symbols that may occur: characters, strings
        or integers. By default those of the training sequences, or, with
        `symbol_costs`, the integers from 0.

    symbol_costs : array-like of shape (n_symbols, n_symbols), default=None
        Distances between `symbols`, in their order, by which distances compare states.
        By default any two symbols have distance 1.

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
        it, and a warning names them; so with a pooled prior.

    prior : {None, "pooled"} or float, default=None
        With "pooled", every model is the pooled model adapted to its sequence by
        maximum a posteriori. This makes short sequences usable. A number is for
        visible chains: it is added to every count. Either of the two makes everything
        possible in a visible chain, which `KL` needs.

    relevance : float, default=4.0
        Weight of the pooled model as a prior, in frames per state, with
        ``prior="pooled"``.

    n_init : int, default=1
        Number of fits from different start values; the most likely one is kept. With
        a pooled model, it is that model which is fitted so many times.

    max_iter : int, default=100
        Largest number of EM steps. Visible chains, and estimators given as `engine`,
        do not have this parameter, nor `tol`.

    tol : float, default=1e-5
        EM stops if a step gains at most this much log likelihood per frame.

    reg_covar : float, default=1e-4
        Least variance of a Gaussian state in any direction, as a share of the variance
        of the sequence. Channels that do not vary at all keep variance 0.

    max_components : int, default=8
        Largest number of states that a criterion may choose, if `n_components` is one.

    weights : {"occupancy", "stationary", "uniform"}, default="occupancy"
        State probabilities of the models: the expected share of frames in each state,
        the stationary law of the transition matrix, or equal probabilities. If
        sequences are short and change state rarely, the first two are noisy, and equal
        probabilities compare the states without that noise.

    missing : {"zero", "common"}, default="zero"
        What becomes of a channel without any value in a sequence: it gets mean and
        variance 0, or it is left out when the model is compared with others. Single
        missing values (NaN) are accepted by diagonal and spherical models, which skip
        them. For Gaussian states only.

    engine : {"batched", "hmmlearn"} or hmmlearn estimator, default="batched"
        What fits Gaussian states: our own compiled EM, or that of hmmlearn from the
        same start values. An estimator, such as ``VariationalGaussianHMM()`` or
        ``GMMHMM(n_mix=2)``, is cloned for every sequence and keeps its own start
        values, priors and stopping rule.

    keep_sequences : bool, default=False
        Whether the models carry the sequences they were fitted to;
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
        The model of all training sequences, if `init` or `prior` asks for one. Its
        `info` has the same columns as that of the models `transform` returns.

    symbols_ : ndarray of shape (n_symbols,)
        The alphabet, with ``emission="categorical"``.

    See Also
    --------
    HMMBatch : What `transform` returns.
    HMMEmbedding : One vector per sequence, without a model of its own.

    Notes
    -----
    A parameter that has no effect must keep its default, such as `covariance_type` if
    states emit symbols. Parameters other than `missing`, `keep_sequences`, `n_jobs` and
    `verbose` need another `fit` if they are changed. An error names them otherwise.

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

    Every character of a text is a symbol. One state learns the vowel, the other one
    the consonants:

    >>> hmm = HMMTransformer(n_components=2, emission="categorical", random_state=0)
    >>> models = hmm.fit_transform(["banana"])
    >>> hmm.symbols_.tolist()
    ['a', 'b', 'n']
    >>> models.emissionprobs[0].round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.33, 0.67]])

    In a visible chain every symbol is a state. Here "n" follows every "a" but the last,
    and "a" follows every "b" and "n":

    >>> chain = HMMTransformer("symbols", emission="categorical")
    >>> chain.fit_transform(["banana"]).transmats[0]
    array([[0., 0., 1.],
           [1., 0., 0.],
           [1., 0., 0.]])
    """

    _unused: ClassVar = (
        *(
            Unused(other_options(name), "emission", name.__eq__)
            for name in FAMILY_OPTIONS
        ),
        Unused(
            ("topology", "init", "n_init", "max_iter", "tol"),
            "n_components",
            is_visible,
        ),
        Unused(("max_components",), "n_components", lambda n: n not in CRITERIA),
        Unused(("relevance",), "prior", lambda prior: prior != "pooled"),
        Unused(("prior", "n_mix"), "engine", lambda engine: engine != "batched"),
        Unused(ESTIMATOR_OPTIONS, "engine", lambda engine: not isinstance(engine, str)),
    )
    _read_later: ClassVar = frozenset({"missing", "keep_sequences"})

    def __init__(
        self,
        n_components: int | str = 3,
        covariance_type: str = "diag",
        *,
        emission: str = "gaussian",
        symbols: str | ArrayLike | None = None,
        symbol_costs: ArrayLike | None = None,
        n_mix: int = 1,
        topology: str = "ergodic",
        init: str = "kmeans",
        prior: str | float | None = None,
        relevance: float = 4.0,
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-5,
        reg_covar: float = 1e-4,
        max_components: int = 8,
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
        self.symbols = symbols
        self.symbol_costs = symbol_costs
        self.n_mix = n_mix
        self.topology = topology
        self.init = init
        self.prior = prior
        self.relevance = relevance
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_components = max_components
        self.weights = weights
        self.missing = missing
        self.engine = engine
        self.keep_sequences = keep_sequences
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "HMMTransformer":
        """Check the parameters and, if one is asked for, learn the pooled model.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Training sequences. Also an array of shape (n_sequences, n_timesteps,
            n_features) with trailing NaN as padding, or one of shape (n_sequences,
            n_timesteps) whose rows are univariate sequences. Symbols are given as a
            list of texts, or of sequences of strings or integers.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        self._learned(X, y)
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
        return self._modelled(self._learned(X, y))

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
            ``converged``, ``n_iter``, ``log_likelihood`` (that of `HMMBatch.score`) and
            ``n_timesteps``, and its `counts` are the expected frames per state and
            transitions.
        """
        self._check_ready()
        check_not_distances(type(self).__name__, X)
        X, names = matched_columns(X)
        check_names(self, names, reset=False)
        return self._modelled(self._family.checked(X, type(self).__name__))

    def _learned(self, X, y):
        """Learn from the training sequences; return them checked."""
        self._begin_fit()
        check_not_lengths(X, y)
        check_not_distances(type(self).__name__, X)
        X, names = matched_columns(X)
        self._family, sequences = FAMILIES[self.emission].blank(X, self)
        warn_of_form(X)
        check_names(self, names, reset=True)
        self.n_features_in_ = sequences[0].shape[1]
        for name, value in self._family.extras.items():
            setattr(self, f"{name}_", value)
        largest = np.iinfo(np.int32).max
        self._seed = int(random_stream(self.random_state).randint(largest))
        self._pooled: Any = None
        self.pooled_model_ = None
        if "pooled" in {self.init, self.prior}:
            self._family.check_gaps(sequences, self)
            self._pooled, fit = self._fit_pool(sequences)
            self.pooled_model_ = make_batch(
                [fit], self._family, weights=self.weights, feature_names=names
            )
        return sequences

    def _modelled(self, sequences):
        """Return one fitted model per checked sequence."""
        self._family.check_gaps(sequences, self)
        fits = self._fits(sequences)
        self._warn_of_few_states(fits)
        self._warn_of_other_scales(sequences)
        models = make_batch(
            fits,
            self._family,
            weights=self.weights,
            mask_missing=self.missing == "common",
            sequences=sequences if self.keep_sequences else None,
            feature_names=fitted_names(self),
        )
        is_gaussian = self.emission == "gaussian"
        return scored(models, sequences) if is_gaussian else models

    def set_output(self, *, transform: str | None = None) -> "HMMTransformer":  # noqa: ARG002
        """Do nothing: models have no form as a table.

        A `Pipeline` calls it on all its steps.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            Ignored.

        Returns
        -------
        self : object
            The transformer.
        """
        return self

    def _fit_pool(self, sequences):
        """Return what `_fits` takes as the pooled model, and its fit."""
        if is_visible(self.n_components):
            return pooled_chain(sequences, len(self.symbols_), self.relevance)
        return fit_pool(sequences, self._options(), self.n_jobs)

    def _fits(self, sequences):
        """Return one fit per sequence."""
        if is_visible(self.n_components):
            return visible_fits(sequences, len(self.symbols_), *self._chain_prior())
        return fit_models(
            sequences,
            self._options(),
            pooled=self._pooled,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )

    def _chain_prior(self):
        """Return the prior of visible chains, and its weight per law."""
        if self.prior is None:
            return None, 0.0
        if isinstance(self.prior, str):
            return self._pooled, self.relevance
        n_symbols = len(self.symbols_)
        return uniform_chain(n_symbols), float(self.prior) * n_symbols

    def _check_parameters(self):
        for name, choices in OPTIONS.items():
            check_choice(name, getattr(self, name), choices)
        self._check_states()
        for name in ("n_mix", "n_init", "max_components"):
            check_integer(name, getattr(self, name), 1)
        check_integer("max_iter", self.max_iter, 0)
        check_real("relevance", self.relevance, 0, np.inf, include_low=False)
        for name in ("tol", "reg_covar"):
            check_real(name, getattr(self, name), 0, np.inf)
        check_random("random_state", self.random_state)
        check_boolean("keep_sequences", self.keep_sequences)
        check_n_jobs("n_jobs", self.n_jobs)
        check_verbose("verbose", self.verbose)
        self._check_engine()
        self._check_effects()

    def _check_states(self):
        if not isinstance(self.n_components, str):
            check_integer("n_components", self.n_components, 1)
        elif self.n_components not in {"aic", "bic", "symbols"}:
            raise ValueError(
                "n_components must be an integer of at least 1, 'aic', 'bic' or "
                f"'symbols', got {self.n_components!r}."
            )
        if is_visible(self.n_components) and self.emission != "categorical":
            raise ValueError(
                "emission must be 'categorical' with n_components='symbols', got "
                f"{self.emission!r}."
            )
        if isinstance(self.prior, str):
            check_choice("prior", self.prior, ("pooled",))
        elif self.prior is not None:
            check_real("prior", self.prior, 0, np.inf, include_low=False)
            if not is_visible(self.n_components):
                raise ValueError(
                    "prior must be None or 'pooled' unless n_components='symbols', got "
                    f"{self.prior!r}."
                )

    def _check_engine(self):
        able = hasattr(self.engine, "fit") and hasattr(self.engine, "set_params")
        if isinstance(self.engine, str):
            check_choice("engine", self.engine, ("batched", "hmmlearn"))
        elif not able or isinstance(self.engine, type):
            raise TypeError(
                "engine must be 'batched', 'hmmlearn' or an hmmlearn estimator, got "
                f"{type(self.engine).__name__}."
            )

    def _sizes(self):
        """Return the criterion or None, and the (largest) number of states."""
        if isinstance(self.n_components, str):
            return self.n_components, self.max_components
        return None, self.n_components

    def _options(self):
        criterion, n_components = self._sizes()
        return FitOptions(
            n_components=n_components,
            covariance_type=self.covariance_type,
            topology=self.topology,
            n_mix=self.n_mix,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            reg_covar=self.reg_covar,
            relevance=self.relevance if self.prior == "pooled" else 0.0,
            criterion=criterion,
            seed=self._seed,
            engine=self._resolved_engine(),
            family=self._family,
        )

    def _resolved_engine(self):
        """Return the engine that replaces our own EM loop, None if there is none."""
        if isinstance(self.engine, str) and self.engine == "batched":
            return None
        from skawhmm.fitting._hmmlearn_engine import resolve_engine

        return resolve_engine(self.engine, self.covariance_type)

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
        if not isinstance(self._pooled, PooledModel):
            return
        other = of_other_scale(sequences, self._pooled)
        if other.any():
            warn_caller(
                f"{np.count_nonzero(other)} of {len(other)} sequences have values more "
                f"than {OTHER_SCALE:g} times as large or as small as those of the "
                f"pooled model; the first is X[{np.argmax(other)}]. Their models are "
                "fitted without it, and their states do not correspond to those of the "
                "others. Check their units, or standardise each sequence."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags
