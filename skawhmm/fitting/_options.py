"""What to fit and how, what comes of it, and how numbers of states are compared."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skawhmm.emissions._contract import Model
from skawhmm.emissions._gaussian import Gaussian
from skawhmm.fitting._em_loop import Rule


@dataclass(frozen=True)
class FitOptions:
    """What to fit and how; the words are those of `HMMTransformer`.

    Attributes
    ----------
    relevance : float
        Weight of the pooled model as a prior, 0 for maximum likelihood.

    criterion : {None, "aic", "bic"}
        If not None, `n_components` is the largest number of states tried.

    seed : int
        What random draws depend on, beside the frames.

    engine : callable or None
        Climbs from a start in place of our own loop.

    family : Emission or None
        Family of one blank state that reads, starts and learns; by default Gaussian
        states, fitted in coordinates of their own.
    """

    n_components: int = 3
    covariance_type: str = "diag"
    topology: str = "ergodic"
    n_mix: int = 1
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-5
    reg_covar: float = 1e-4
    relevance: float = 0.0
    criterion: str | None = None
    seed: int = 0
    engine: Any = None
    family: Any = None

    @cached_property
    def learner(self):
        """The family that learns the states."""
        if self.family is not None:
            return self.family
        return Gaussian.learner(self.covariance_type, self.reg_covar)

    @cached_property
    def rule(self):
        """The constraints and stopping rule of EM."""
        return Rule(
            int(self.n_mix),
            float(self.relevance),
            int(self.max_iter),
            float(self.tol),
        )

    @property
    def sizes(self):
        """Numbers of states to try."""
        if self.criterion is None:
            return [self.n_components]
        return list(range(1, self.n_components + 1))


@dataclass(frozen=True)
class Fit:
    """A fitted model in raw units, and how the fit went."""

    model: Model
    weights: np.ndarray
    observed: np.ndarray | None
    n_states: int
    log_likelihood: float
    objective: float
    n_iter: int
    converged: bool
    n_timesteps: int


def allowed_moves(topology, n_states):
    """Masks of allowed starts and allowed transitions, as floats."""
    if topology == "ergodic":
        return np.ones(n_states), np.ones((n_states, n_states))
    moves = np.eye(n_states) + np.eye(n_states, k=1)
    if topology == "left-to-right":
        moves = np.triu(np.ones((n_states, n_states)))
    return np.eye(n_states)[0], moves


def chain_size(topology, n_states):
    """Free parameters of a chain: starts and transitions."""
    start, allowed = allowed_moves(topology, n_states)
    return start.sum() - 1 + (allowed.sum(axis=1) - 1).sum()


def criterion_value(fit, n_free, options):
    """Value of the selection criterion, less is better; 0 if there is none.

    Parameters
    ----------
    fit : Fit
        A fit.

    n_free : float
        Free parameters of its model.

    options : FitOptions
        The criterion.
    """
    if options.criterion is None:
        return 0.0
    price = {"aic": 2.0, "bic": np.log(fit.n_timesteps)}[options.criterion]
    return price * n_free - 2 * fit.log_likelihood
