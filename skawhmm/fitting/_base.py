"""Base class of the transformers that fit models to sequences, and its helpers."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from skawhmm.fitting._em import Fit
from skawhmm.models._batch import HMMBatch
from skawhmm.models._counts import Counts
from skawhmm.models._inference import own_log_likelihoods
from skawhmm.sequences._checks import opened
from skawhmm.sequences._forms import warn_of_form
from skawhmm.sequences._names import check_names, fitted_names
from skawhmm.sequences._trials import Trials, mapped
from skawhmm.sequences._windows import WindowList
from skawhmm.utils._parameters import ParametersMixin

WEIGHTS = ("occupancy", "stationary", "uniform")

# Fields of `Fit` that become info columns of the models.
INFO = "converged", "n_iter", "log_likelihood", "n_timesteps", "n_trials"


class ModelTransformer(ParametersMixin, TransformerMixin, BaseEstimator):
    """Base of the transformers that return one model per sequence.

    A subclass has the parameters `weights` and `keep_sequences`.
    """

    weights: str
    keep_sequences: bool
    n_features_in_: int

    def _learned(self, X, y, template):
        """Return checked training sequences; store the template completed by them."""
        X, names, units = opened(type(self).__name__, X, y)
        with units.naming():
            template = template.named(names)
            self._template, sequences = template.learned(X, caller=type(self).__name__)
        warn_of_form(X)
        check_names(self, names, reset=True)
        self.n_features_in_ = sequences[0].shape[1]
        for name, value in self._template.extras.items():
            setattr(self, f"{name}_", value)
        return fitted_units(sequences, units)

    def _checked(self, X):
        """Return sequences checked to match the training sequences."""
        self._check_ready()
        X, names, units = opened(type(self).__name__, X)
        check_names(self, names, reset=False)
        with units.naming():
            sequences = self._template.checked(
                X, caller=type(self).__name__, n_features=self.n_features_in_
            )
        return fitted_units(sequences, units)

    def _batch(self, fits, sequences, *, mask_missing=False):
        """Return the models of fits, with their sequences if these are to be kept."""
        return make_batch(
            fits,
            self._template,
            weights=self.weights,
            mask_missing=mask_missing,
            sequences=sequences if self.keep_sequences else None,
            feature_names=fitted_names(self),
        )

    def set_output(self, *, transform: str | None = None) -> Any:  # noqa: ARG002
        """Do nothing: models are not a table.

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def fitted_units(recordings, units):
    """Return checked recordings as units; each of several trials needs a transition."""
    sequences = units.grouped(recordings)
    for i, x in enumerate(sequences):
        if isinstance(x, Trials) and max(map(len, x)) < 2:
            raise ValueError(
                f"X[{i}] must hold a trial of at least 2 frames, which has a "
                f"transition, got {len(x)} trials of 1 frame."
            )
    return sequences


def make_batch(
    fits,
    template,
    *,
    weights="occupancy",
    mask_missing=False,
    sequences=None,
    feature_names=None,
):
    """Return the models of several fits as one batch.

    Parameters
    ----------
    fits : list of Fit
        At least one fit. The numbers of states may differ.

    template : Emission
        Template of the states.

    weights : {"occupancy", "stationary", "uniform"}, default="occupancy"
        State probabilities of the models, as in `state_weights`.

    mask_missing : bool, default=False
        Whether missing channels are left out of comparisons; otherwise their means and
        variances are 0.

    sequences : list of ndarray, default=None
        The sequences, if the models are to keep them; they are copied.

    feature_names : tuple of str, default=None
        Names of the features.

    Returns
    -------
    models : HMMBatch
        The models, with their counts and with info columns about the fits.
    """
    # One tuple per field, with one entry per fit.
    columns: Any = Fit._make(zip(*fits, strict=True))
    observed = None
    if mask_missing and fits[0].observed is not None:
        observed = np.stack(columns.observed)
    if sequences is not None:
        # The models keep copies: users may change their own arrays later.
        sequences = mapped(np.array, sequences)
    return HMMBatch._fitted(
        template,
        columns.model,
        state_weights(columns.weights, weights),
        observed=observed,
        info={name: np.array(getattr(columns, name)) for name in INFO},
        sequences=sequences,
        feature_names=feature_names,
        counts=Counts.stacked(*zip(*columns.counts, strict=True)),
    )


def with_columns(models, X):
    """Return models with the info columns of `X`, if it is a list of windows."""
    if not isinstance(X, WindowList):
        return models
    return models._changed(_info={**models._info, **X.info})


def scored(models, sequences, n_jobs=None):
    """Return fitted models whose log likelihoods agree with `HMMBatch.score`.

    Gaussian states are fitted in coordinates with more precision than covariances in
    raw units can hold, so the last log likelihood of EM may differ.
    """
    if models.emission.covariance_type == "full":
        # Channels without values have mean and variance 0.
        sequences = mapped(partial(np.nan_to_num, nan=0.0), sequences)
    values = own_log_likelihoods(models, sequences, n_jobs)
    info = models._info
    values = np.where(np.isfinite(values), values, info["log_likelihood"])
    return models._changed(_info={**info, "log_likelihood": values})


def state_weights(occupancies, weights):
    """Return the state probabilities that the parameter `weights` asks for."""
    if weights == "stationary":
        return None
    if weights == "uniform":
        return [(part > 0) / np.count_nonzero(part) for part in occupancies]
    return occupancies
