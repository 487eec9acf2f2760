"""HMMBatch: a stack of hidden Markov models, and what users do with it."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skawhmm.emissions._base import Emission
from skawhmm.emissions._categorical import Categorical
from skawhmm.emissions._custom import check_state_costs
from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._poisson import Poisson
from skawhmm.models._archive import save_models, stored_parts
from skawhmm.models._causal import Forecast, HMMStream, forecasts, per_unit
from skawhmm.models._checks import (
    check_carried,
    check_feature_names,
    check_info,
    check_model_number,
    check_observed,
    check_paired,
)
from skawhmm.models._dynamax import WRITERS, dynamax_model
from skawhmm.models._exchange import given_parts
from skawhmm.models._html import batch_html
from skawhmm.models._inference import (
    best_paths,
    log_likelihood,
    model_seeds,
    posteriors,
    sample_sequences,
)
from skawhmm.models._json import json_text
from skawhmm.models._stack import ModelStack, checked_stacks
from skawhmm.models._updating import updated_models
from skawhmm.sequences._checks import check_not_distances
from skawhmm.sequences._names import (
    check_same_names,
    matched_columns,
    named_sequences,
)
from skawhmm.sequences._trials import Units, naming_trials
from skawhmm.utils._archives import room_for
from skawhmm.utils._checks import (
    check_integer,
    check_real,
    check_seed,
    check_verbose,
)


class HMMBatch(ModelStack):
    r"""Immutable stack of hidden Markov models.

    The constructor makes models with Gaussian states. `from_emissionprobs` and
    `from_rates` make models that emit symbols and counts; `from_state_costs` makes
    models from the distances between their states. `HMMTransformer` fits models to
    sequences.

    A batch is indexed like an array, and scikit-learn slices it like one. Models with
    fewer states than the largest one are padded by states that no path reaches: their
    weight and start probability are 0, and they only move to themselves.

    Parameters
    ----------
    transmats : array-like of shape (n_models, n_components, n_components)
        Transition matrices, whose rows sum to one. This and the following parameters
        may also be lists with one array per model, if numbers of states differ.

    means : array-like of shape (n_models, n_components, n_features)
        Means of the states, of size at most 1e100.

    covars : array-like of shape (n_models, n_components, n_features[, n_features])
        Variances (diagonal covariances) or covariance matrices, of size at most 1e200.
        They may be singular: a dead sensor has variance 0. Variances below 1e-290 are
        taken for 0.

    weights : array-like of shape (n_models, n_components), default=None
        State probabilities :math:`\pi` that distances use. By default the stationary
        distribution of each chain.

    startprobs : array-like of shape (n_models, n_components), default=None
        Probabilities of the first state, for sampling and likelihoods. By default the
        weights. A chain with several closed classes has no unique stationary
        distribution; its start probabilities (by default equal ones) decide between
        them.

    observed : array-like of bool of shape (n_models, n_features), default=None
        Which features each model observed. Two models are compared on the features
        that both observed. By default each model observed all.

    info : dict of array-like, default=None
        Columns with one entry per model, such as ``converged`` or ``log_likelihood``.
        They are indexed and saved with the models.

    sequences : sequence of ndarray of shape (n_timesteps, n_features), default=None
        The sequence that each model was fitted to, which ``KL(method="data")`` needs.
        They are copied. Sequences are indexed and pickled with the models, but `save`
        leaves them out: a file of models holds models only.

    feature_names : sequence of str of shape (n_features,), default=None
        Names of the features. `HMMTransformer` sets them if it is fitted to sequences
        that have names. Tables and pictures show them, estimators remember them as
        ``feature_names_in_``, and models with other names are not compared with these.

    Attributes
    ----------
    transmats, means, covars, weights, startprobs, observed, info : ndarray or dict
        As above, read-only.

    sequences : list of ndarray or Trials, or None
        As above; the arrays are read-only.

    feature_names : tuple of str, or None
        As above.

    counts : Counts or None
        What the data of fitted models contain: ``counts.states`` of shape
        (n_models, n_components), the expected number of frames in each state, and
        ``counts.transitions`` of shape (n_models, n_components, n_components), the
        expected number of steps from each state to each. A prior adds nothing to them.
        :class:`HMMTransformer` fills them in; they are indexed and saved with the
        models. None for models that were given by their parameters.

    Examples
    --------
    >>> from skawhmm import HMMBatch
    >>> models = HMMBatch(
    ...     transmats=[[[0.9, 0.1], [0.2, 0.8]], [[1.0]]],
    ...     means=[[[0.0], [3.0]], [[1.0]]],
    ...     covars=[[[1.0], [1.0]], [[0.5]]],
    ... )
    >>> models
    HMMBatch(n_models=2, n_components=1..2, n_features=1, covariance_type='diag')
    >>> models[0].weights
    array([[0.66666667, 0.33333333]])
    """

    def __init__(
        self,
        transmats: ArrayLike | Sequence[ArrayLike],
        means: ArrayLike | Sequence[ArrayLike],
        covars: ArrayLike | Sequence[ArrayLike],
        *,
        weights: ArrayLike | Sequence[ArrayLike] | None = None,
        startprobs: ArrayLike | Sequence[ArrayLike] | None = None,
        observed: ArrayLike | None = None,
        info: Mapping[str, ArrayLike] | None = None,
        sequences: Sequence[ArrayLike] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self._build(
            Gaussian(),
            transmats,
            {"means": means, "covars": covars},
            weights=weights,
            startprobs=startprobs,
            observed=observed,
            info=info,
            sequences=sequences,
            feature_names=feature_names,
        )

    def _build(
        self,
        family,
        transmats,
        states,
        *,
        shared=None,
        weights=None,
        startprobs=None,
        observed=None,
        info=None,
        sequences=None,
        feature_names=None,
        counts=None,
    ):
        """Check the parts of models, and set them.

        Parameters
        ----------
        family : Emission
            Template of the states.

        states : dict of array-like
            Parameters of the states, by name.

        shared : dict, default=None
            What all models have in common, by name; entries that are None are left out.

        transmats, weights, startprobs, observed, info : object
            As in the constructor; so are `sequences` and `feature_names`.

        counts : Counts, default=None
            What the data of the models contain.
        """
        stacks, _ = checked_stacks(transmats, states, weights, startprobs, family)
        chain = stacks["transmats"], stacks["weights"], stacks["startprobs"]
        extras = {name: v for name, v in (shared or {}).items() if v is not None}
        is_state = (chain[1] > 0) | (chain[2] > 0)
        emission = family.from_arrays({**stacks, **extras}, is_state)
        n_models = len(chain[0])
        if observed is not None:
            emission.observed = check_observed(observed, n_models, emission.n_features)
        carried = check_carried(sequences, n_models, emission)
        columns = check_info(info or {}, n_models)
        names = check_feature_names(feature_names, emission.n_features)
        self._set(emission, *chain, columns, carried, names, counts)

    @classmethod
    def _of(cls, family, transmats, states, **parts):
        """Return models of some family; the parameters are those of `_build`."""
        batch = cls.__new__(cls)
        batch._build(family, transmats, states, **parts)
        return batch

    def _repr_html_(self) -> str:
        return batch_html(self)

    @property
    def means(self) -> NDArray[np.float64]:
        """Means of the states, of models with Gaussian states."""
        return self._parameter("means")

    @property
    def covars(self) -> NDArray[np.float64]:
        """Variances or covariance matrices, of models with Gaussian states."""
        return self._parameter("covars")

    @property
    def emissionprobs(self) -> NDArray[np.float64]:
        """Probabilities of the symbols, of models that emit symbols."""
        return self._parameter("emissionprobs")

    @property
    def rates(self) -> NDArray[np.float64]:
        """Rates of the channels, of models that emit counts."""
        return self._parameter("rates")

    @property
    def symbols(self) -> NDArray[Any]:
        """The alphabet, of models that emit symbols."""
        return self._parameter("symbols")

    @property
    def state_names(self) -> tuple[str, ...] | None:
        """Names of states that each emit one symbol, as in visible chains, else None.

        State k must emit the same symbol in all models, and no two states the same one.
        Tables and pictures then show the symbols instead of numbers.
        """
        is_padded = (self.n_components < self.transmats.shape[1]).any()
        return None if is_padded else self.emission.state_names()

    def _parameter(self, name):
        known = {**self.emission.parameters, **self.emission.extras}
        if name not in known:
            raise AttributeError(
                f"Models with states of kind {self.emission.name!r} have no {name}. "
                f"They have {', '.join(known)}."
            )
        return known[name]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the batch to a file, completely or not at all.

        Parameters
        ----------
        path : str or path-like
            The file, usually named ``*.npz``. If it exists, it is replaced and keeps
            its permissions; a symbolic link is followed. Pipes and devices are refused.
        """
        save_models(path, self)

    @classmethod
    def load(
        cls, path: str | PathLike[str], *, emission: Emission | None = None
    ) -> "HMMBatch":
        """Read a batch that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        emission : Emission, default=None
            For states of a family of your own, an instance of the family. A file holds
            the arrays of the states, not the options of such a family.

        Returns
        -------
        batch : HMMBatch
            The models, equal to those saved.
        """
        parts = stored_parts(path, emission)
        try:
            # Checks need memory of their own.
            with room_for(Path(path)):
                return cls._of(**parts)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{fspath(path)!r} must hold valid models: {error}"
            ) from error

    @classmethod
    def from_state_costs(
        cls,
        transmats: ArrayLike | Sequence[ArrayLike],
        cost: Callable[[NDArray[Any], NDArray[Any]], ArrayLike] | ArrayLike,
        *,
        states: ArrayLike | Sequence[ArrayLike] | None = None,
        weights: ArrayLike | Sequence[ArrayLike] | None = None,
        startprobs: ArrayLike | Sequence[ArrayLike] | None = None,
        info: Mapping[str, ArrayLike] | None = None,
    ) -> "HMMBatch":
        """Return models with states of any kind, given the distances between them.

        `MAW`, `TransitionCoupling` and everything built on them use the distances in
        place of the 2-Wasserstein distance between Gaussian states. `KL`, `IAW`,
        `MMD`, sampling, `hmm_barycenter` and `save` need more than distances and raise
        an error.

        Parameters
        ----------
        transmats : array-like of shape (n_models, n_components, n_components)
            Transition matrices, or a list of them if their sizes differ.

        cost : callable or array-like of shape (n_states, n_states)
            The distance between two states (not its square), symmetric and 0 between
            equal states. Distances between models take its p-th power. A callable
            ``cost(x, y)`` takes two arrays with the entries of `states` of equally many
            states and returns one distance per pair ``x[k], y[k]``; ``np.vectorize``
            makes it from a function of two states. An array holds the distances
            between numbered states.

        states : array-like of shape (n_models, n_components, ...), default=None
            With a callable, what describes each state, such as its parameters. With an
            array, the number of each state; by default states are numbered in the
            order of the models.

        weights, startprobs, info : array-like or dict, default=None
            As in the constructor.

        Returns
        -------
        batch : HMMBatch
            The models.

        Examples
        --------
        Two-state chains that emit exponential waiting times; their 2-Wasserstein
        distance is known in closed form:

        >>> import numpy as np
        >>> from skawhmm import HMMBatch, pairwise_hmm_distances
        >>> models = HMMBatch.from_state_costs(
        ...     transmats=[[[0.9, 0.1], [0.1, 0.9]]] * 2,
        ...     cost=lambda x, y: np.sqrt(2) * np.abs(x - y),
        ...     states=[[1.0, 5.0], [5.0, 2.0]],
        ... )
        >>> pairwise_hmm_distances(models, alpha=0).round(3)
        array([[0.   , 0.707],
               [0.707, 0.   ]])
        """
        stacks, sizes = checked_stacks(transmats, {}, weights, startprobs)
        chain = stacks["transmats"], stacks["weights"], stacks["startprobs"]
        batch = cls.__new__(cls)
        family = check_state_costs(cost, states, sizes)
        batch._set(family, *chain, check_info(info or {}, len(sizes)), None)
        return batch

    @classmethod
    def from_emissionprobs(
        cls,
        transmats: ArrayLike | Sequence[ArrayLike],
        emissionprobs: ArrayLike | Sequence[ArrayLike],
        *,
        symbols: Any = None,
        symbol_costs: ArrayLike | None = None,
        weights: ArrayLike | Sequence[ArrayLike] | None = None,
        startprobs: ArrayLike | Sequence[ArrayLike] | None = None,
        info: Mapping[str, ArrayLike] | None = None,
        sequences: Any = None,
    ) -> "HMMBatch":
        r"""Return models whose states emit symbols.

        Two states are compared by the least cost of turning the symbols of one into
        those of the other, which is optimal transport between their probabilities.
        All distances, and everything built on them, work as with Gaussian states.

        Parameters
        ----------
        transmats : array-like of shape (n_models, n_components, n_components)
            Transition matrices, or a list of them if their sizes differ.

        emissionprobs : array-like of shape (n_models, n_components, n_symbols)
            Probabilities of the symbols in each state, or a list with one array per
            model.

        symbols : str or array-like of shape (n_symbols,), default=None
            The alphabet: characters, strings or integers, in the order of
            `emissionprobs`. By default the integers from 0.

        symbol_costs : array-like of shape (n_symbols, n_symbols), default=None
            Distances between symbols, symmetric and 0 between equal symbols. By default
            any two symbols have distance 1; the distance between two states is then
            their total variation, the fraction of symbols that differ.

        weights, startprobs, info : array-like or dict, default=None
            As in the constructor.

        sequences : list of str or array-like, default=None
            The sequence that each model was fitted to, as in the constructor.

        Returns
        -------
        batch : HMMBatch
            The models.

        Examples
        --------
        >>> from skawhmm import HMMBatch, pairwise_hmm_distances
        >>> models = HMMBatch.from_emissionprobs(
        ...     transmats=[[[0.9, 0.1], [0.1, 0.9]]] * 2,
        ...     emissionprobs=[[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.8, 0.2]]],
        ...     symbols="ab",
        ... )
        >>> models
        HMMBatch(n_models=2, n_components=2, emission='categorical', n_symbols=2)
        >>> pairwise_hmm_distances(models, alpha=0)
        array([[0. , 0.1],
               [0.1, 0. ]])

        The first text is more likely under the first model, the second one under the
        second:

        >>> models.score(["aaaa", "abba"]).round(2)
        array([[-0.76, -1.52],
               [-3.38, -3.07]])
        """
        return cls._of(
            Categorical(),
            transmats,
            {"emissionprobs": emissionprobs},
            shared={"symbols": symbols, "symbol_costs": symbol_costs},
            weights=weights,
            startprobs=startprobs,
            info=info,
            sequences=sequences,
        )

    @classmethod
    def from_rates(
        cls,
        transmats: ArrayLike | Sequence[ArrayLike],
        rates: ArrayLike | Sequence[ArrayLike],
        *,
        weights: ArrayLike | Sequence[ArrayLike] | None = None,
        startprobs: ArrayLike | Sequence[ArrayLike] | None = None,
        info: Mapping[str, ArrayLike] | None = None,
        sequences: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> "HMMBatch":
        r"""Return models whose states emit counts, by Poisson distributions.

        Two states are compared by the 1-Wasserstein distance of their distributions,
        where the distance between two vectors of counts is the sum of the differences
        in each channel. It is exactly :math:`\sum_c |\lambda_c - \lambda'_c|`. The same
        distances and estimators work as for `from_emissionprobs`.

        Parameters
        ----------
        transmats : array-like of shape (n_models, n_components, n_components)
            Transition matrices, or a list of them if their sizes differ.

        rates : array-like of shape (n_models, n_components, n_features)
            Mean counts of the channels in each state, or a list with one array per
            model.

        weights, startprobs, info : array-like or dict, default=None
            As in the constructor.

        sequences : list of array-like of shape (n_timesteps, n_features), default=None
            The sequence that each model was fitted to, as in the constructor.

        feature_names : sequence of str of shape (n_features,), default=None
            Names of the channels, as in the constructor.

        Returns
        -------
        batch : HMMBatch
            The models.

        Examples
        --------
        >>> from skawhmm import HMMBatch, hmm_distance
        >>> chain = [[0.9, 0.1], [0.1, 0.9]]
        >>> quiet = HMMBatch.from_rates([chain], [[[1.0], [4.0]]])
        >>> busy = HMMBatch.from_rates([chain], [[[5.0], [2.0]]])
        >>> hmm_distance(quiet, busy, alpha=0)
        1.0
        """
        return cls._of(
            Poisson(),
            transmats,
            {"rates": rates},
            weights=weights,
            startprobs=startprobs,
            info=info,
            sequences=sequences,
            feature_names=feature_names,
        )

    @classmethod
    def from_arrays(
        cls,
        models: Any,
        *,
        emission: Emission | None = None,
        weights: ArrayLike | Sequence[ArrayLike] | None = None,
        info: Mapping[str, ArrayLike] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> "HMMBatch":
        """Return models given as plain arrays by name, in a dictionary.

        Models of libraries that keep their parameters in dictionaries or named tuples
        are read directly, whatever made the arrays: NumPy, JAX, PyTorch.

        Parameters
        ----------
        models : mapping or named tuple, or sequence of them
            The arrays of one model, of several models stacked along a first axis, or
            one mapping per model. Known are our own names (those of the attributes of
            a batch), those of hmmlearn (``transmat_``, ``startprob_``, ``means_``,
            ``covars_``, ``emissionprob_``, ``lambdas_``) and those of dynamax
            (``initial.probs``, ``transitions.transition_matrix``, and in ``emissions``
            ``means`` with ``covs`` or ``scale_diags``, ``probs``, ``rates``), with or
            without their groups.

        emission : Emission, default=None
            For states of a family of your own, an instance of the family, whose
            parameters are known by their names. By default the arrays decide.

        weights : array-like of shape (n_models, n_components), default=None
            State probabilities. By default those among the arrays or, if there are
            none, the stationary distribution of each chain.

        info : dict of array-like, default=None
            Columns with one entry per model.

        feature_names : sequence of str of shape (n_features,), default=None
            Names of the features, as in the constructor.

        Returns
        -------
        batch : HMMBatch
            The models.

        Examples
        --------
        A model as dynamax keeps it:

        >>> from skawhmm import HMMBatch
        >>> params = {
        ...     "initial": {"probs": [0.5, 0.5]},
        ...     "transitions": {"transition_matrix": [[0.9, 0.1], [0.2, 0.8]]},
        ...     "emissions": {
        ...         "means": [[0.0], [3.0]], "covs": [[[1.0]], [[2.0]]],
        ...     },
        ... }
        >>> HMMBatch.from_arrays([params, params], info={"subject": ["ann", "bob"]})
        HMMBatch(n_models=2, n_components=2, n_features=1, covariance_type='full')
        """
        parts = given_parts(models, emission)
        if weights is not None:
            parts["weights"] = weights
        return cls._of(info=info, feature_names=feature_names, **parts)

    def to_hmmlearn(self, index: int = 0) -> Any:
        """Return one model as a fitted model of hmmlearn.

        Parameters
        ----------
        index : int, default=0
            Number of the model.

        Returns
        -------
        model : hmmlearn.hmm.GaussianHMM
            The model; a ``CategoricalHMM`` if states emit symbols, which hmmlearn
            numbers from 0, and a ``PoissonHMM`` if they emit counts.
        """
        index, size = self._exported(index, "hmmlearn")
        model = self.emission.hmmlearn_model(index, size)
        model.startprob_ = self.startprobs[index, :size].copy()
        model.transmat_ = self.transmats[index, :size, :size].copy()
        return model

    def to_dynamax(self, index: int = 0) -> tuple[Any, Any]:
        """Return one model as a model of dynamax and its parameters.

        Parameters
        ----------
        index : int, default=0
            Number of the model.

        Returns
        -------
        model : dynamax.hidden_markov_model.DiagonalGaussianHMM
            A model for the parameters; a ``GaussianHMM`` if covariances are matrices, a
            ``CategoricalHMM`` if states emit symbols, which dynamax numbers from 0, and
            a ``PoissonHMM`` if they emit counts.

        params : named tuple
            The parameters, in single precision unless JAX was told otherwise
            (``jax.config.update("jax_enable_x64", True)``). The log likelihood of
            frames is ``model.marginal_log_prob(params, frames)``.
        """
        index, size = self._exported(index, "dynamax")
        if self.emission.name not in WRITERS:
            self.emission._lacking("a counterpart in dynamax")
        states = self.emission.parameters
        return dynamax_model(
            self.emission.name,
            self.startprobs[index, :size],
            self.transmats[index, :size, :size],
            {name: array[index, :size] for name, array in states.items()},
        )

    def _exported(self, index, library):
        """Return the number of a model that has all channels, and of its states."""
        index = check_model_number("index", index, len(self))
        if not self.emission.masks()[index].all():
            raise ValueError(
                f"Models must have observed all features for {library}, got model "
                f"{index} that did not."
            )
        return index, self.n_components[index]

    def to_json(self) -> str:
        """Return the models as JSON text, which `as_models` reads.

        The text holds what `save` writes, with all digits of all numbers; the page *The
        model file* describes it. It is about three times as large.

        Returns
        -------
        text : str
            The text.

        Examples
        --------
        >>> from skawhmm import HMMBatch, as_models
        >>> models = HMMBatch([[[1.0]]], [[[0.5]]], [[[2.0]]])
        >>> print(models.to_json())
        {"kind": "skawhmm.HMMBatch", "version": 1, "emission": "gaussian", "info": {},
        "models": [{"transmats": [[1.0]], "weights": [1.0], "startprobs": [1.0],
        "means": [[0.5]], "covars": [[2.0]]}]}
        >>> as_models(models.to_json()) == models
        True
        """
        return json_text(self)

    def score(
        self, X: Any, *, n_jobs: int | None = None, verbose: int = 0
    ) -> NDArray[np.float64]:
        """Return the log likelihood of every sequence under every model.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features), or of Trials
            Sequences. Log likelihoods of `Trials` are sums over the recordings.

        n_jobs : int, default=None
            Number of joblib workers.

        verbose : int, default=0
            Whether to show a progress bar.

        Returns
        -------
        scores : ndarray of shape (n_sequences, n_models)
            Log likelihoods; minus infinity where a model cannot emit a sequence.
        """
        check_verbose("verbose", verbose)
        sequences = self._checked(X)
        return log_likelihood(self, sequences, n_jobs=n_jobs, verbose=verbose)

    def decode(self, X: Any) -> tuple[list[NDArray[np.int64]], NDArray[np.float64]]:
        """Return the most probable path of states of each sequence under its model.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features), or of Trials
            One sequence per model. A single model is used for every sequence, a single
            sequence for every model.

        Returns
        -------
        paths : list of ndarray of int of shape (n_timesteps,)
            The state of each frame; for `Trials`, a list with one array per recording.

        scores : ndarray of shape (n_pairs,)
            Joint log density of each path and its sequence; for `Trials` the sum over
            the recordings.
        """
        return best_paths(self, self._checked(X, paired=True))

    def predict_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """Return the probabilities of the states of each frame, given its sequence.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features), or of Trials
            Sequences, as for `decode`.

        Returns
        -------
        probabilities : list of ndarray of shape (n_timesteps, n_components)
            One array per sequence, whose rows sum to one; for `Trials`, a list with one
            array per recording.
        """
        return posteriors(self, self._checked(X, paired=True))

    def filter_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """Return the probabilities of the states of each frame, given the past only.

        `predict_proba` uses the whole sequence, frames that come later included. Here
        the row of a frame uses the frames up to it, so it is what was known at that
        time: cutting the sequence after it changes no bit of it.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features), or of Trials
            Sequences, as for `decode`. NaN stands for values that were not observed, if
            the family accepts them; a frame without any value leaves what is predicted.

        Returns
        -------
        probabilities : list of ndarray of shape (n_timesteps, n_components)
            One array per sequence, whose rows sum to one; for `Trials`, a list with one
            array per recording.

        Examples
        --------
        A jump of the level: what is known at the time, and in hindsight.

        >>> from skawhmm import HMMBatch
        >>> model = HMMBatch(
        ...     transmats=[[[0.9, 0.1], [0.1, 0.9]]],
        ...     means=[[[0.0], [2.0]]],
        ...     covars=[[[1.0], [1.0]]],
        ... )
        >>> X = [[0.0, 0.1, 1.5, 2.0, 2.1]]
        >>> model.filter_proba(X)[0][:, 1].round(2)
        array([0.12, 0.04, 0.29, 0.79, 0.96])
        >>> model.predict_proba(X)[0][:, 1].round(2)
        array([0.12, 0.2 , 0.74, 0.94, 0.96])
        """
        return per_unit(self, self._checked(X, paired=True), 0)

    def surprise(self, X: Any) -> list[NDArray[np.float64]]:
        """Return how unexpected each frame is, given the frames before it.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences, as for `filter_proba`.

        Returns
        -------
        surprises : list of ndarray of shape (n_timesteps,)
            Minus the log density of each frame given those before. They add up to
            minus the log likelihood (`score`) of a sequence without missing values. A
            frame that the model cannot emit is infinitely surprising, and the
            following ones are judged as if it had been missing.

        Examples
        --------
        One frame does not belong to any state:

        >>> from skawhmm import HMMBatch
        >>> model = HMMBatch(
        ...     transmats=[[[0.9, 0.1], [0.1, 0.9]]],
        ...     means=[[[0.0], [5.0]]],
        ...     covars=[[[1.0], [1.0]]],
        ... )
        >>> model.surprise([[0.0, 0.3, -4.0, 0.1, 5.0]])[0].round(1)
        array([1.6, 1.1, 9. , 1. , 3.2])
        """
        return per_unit(self, self._checked(X, paired=True), 1)

    def forecast(self, X: Any, steps: int = 1) -> Forecast:
        """Return what each model expects after the end of its sequence.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences, as for `filter_proba`.

        steps : int, default=1
            Number of frames to look ahead.

        Returns
        -------
        forecast : Forecast
            Its `probabilities` of the states have shape (n_pairs, steps, n_components).
            Its `means` and `covariances` of the frames exist for all families but
            angles and symbols, and its `sample` draws continuations.

        Examples
        --------
        >>> from skawhmm import HMMBatch
        >>> model = HMMBatch(
        ...     transmats=[[[0.9, 0.1], [0.2, 0.8]]],
        ...     means=[[[0.0], [5.0]]],
        ...     covars=[[[1.0], [1.0]]],
        ... )
        >>> forecast = model.forecast([[0.1, -0.2, 5.2]], steps=3)
        >>> forecast.probabilities[0].round(2)
        array([[0.2 , 0.8 ],
               [0.34, 0.66],
               [0.44, 0.56]])
        >>> forecast.means[0].round(1).ravel()
        array([4. , 3.3, 2.8])
        """
        return forecasts(self, self._checked(X, paired=True), steps)

    def updated(
        self,
        X: Any,
        *,
        forgetting: float = 0.0,
        max_iter: int = 200,
        tol: float = 1e-8,
    ) -> "HMMBatch":
        """Return the models after further frames, without the frames before.

        What the older frames have shown is known from the parameters and the `counts`
        of the models, which files hold too. EM runs on the new frames, with the older
        ones as counts: their states are not estimated again. Without forgetting, the
        models approach those of a fit to all frames, the closer the better states can
        be distinguished. Models do not record that their covariances were tied or
        spherical: after an update each state has its own, full or diagonal.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features), or of Trials
            The new frames, one sequence per model.

        forgetting : float in [0, 1), default=0.0
            Fraction of the older counts that is forgotten. With 0.1 per update, frames
            of ten updates ago count about a third.

        max_iter : int, default=200
            Largest number of EM steps.

        tol : float, default=1e-8
            EM stops when expected counts change by at most this, per frame, and
            parameters of states by at most this fraction of the largest one.

        Returns
        -------
        models : HMMBatch
            The models, with their counts. State probabilities are the fractions of all
            frames that count. The columns of `info` that describe a fit are left out.

        Examples
        --------
        A state moves, and the model follows:

        >>> import numpy as np
        >>> from skawhmm import HMMTransformer
        >>> rng = np.random.default_rng(0)
        >>> levels = np.repeat([0.0, 5.0, 0.0, 5.0], 50)
        >>> x = (levels + rng.normal(size=200))[:, None]
        >>> models = HMMTransformer(n_components=2, random_state=0).fit_transform([x])
        >>> moved = x + np.repeat([0.0, 2.0, 0.0, 2.0], 50)[:, None]
        >>> for forgetting in (0.0, 0.5, 0.9):
        ...     follower = models.updated([moved], forgetting=forgetting)
        ...     print(follower.means[0, 1].round(1))
        [6.]
        [6.3]
        [6.8]
        """
        check_real("forgetting", forgetting, 0, 1, include_high=False)
        check_integer("max_iter", max_iter, 1)
        check_real("tol", tol, 0, np.inf)
        if self.counts is None:
            raise ValueError(
                "Models that are updated must have counts, which HMMTransformer fills "
                "in, got models given by their parameters."
            )
        sequences = self._checked(X)
        if len(sequences) != len(self):
            raise ValueError(
                f"X must hold one sequence per model ({len(self)} models), got "
                f"{len(sequences)}."
            )
        options = {"forgetting": forgetting, "max_iter": max_iter, "tol": tol}
        return updated_models(self, sequences, **options)

    def stream(self, index: int = 0) -> HMMStream:
        """Return a stepper that follows a running process frame by frame.

        Parameters
        ----------
        index : int, default=0
            Number of the model.

        Returns
        -------
        stream : HMMStream
            Its `update` takes a frame and returns the row of `filter_proba` and the
            value of `surprise` that belong to it.

        Examples
        --------
        >>> from skawhmm import HMMBatch
        >>> model = HMMBatch(
        ...     transmats=[[[0.9, 0.1], [0.1, 0.9]]],
        ...     means=[[[0.0], [2.0]]],
        ...     covars=[[[1.0], [1.0]]],
        ... )
        >>> stream = model.stream()
        >>> for frame in [0.0, 0.1, 1.5]:
        ...     probabilities, surprise = stream.update(frame)
        >>> probabilities.round(2)
        array([0.71, 0.29])
        """
        index = check_model_number("index", index, len(self))
        return HMMStream(self[index : index + 1]._bare())

    def sample(
        self,
        n_timesteps: int = 100,
        *,
        n_trials: int | None = None,
        random_state: Any = None,
    ) -> tuple[list[Any], list[Any]]:
        """Draw one sequence from every model, or several.

        Parameters
        ----------
        n_timesteps : int, default=100
            Length of the sequences.

        n_trials : int, default=None
            Number of sequences per model, which are returned as `Trials`. By default a
            single sequence per model, as an array.

        random_state : int, RandomState instance, Generator or None, default=None
            Seed of the draws. The sequence of a model depends on the seed and the model
            only, not on the rest of the batch; equal models get sequences of their own.

        Returns
        -------
        sequences : list of ndarray of shape (n_timesteps, n_features), or of Trials
            The frames, one entry per model.

        paths : list of ndarray of int of shape (n_timesteps,)
            The state of each frame; with `n_trials`, a list with one array per
            recording.
        """
        check_integer("n_timesteps", n_timesteps, 1)
        n_drawn = 1 if n_trials is None else check_integer("n_trials", n_trials, 1)
        seeds = model_seeds(check_seed(random_state), self.keys)
        sequences, paths = sample_sequences(self, n_timesteps, seeds, n_trials=n_drawn)
        sequences = [self.emission.shown(x) for x in sequences]
        if n_trials is not None:
            firsts = n_drawn * np.arange(len(self) + 1)
            units = Units(firsts, [True] * len(self))
            sequences, paths = units.grouped(sequences), units.grouped(paths, list)
        return named_sequences(sequences, self.feature_names), paths

    @property
    def _channels(self):
        """Names of the channels, or their indices."""
        return self.feature_names or range(self.emission.n_features)

    def _described(self):
        """Return what a table shows of each state, by name."""
        return self.emission.described(self._channels)

    def _checked(self, X, *, paired=False, caller="HMMBatch"):
        check_not_distances(caller, X)
        X, names, units = matched_columns(X)
        if names is not None and self.feature_names is not None:
            check_same_names(names, self.feature_names)
        with naming_trials(units):
            sequences = self.emission.checked(
                X, caller=caller, n_features=self.emission.n_features
            )
        if units is not None:
            sequences = units.grouped(sequences)
        if paired:
            check_paired(len(self), len(sequences))
        return sequences
