"""The contract of families of states: what each of them must define."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from skawhmm.emissions._averages import matched_sums
from skawhmm.emissions._likelihood import EmissionLikelihood
from skawhmm.emissions._model import Array


class Emission(EmissionLikelihood, ABC):
    """Base class of the families of states, which define what states emit.

    An instance made by the constructor is a template. It holds the options of the
    family, which the constructor takes by name as in any scikit-learn estimator, and is
    what ``HMMTransformer(emission=...)`` takes. The states of fitted models are an
    instance that also holds the parameters of all states of all models, as arrays with
    one row per model and one column per state (``HMMBatch.emission``).

    The contract has three parts. Most families are easier to write as a
    :class:`SimpleEmission`, which defines most of the second part.

    **Parameters: to define**

    ``name``, ``parameter_names``
        Name of the family in messages and files, and names of its arrays of
        parameters.

    **Parameters: optional**

    ``check_options()``
        Raises if an option is invalid.
    ``n_features``
        Number of channels of a frame; by default the number of values per state in the
        first array.
    ``from_arrays(arrays, is_state)``
        Checks the arrays of a user or of a file.
    ``support``, ``of_channel(channel)``
        Where the values of a channel lie, and the family of one channel, for plots.
    ``merged(weights)``, ``described(channels)``, ``compared(channels)``
        Mixtures of states as one state; what tables show of a state, and what groups
        are compared by.
    ``state_names()``
        Names of the states, if their emissions provide them.

    **Likelihood and EM: to define if models are to be fitted and scored**

    ``densities(i, x, start, transmat)``
        Log densities of a sequence under model i.
    ``data(sequences, firsts)``, ``expectations``, ``updates``, ``log_priors``
        Frames in the form that EM reads; the E step, the M step and the log prior.
    ``random_states``, ``common_states``, ``varied``, ``n_free``
        Start values, whether frames differ at all, and the number of free parameters
        per state.

    **Likelihood and EM: optional**

    ``checked(X, caller, n_features)``, ``learned(X, caller)``
        Sequences of a user as arrays, and what all models share, such as an alphabet.
        By default sequences hold numbers in one or more channels.
    ``has_compiled_em``, ``compiled_em(data, states, prior)``
        Whether EM takes its steps without Python between them, and these steps, as
        Gaussian states, symbols and counts have them.
    ``random_stack(data, n_states, rngs)``
        Start values of several models; by default drawn one by one.
    ``accepts_missing``
        Whether densities skip NaN values; by default they raise an error.
    ``has_moments``, ``moments(i, size)``
        Whether what states emit has means and covariances, and these, for
        `HMMBatch.forecast`.
    ``drawn(i, path, rng)``, ``shown(x)``
        A sequence drawn from model i, given its path of states, and the form in which
        users see it. `HMMBatch.sample` and `KL` need it.
    ``frames_at(i, path, levels)``, ``frame_parts(x)``
        Quantiles of the states of model i, and frames in the form in which they are
        compared. `IAW` needs them.

    **Ground cost: to define**

    ``cross(index_a, index_b)``
        Squared distances between the states of pairs of models.

    **Ground cost: optional**

    ``divergences(index_a, index_b)``
        Kullback-Leibler divergences of states, for ``KL(method="variational")``.
    ``mmd_comparer(masses, sizes, bandwidth)``, ``median_gap(weights)``
        Distances between distributions of frames, and their scale, for `MMD`.
    ``averaged(models, labels, masses)``
        Averages of matched states, for `hmm_barycenter`, `HMMKMeans` and `HMMAligner`.
        `matched_means` computes weighted means of parameters.

    The other members have an implementation here, which a family may replace by a
    faster one.

    See Also
    --------
    SimpleEmission : Families that define EM for one model at a time.
    """

    # Whether distributions are compared by a kernel between frames, with a bandwidth.
    has_kernel: ClassVar[bool] = False

    @abstractmethod
    def cross(self, index_a: Array, index_b: Array) -> Array:
        """Return squared distances between the states of pairs of models.

        Parameters
        ----------
        index_a, index_b : ndarray of int of shape (n_pairs,)
            Indices of the models.

        Returns
        -------
        cost : ndarray of shape (n_pairs, n_components, n_components)
            Squared distances between the states of model a and of model b.
        """

    def within(self, index_a: Array, index_b: Array) -> Array:
        """Return squared distances within models a, on features that b observed too."""
        return self._own[index_a]

    @cached_property
    def _own(self) -> Array:
        index = np.arange(len(self._first))
        upper = np.triu(self.cross(index, index), 1)
        return upper + upper.swapaxes(1, 2)

    def ground_costs(self) -> Any:
        """Return an object with `cross` and `within` that serves many comparisons."""
        return self

    def points(self) -> Array | None:
        """Return states as points whose squared Euclidean distances are the costs.

        Returns
        -------
        points : ndarray of shape (n_models, n_components, n_dimensions) or None
            The points; None if costs have no such form.
        """
        return None

    def divergences(self, index_a: Array, index_b: Array) -> Array:
        """Return divergences (n_pairs, n_components, n_components) from a to b."""
        self._lacking("a divergence in closed form, as KL(method='variational') does")

    def mmd_comparer(
        self, masses: Array, sizes: Array, bandwidth: float
    ) -> Callable[[Array, Array], Array]:
        """Return a function that compares distributions of frames of pairs of models.

        Parameters
        ----------
        masses : ndarray of shape (n_models, n_components[, n_components])
            Probabilities of states, or of pairs of successive states.

        sizes : ndarray of int of shape (n_models,)
            Number of states of each model, without padding.

        bandwidth : float
            Width of the kernel between frames, if the family has one.

        Returns
        -------
        gaps : callable
            Takes two index arrays and returns one squared distance per pair.
        """
        self._lacking("a distribution that can be compared")

    def median_gap(self, weights: Array) -> float:
        """Return the median squared distance between frames of two states."""
        self._lacking("a kernel between frames")

    def keeping_costs(self) -> Self:
        """Return the family with its costs prepared, for models compared repeatedly."""
        return self

    def averaged(self, models: Self, labels: Array, masses: Array) -> Self:
        """Return states that are averages of the states of models matched with them.

        The average of states minimises the weighted sum of the squared distances of
        `cross`. It need not be exact: averages of models take no step that raises this
        sum.

        Parameters
        ----------
        models : Emission
            States of the models to be averaged, of the same family.

        labels : ndarray of int of shape (n_models,)
            The row of this family that each model is averaged into.

        masses : ndarray of shape (n_models, n_components, n_components)
            ``masses[n, i, j]`` is the weight of state j of model n in the average that
            becomes state i of row ``labels[n]``. Weights do not sum to one.

        Returns
        -------
        family : Emission
            The averages. States without any weight keep their parameters.
        """
        raise TypeError(
            "Averages of models need states of a family that defines averaged, got "
            f"states of kind {self.name!r}. HMMKMedoids and HMMAligner('medoid') need "
            "no averages."
        )

    @staticmethod
    def matched_means(own: Array, values: Array, labels: Array, masses: Array) -> Array:
        """Return weighted means of the parameters of matched states.

        Parameters
        ----------
        own : ndarray of shape (n_rows, n_components, ...)
            Parameters to be replaced; they stay where no state has weight.

        values : ndarray of shape (n_models, n_components, ...)
            Parameters of the states of models.

        labels, masses : ndarray
            As in `averaged`.

        Returns
        -------
        means : ndarray of shape (n_rows, n_components, ...)
            The means.
        """
        flat = values.reshape(*values.shape[:2], -1)
        mass, sums = matched_sums(masses, labels, flat, len(own))
        used, means = mass > 0, np.array(own)
        means[used] = (sums[used] / mass[used, None]).reshape(-1, *own.shape[2:])
        return means

    def gaussian(self, purpose: str) -> Any:
        """Return the family if its states are Gaussian, else raise.

        Parameters
        ----------
        purpose : str
            Beginning of the message: what needs Gaussian states, and the verb.

        Returns
        -------
        family : Gaussian
            The family.
        """
        raise TypeError(
            f"{purpose} models with Gaussian states, got states of kind {self.name!r}. "
            "HMMKMedoids and the metrics 'maw' and 'coupling' take models of any kind."
        )
