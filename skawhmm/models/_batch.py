"""HMMBatch: a stack of hidden Markov models, its constructors and exports."""

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
from skawhmm.models._batch_inference import BatchInference
from skawhmm.models._checks import check_info, check_model_number
from skawhmm.models._dynamax import WRITERS, dynamax_model
from skawhmm.models._exchange import given_parts
from skawhmm.models._html import batch_html
from skawhmm.models._json import json_text
from skawhmm.models._stack import checked_stacks
from skawhmm.utils._archives import room_for


class HMMBatch(BatchInference):
    r"""An immutable stack of hidden Markov models.

    The constructor makes models with Gaussian states. `from_emissionprobs` and
    `from_rates` make models that emit symbols and counts; `from_state_costs` makes
    models from the distances between their states. `HMMTransformer` fits models to
    sequences.

    A batch can be indexed like an array, so scikit-learn can slice it. Models with
    fewer states than the largest one are padded with unreachable states: their weights
    and start probabilities are 0, and they only move to themselves.

    Parameters
    ----------
    transmats : array-like of shape (n_models, n_components, n_components)
        Transition matrices, whose rows sum to one. This and the following parameters
        may also be lists with one array per model, if models differ in their number of
        states.

    means : array-like of shape (n_models, n_components, n_features)
        Means of the states, of size at most 1e100.

    covars : array-like of shape (n_models, n_components, n_features[, n_features])
        Variances (diagonal covariances) or covariance matrices, of size at most 1e200.
        They may be singular: a dead sensor has variance 0. Variances below 1e-290 count
        as 0.

    weights : array-like of shape (n_models, n_components), default=None
        State probabilities :math:`\pi` that distances use. By default the stationary
        distribution of each chain.

    startprobs : array-like of shape (n_models, n_components), default=None
        Probabilities of the first state, for sampling and likelihoods. By default the
        weights. A chain with several closed classes has no unique stationary
        distribution; its start probabilities (by default equal ones) decide between
        them.

    observed : array-like of bool of shape (n_models, n_features), default=None
        Mask of the features that each model observed. Two models are compared on the
        features that both observed. By default each model observed all.

    info : dict of array-like, default=None
        Columns with one entry per model, such as ``converged`` or ``log_likelihood``.
        They are indexed and saved with the models.

    sequences : sequence of ndarray of shape (n_timesteps, n_features), default=None
        The sequence that each model was fitted to, which ``KL(method="data")`` needs.
        They are copied. Sequences are indexed and pickled with the models, but `save`
        leaves them out: a file of models holds models only.

    feature_names : sequence of str of shape (n_features,), default=None
        Names of the features. `HMMTransformer` sets them if the training sequences have
        names. Tables and plots show them, estimators store them as
        ``feature_names_in_``, and comparing models with different names raises an
        error.

    Attributes
    ----------
    transmats, means, covars, weights, startprobs, observed, info : ndarray or dict
        As above, read-only.

    sequences : list of ndarray or Trials, or None
        As above; the arrays are read-only.

    feature_names : tuple of str, or None
        As above.

    counts : Counts or None
        Expected counts in the data of fitted models: ``counts.states`` of shape
        (n_models, n_components), the number of frames in each state, and
        ``counts.transitions`` of shape (n_models, n_components, n_components), the
        number of steps from each state to each other. They do not include a prior.
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

    def _repr_html_(self) -> str:
        return batch_html(self)

    @property
    def means(self) -> NDArray[np.float64]:
        """Means of the states, for models with Gaussian states."""
        return self._parameter("means")

    @property
    def covars(self) -> NDArray[np.float64]:
        """Variances or covariance matrices, for models with Gaussian states."""
        return self._parameter("covars")

    @property
    def emissionprobs(self) -> NDArray[np.float64]:
        """Probabilities of the symbols, for models that emit symbols."""
        return self._parameter("emissionprobs")

    @property
    def rates(self) -> NDArray[np.float64]:
        """Rates of the channels, for models that emit counts."""
        return self._parameter("rates")

    @property
    def symbols(self) -> NDArray[Any]:
        """The alphabet, for models that emit symbols."""
        return self._parameter("symbols")

    @property
    def state_names(self) -> tuple[str, ...] | None:
        """Names of the states, if each emits a single symbol as in visible chains.

        State k must emit the same symbol in all models, and different states must emit
        different symbols; otherwise None. Tables and plots show these symbols instead
        of state numbers.
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
        """Load a batch from a file written by `save`.

        Parameters
        ----------
        path : str or path-like
            The file.

        emission : Emission, default=None
            For states of a user-defined family, an instance of the family. Files store
            the arrays of such states, but not the options of the family.

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

        `MAW`, `TransitionCoupling` and everything built on them use these distances
        instead of the 2-Wasserstein distance between Gaussian states. `KL`, `IAW`,
        `MMD`, sampling, `hmm_barycenter` and `save` need more than distances and raise
        an error.

        Parameters
        ----------
        transmats : array-like of shape (n_models, n_components, n_components)
            Transition matrices, or a list of them if their sizes differ.

        cost : callable or array-like of shape (n_states, n_states)
            The distance between two states (not its square), symmetric and 0 between
            equal states. Distances between models take its p-th power. A callable
            ``cost(x, y)`` takes two arrays of entries of `states`, of the same length,
            and returns one distance per pair ``x[k], y[k]``; ``np.vectorize`` turns a
            function of two states into such a callable. An array holds the distances
            between numbered states.

        states : array-like of shape (n_models, n_components, ...), default=None
            With a callable, the description of each state, such as its parameters.
            With an array, the number of each state; by default states are numbered in
            the order of the models.

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

        Two states are compared by optimal transport between their probabilities of the
        symbols.
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

        The first text is more likely under the first model, the second text under the
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

        Use it for models of libraries that keep their parameters in dictionaries or
        named tuples. The arrays may be NumPy, JAX or PyTorch arrays.

        Parameters
        ----------
        models : mapping or named tuple, or sequence of them
            The arrays of one model, of several models stacked along a first axis, or
            one mapping per model. Accepted names are the attributes of a batch, the
            names of hmmlearn (``transmat_``, ``startprob_``, ``means_``, ``covars_``,
            ``emissionprob_``, ``lambdas_``) and the names of dynamax
            (``initial.probs``, ``transitions.transition_matrix``, and in ``emissions``
            ``means`` with ``covs`` or ``scale_diags``, ``probs``, ``rates``), with or
            without their groups.

        emission : Emission, default=None
            For states of a user-defined family, an instance of the family, whose
            parameter names are then accepted. By default the family follows from the
            names of the arrays.

        weights : array-like of shape (n_models, n_components), default=None
            State probabilities. By default taken from the arrays or, if they have
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
        """Return one model as a fitted hmmlearn model.

        Parameters
        ----------
        index : int, default=0
            Index of the model.

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
        """Return one model as a dynamax model and its parameters.

        Parameters
        ----------
        index : int, default=0
            Index of the model.

        Returns
        -------
        model : dynamax.hidden_markov_model.DiagonalGaussianHMM
            A model for the parameters; a ``GaussianHMM`` if covariances are matrices, a
            ``CategoricalHMM`` if states emit symbols, which dynamax numbers from 0, and
            a ``PoissonHMM`` if they emit counts.

        params : named tuple
            The parameters, in single precision unless JAX is configured otherwise
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
        """Return the index and the number of states of a model with all channels."""
        index = check_model_number("index", index, len(self))
        if not self.emission.masks()[index].all():
            raise ValueError(
                f"Models must have observed all features for {library}, got model "
                f"{index} that did not."
            )
        return index, self.n_components[index]

    def to_json(self) -> str:
        """Return the models as JSON text, which `as_models` reads.

        The text holds the same content as a file written by `save`, without loss of
        precision, but is about three times as large. The page *The model file*
        describes it.

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
        >>> as_models(models.to_json())
        HMMBatch(n_models=1, n_components=1, n_features=1, covariance_type='diag')
        """
        return json_text(self)

    @property
    def _channels(self):
        """Names of the channels, or their indices."""
        return self.feature_names or range(self.emission.n_features)

    def _described(self):
        """Return the columns of a table of states, by name."""
        return self.emission.described(self._channels)
