"""What models tell about sequences: scores, paths, probabilities, forecasts, draws."""

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
from skawhmm.sequences._checks import check_not_distances
from skawhmm.sequences._names import (
    check_same_names,
    matched_columns,
    named_sequences,
)
from skawhmm.sequences._trials import Units, naming_trials
from skawhmm.utils._checks import (
    check_integer,
    check_real,
    check_seed,
    check_verbose,
)


class BatchInference(ModelStack):
    """The methods of `HMMBatch` that take sequences, or draw them."""

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
    ) -> Self:
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
