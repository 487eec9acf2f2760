"""Inference from past frames only: filtering, surprise, forecasts, streams."""

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skawhmm.models._inference import model_seeds, paired_units
from skawhmm.numerics._filtering import filter_frames
from skawhmm.numerics._paths_kernels import random_path
from skawhmm.sequences._trials import Trials, split_units
from skawhmm.utils._checks import check_integer, check_seed
from skawhmm.utils._seeds import item_rng


def chain_of(batch, i):
    """Return start and transition probabilities of a model, without padding."""
    size = batch.n_components[i]
    return batch.startprobs[i, :size], batch.transmats[i, :size, :size].copy()


def logs_of(probabilities):
    """Return logarithms, minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def passed(batch, i, x, ahead):
    """Return state probabilities and surprises of frames; advance `ahead` past them."""
    transmat = chain_of(batch, i)[1]
    logs, ranks = batch.emission.frame_densities(i, x, len(transmat))
    proba, surprise = np.empty((len(x), len(transmat))), np.empty(len(x))
    filter_frames(logs, ranks, transmat, ahead, proba, surprise)
    return proba, surprise


def filtered(batch, sequences):
    """Yield the filtered probabilities and surprises of each recording.

    A single model is paired with every sequence, a single sequence with every model.

    Parameters
    ----------
    batch : HMMBatch
        Models.

    sequences : list of ndarray of shape (n_timesteps, n_features) or Trials
        Checked sequences.

    Yields
    ------
    proba : ndarray of shape (n_timesteps, n_components)
        Probabilities of the states given the frames so far.

    surprise : ndarray of shape (n_timesteps,)
        Minus the log density of each frame given those before.

    ahead : ndarray of shape (n_components,)
        Log state probabilities of the next frame after the last one.
    """
    for n in range(max(len(batch), len(sequences))):
        i, x = n % len(batch), sequences[n % len(sequences)]
        for recording in x if isinstance(x, Trials) else [x]:
            ahead = logs_of(chain_of(batch, i)[0])
            yield *passed(batch, i, recording, ahead), ahead


def per_unit(batch, sequences, part):
    """Return one of the results of `filtered` per sequence; lists for `Trials`."""
    found = [results[part] for results in filtered(batch, sequences)]
    _, units = split_units(paired_units(batch, sequences))
    return units.grouped(found, list)


class Forecast:
    """Forecasts of the frames after the end of sequences.

    Created by `HMMBatch.forecast`.

    Parameters
    ----------
    models : HMMBatch
        The models.

    probabilities : ndarray of shape (n_pairs, steps, n_components)
        Probabilities of the states.

    Attributes
    ----------
    probabilities : ndarray of shape (n_pairs, steps, n_components)
        Probabilities of the states of the frames 1, 2, ... after the last one.

    See Also
    --------
    HMMBatch.forecast : Creates forecasts, with an example.
    """

    def __init__(self, models: Any, probabilities: NDArray[np.float64]) -> None:
        self._models = models
        self.probabilities = probabilities

    def __repr__(self) -> str:
        n_pairs, steps, _ = self.probabilities.shape
        return f"Forecast(n_pairs={n_pairs}, steps={steps})"

    @property
    def means(self) -> NDArray[np.float64]:
        """Expected frames, of shape (n_pairs, steps, n_features).

        Channels of angles and symbols have no mean and are NaN.
        """
        parts = zip(self._moments(), self.probabilities, strict=True)
        return np.array([p[:, : len(means)] @ means for (means, _), p in parts])

    @property
    def covariances(self) -> NDArray[np.float64]:
        """Covariances of shape (n_pairs, steps, n_features, n_features)."""
        found = []
        for (means, covars), p in zip(self._moments(), self.probabilities, strict=True):
            weights = p[:, : len(means)]
            gaps = means - (weights @ means)[:, None]
            between = np.einsum("sk,skc,skd->scd", weights, gaps, gaps)
            found.append(np.einsum("sk,kcd->scd", weights, covars) + between)
        return np.array(found)

    def _moments(self):
        models = self._models
        for n in range(len(self.probabilities)):
            i = n % len(models)
            yield models.emission.moments(i, models.n_components[i])

    def sample(
        self, n_samples: int = 1, *, random_state: Any = None
    ) -> list[list[NDArray[Any]]]:
        """Draw continuations of the sequences: state paths, and frames along them.

        Parameters
        ----------
        n_samples : int, default=1
            Number of continuations per pair of a model and a sequence.

        random_state : int, RandomState instance, Generator or None, default=None
            Seed of the draws.

        Returns
        -------
        samples : list of list of ndarray of shape (steps, n_features)
            The drawn frames, `n_samples` arrays per pair.
        """
        check_integer("n_samples", n_samples, 1)
        seed, models = check_seed(random_state), self._models
        seeds = model_seeds(seed, np.resize(models.keys, len(self.probabilities)))
        samples = []
        for n, p in enumerate(self.probabilities):
            i, rng = n % len(models), item_rng(*seeds[n])
            start, transmat = p[0, : models.n_components[i]], chain_of(models, i)[1]
            samples.append(
                [self._drawn(i, start, transmat, rng) for _ in range(n_samples)]
            )
        return samples

    def _drawn(self, i, start, transmat, rng):
        path = np.empty(self.probabilities.shape[1], np.int64)
        random_path(np.array(start), transmat, rng.random(len(path)), path)
        emission = self._models.emission
        return emission.shown(emission.drawn(i, path, rng))


def forecasts(batch, sequences, steps):
    """Return the forecast of the frames after each sequence."""
    check_integer("steps", steps, 1)
    for n, x in enumerate(sequences):
        if isinstance(x, Trials):
            raise TypeError(
                f"X[{n}] must be one recording, after whose end frames are forecast, "
                f"got {x!r}."
            )
    size = batch.transmats.shape[1]
    found = filtered(batch, sequences)
    probabilities = np.zeros((max(len(batch), len(sequences)), steps, size))
    for n, (_, _, ahead) in enumerate(found):
        transmat = chain_of(batch, n % len(batch))[1]
        now = np.exp(ahead - ahead.max())
        now /= now.sum()
        for step in range(steps):
            probabilities[n, step, : len(now)] = now
            now = now @ transmat
    return Forecast(batch, probabilities)


def checked_frame(batch, frame):
    """Return a frame as a checked sequence of one frame, or raise."""
    n_features = batch.n_features
    # A scalar is accepted as a frame with one value.
    is_frame = np.shape(frame) == (n_features,) or n_features == 1 > np.ndim(frame)
    if not is_frame:
        raise ValueError(
            f"frame must have shape ({n_features},), one value per feature, got shape "
            f"{np.shape(frame)}."
        )
    is_missing = np.asarray(frame).dtype.kind == "f" and np.isnan(frame).all()
    if is_missing and batch.emission.accepts_missing:
        # A sequence needs an observed value, a frame of a stream does not.
        return np.full((1, n_features), np.nan)
    sequence: Any = [frame] if np.ndim(frame) == 0 else np.asarray(frame)[None]
    if np.asarray(frame).dtype.kind == "f" and np.isinf(frame).any():
        raise ValueError(f"frame must not hold infinite values, got {frame}.")
    try:
        return batch.emission.checked(
            [sequence], caller="HMMStream", n_features=n_features
        )[0]
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(re.sub(r"\bX(\[0\])?", "frame", str(error))) from error


class HMMStream:
    """One model that follows a running process frame by frame.

    Created by `HMMBatch.stream`. The time per frame is constant, and only the state
    probabilities are kept in memory. A stream can be pickled, and continues where it
    stopped.

    Parameters
    ----------
    model : HMMBatch
        A batch of one model.

    Attributes
    ----------
    probabilities : ndarray of shape (n_components,)
        State probabilities of the last frame, given the frames so far. Before the first
        frame, the start probabilities.

    n_frames : int
        Number of frames so far.

    See Also
    --------
    HMMBatch.stream : Creates streams, with an example.
    HMMBatch.filter_proba : The same probabilities, for whole sequences.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        start = chain_of(model, 0)[0]
        self._ahead = logs_of(start)
        self.probabilities = start.copy()
        self.n_frames = 0

    def __repr__(self) -> str:
        return f"HMMStream(n_frames={self.n_frames}, model={self._model!r})"

    def update(self, frame: ArrayLike) -> tuple[NDArray[np.float64], float]:
        """Process the next frame; return its state probabilities and surprise.

        Parameters
        ----------
        frame : array-like of shape (n_features,)
            The frame; a symbol, if states emit symbols. NaN marks a missing value. If
            the frame is invalid, an error is raised and the stream does not change.

        Returns
        -------
        probabilities : ndarray of shape (n_components,)
            Probabilities of the states, given the frames so far.

        surprise : float
            Minus the log density of the frame, given the frames before it; infinite if
            the model cannot emit it.
        """
        x = checked_frame(self._model, frame)
        proba, surprise = passed(self._model, 0, x, self._ahead)
        self.probabilities = proba[0]
        self.n_frames += 1
        return proba[0], float(surprise[0])
