"""Inference methods of a batch: scores, paths, probabilities, forecasts, samples."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skawhmm.models._causal import Forecast, HMMStream, forecasts, per_unit
from skawhmm.models._checks import check_model_number, check_paired
from skawhmm.models._inference import (
    best_paths,
    log_likelihood,
    model_seeds,
    posteriors,
    sample_sequences,
)
from skawhmm.models._stack import ModelStack
from skawhmm.models._updating import updated_models
from skawhmm.sequences._checks import opened
from skawhmm.sequences._names import (
    check_same_names,
    named_sequences,
)
from skawhmm.sequences._trials import Units
from skawhmm.utils._checks import (
    check_integer,
    check_real,
    check_seed,
    check_verbose,
)


class BatchInference(ModelStack):
    """Methods of `HMMBatch` that take or draw sequences."""

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
        """Return the state probabilities of each frame, given the whole sequence.

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
        """Return the state probabilities of each frame, given the frames up to it.

        `predict_proba` uses the whole sequence, including later frames. Here the row of
        a frame uses no later frame, so it contains what was known at that time: cutting
        the sequence after the frame does not change it.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features), or of Trials
            Sequences, as for `decode`. NaN marks missing values, if the family accepts
            them; for a frame without any value, the prediction from the past is
            returned.

        Returns
        -------
        probabilities : list of ndarray of shape (n_timesteps, n_components)
            One array per sequence, whose rows sum to one; for `Trials`, a list with one
            array per recording.

        Examples
        --------
        The level jumps at the third frame. Probabilities of the second state, first as
        known at the time, then in hindsight:

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
            Minus the log density of each frame given the frames before it. For a
            sequence without missing values, they add up to minus the log likelihood
            (`score`). A frame that the model cannot emit has infinite surprise, and is
            treated as missing for the frames after it.

        Examples
        --------
        The third frame does not fit any state:

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
        """Return a forecast of the frames after the end of each sequence.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Sequences, as for `filter_proba`.

        steps : int, default=1
            Number of frames to look ahead.

        Returns
        -------
        forecast : Forecast
            Its `probabilities` are state probabilities of shape (n_pairs, steps,
            n_components). Its `means` and `covariances` describe the frames, for all
            families except angles and symbols. Its `sample` draws continuations.

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
    ) -> Self:
        """Return the models updated with new frames, without refitting the old ones.

        The old frames are not needed: they are summarised by the parameters and the
        `counts` of the models, which are saved in files as well. EM runs on the new
        frames and adds the old ones as counts, without estimating their states again.
        Without forgetting, the result is close to a fit to all frames, and the closer,
        the better the states can be distinguished. Models do not record whether their
        covariances were tied or spherical: after an update, each state has its own full
        or diagonal covariance.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features), or of Trials
            The new frames, one sequence per model.

        forgetting : float in [0, 1), default=0.0
            Fraction of the old counts that is forgotten. With 0.1, frames from ten
            updates ago have about a third of their weight.

        max_iter : int, default=200
            Largest number of EM steps.

        tol : float, default=1e-8
            EM stops when the expected counts per frame change by at most this, and the
            parameters of the states by at most this fraction of the largest one.

        Returns
        -------
        models : HMMBatch
            The models, with updated counts. State probabilities are the fractions of
            all frames, old ones with their remaining weight. The columns of `info` that
            describe a fit are left out.

        Examples
        --------
        The mean of the second state moves from 5 to 7. The more is forgotten, the
        faster the model follows:

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
        """Return a stream that follows a running process frame by frame.

        Parameters
        ----------
        index : int, default=0
            Index of the model.

        Returns
        -------
        stream : HMMStream
            Its `update` takes a frame and returns its state probabilities (as
            `filter_proba`) and its surprise (as `surprise`).

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
        """Draw one or several sequences from every model.

        Parameters
        ----------
        n_timesteps : int, default=100
            Length of the sequences.

        n_trials : int, default=None
            Number of sequences per model, which are returned as `Trials`. By default a
            single sequence per model, as an array.

        random_state : int, RandomState instance, Generator or None, default=None
            Seed of the draws. The sequence of a model depends only on the seed and the
            model, not on the rest of the batch. Equal models get different sequences.

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

    def _checked(self, X, *, paired=False, caller="HMMBatch"):
        X, names, units = opened(caller, X)
        if names is not None and self.feature_names is not None:
            check_same_names(names, self.feature_names)
        with units.naming():
            sequences = self.emission.checked(
                X, caller=caller, n_features=self.emission.n_features
            )
        sequences = units.grouped(sequences)
        if paired:
            check_paired(len(self), len(sequences))
        return sequences
