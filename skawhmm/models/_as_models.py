"""Conversion of fitted models of other libraries, files and dictionaries."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.models._batch import HMMBatch
from skawhmm.models._chromhmm import chromhmm_arrays
from skawhmm.models._dynamax import dynamax_arrays
from skawhmm.models._emhmm import emhmm_arrays, is_emhmm, mat_models
from skawhmm.models._exchange import each_model, is_group, model_parts, named_arrays
from skawhmm.models._glhmm import glhmm_arrays
from skawhmm.models._hmmlearn import hmmlearn_arrays
from skawhmm.models._json import is_own, json_content, json_parts
from skawhmm.models._pomegranate import pomegranate_arrays
from skawhmm.models._ssm import is_ssm_like, ssm_arrays
from skawhmm.sequences._forms import is_models


def as_models(
    models: Any,
    *,
    weights: ArrayLike | Sequence[ArrayLike] | None = None,
    info: Mapping[str, ArrayLike] | None = None,
    feature_names: Sequence[str] | None = None,
) -> HMMBatch:
    """Convert fitted models of other libraries, files or dictionaries to a batch.

    Parameters
    ----------
    models : object or list of objects
        One model or a list of models, which may come from different libraries if all
        have the same kind of states:

        - models of hmmlearn: ``GaussianHMM``, ``GMMHMM``, ``CategoricalHMM``,
          ``PoissonHMM`` and the variational ones; ``MultinomialHMM`` with one trial;
        - parameters of dynamax, as ``fit_em`` returns them;
        - ``DenseHMM`` and ``SparseHMM`` of pomegranate;
        - objects of ssm, or built like them; trained objects of glhmm;
        - dictionaries and named tuples of arrays, as `HMMBatch.from_arrays` takes them;
        - paths of files: ``.npz`` and ``.json`` of this package, ``.mat`` of EMHMM and
          text models (``.txt``) of ChromHMM; JSON may also be given as text;
        - an `HMMBatch`, which is returned unchanged.

    weights : array-like of shape (n_models, n_components), default=None
        State probabilities that distances use. By default taken from the arrays or, if
        they have none, the stationary distribution of each chain.

    info : dict of array-like, default=None
        Columns with one entry per model, such as names or labels.

    feature_names : sequence of str of shape (n_features,), default=None
        Names of the features, as in `HMMBatch`.

    Returns
    -------
    batch : HMMBatch
        The models, in the order given.

    See Also
    --------
    skawhmm.models.HMMBatch.to_hmmlearn : Converts a model for hmmlearn.
    skawhmm.models.HMMBatch.to_dynamax : Converts a model for dynamax.
    skawhmm.models.HMMBatch.to_json : Writes models as text.

    Notes
    -----
    Likelihoods do not change, with these exceptions. Models of pomegranate may end
    after each state; their transition probabilities are replaced by probabilities given
    that the sequence continues. glhmm and the variational models of hmmlearn have
    distributions of parameters; their centres are used. A state without any observed
    transition in hmmlearn gets equal transition probabilities.

    States of mixtures (``GMMHMM``, ``GaussianMixtureHMM``) become one state per
    Gaussian. States with binary marks (ChromHMM, Bernoulli states) become states that
    emit symbols such as "010", one per combination of up to eight marks.

    Rows of probabilities are divided by their sum if it is one up to rounding in single
    precision. Any other sum raises an error that names the model and the state.

    Examples
    --------
    A model of hmmlearn, and one in the form of dynamax:

    >>> import numpy as np
    >>> from hmmlearn.hmm import GaussianHMM
    >>> from skawhmm import as_models, hmm_distance
    >>> frames = np.random.default_rng(0).normal(np.repeat([0, 4, 0, 4, 0], 20))
    >>> theirs = GaussianHMM(2, random_state=0).fit(frames[:, None])
    >>> params = {
    ...     "initial": {"probs": [0.5, 0.5]},
    ...     "transitions": {"transition_matrix": [[0.9, 0.1], [0.1, 0.9]]},
    ...     "emissions": {"means": [[0.0], [4.0]], "covs": [[[1.0]], [[1.0]]]},
    ... }
    >>> models = as_models([theirs, params], info={"library": ["hmmlearn", "dynamax"]})
    >>> models
    HMMBatch(n_models=2, n_components=2, n_features=1, covariance_type='full')
    >>> round(hmm_distance(models[0], models[1]), 2)
    0.53
    """
    given = {"weights": weights, "info": info, "feature_names": feature_names}
    given = {name: value for name, value in given.items() if value is not None}
    found = [_read(item, where) for where, item in _items(models)]
    if not any(is_models(part) for part in found):
        parts = model_parts([model for part in found for model in part])
        return HMMBatch._of(**{**parts, **given})
    if given:
        raise ValueError(
            f"{' and '.join(given)} must be None for models of this package, which "
            "have their own."
        )
    return _concatenated(found)


def _concatenated(found):
    """Return batches, and arrays of models between them, as one batch."""
    batches = [
        part if is_models(part) else HMMBatch._of(**model_parts(part)) for part in found
    ]
    return HMMBatch.concatenate(batches)


def _items(models):
    """Return the input as a list of models, each with its name for messages."""
    if _reader(models) is not None:
        return [("models", models)]
    if isinstance(models, np.ndarray) and models.dtype == object:
        # MATLAB numbers cells column by column.
        models = [*models.ravel(order="F")]
    if isinstance(models, np.ndarray | bytes) or not isinstance(models, Iterable):
        raise _unknown(models, "models")
    return [(f"models[{n}]", item) for n, item in enumerate(models)]


def _read(item, where):
    """Return a batch, or a list with the arrays of each model."""
    reader = _reader(item)
    if reader is None:
        raise _unknown(item, where)
    found = reader(item, where)
    if is_models(found) or isinstance(found, list):
        return found
    return each_model(found)


def _unknown(item, where):
    kinds = "hmmlearn, dynamax, pomegranate, ssm or glhmm"
    return TypeError(
        f"{where} must be a fitted model of {kinds}, a dictionary of arrays, a file or "
        f"an HMMBatch, got {type(item).__name__}. HMMBatch.from_arrays takes the "
        "arrays of any model by name."
    )


def _reader(item):
    """Return the function that reads an item, or None. No library is imported."""
    if is_models(item):
        return _unchanged
    if isinstance(item, str | os.PathLike):
        return _read_file
    packages = {cls.__module__.partition(".")[0] for cls in type(item).__mro__}
    known = packages & {*READERS}
    if known:
        return READERS[known.pop()]
    if is_emhmm(item):
        return emhmm_arrays
    if is_group(item):
        return named_arrays
    return ssm_arrays if is_ssm_like(item) else None


def _unchanged(batch, _):
    return batch


def _read_file(path, where):
    """Return the models of a file, or of JSON text."""
    if isinstance(path, str) and path.lstrip()[:1] in {"{", "["}:
        return _read_json(path, where)
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in FILES:
        raise ValueError(
            f"{where} must name a file of a known kind, one of {list(FILES)}, got "
            f"{os.fspath(path)!r}."
        )
    return FILES[suffix](path, repr(os.fspath(path)))


def _read_npz(path, _):
    return HMMBatch.load(path)


def _read_mat(path, where):
    return [emhmm_arrays(model, name) for name, model in mat_models(path, where)]


def _read_text(path, where):
    return chromhmm_arrays(_text(path, where), where)


def _read_json_file(path, where):
    return _read_json(_text(path, where), where)


def _text(path, where):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} must be a text in UTF-8 ({error}).") from error


def _read_json(text, where):
    content = json_content(text, where)
    if not is_own(content):
        items = content if isinstance(content, list) else [content]
        places = [f"models[{n}] of the JSON" for n in range(len(items))]
        named = (named_arrays(m, w) for m, w in zip(items, places, strict=True))
        return [model for arrays in named for model in each_model(arrays)]
    try:
        return HMMBatch._of(**json_parts(content, where))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} must hold valid models: {error}") from error


def _refused_glm(model, where):
    raise TypeError(
        f"{where} must have states with distributions of their own, got a "
        f"{type(model).__name__} of nemos, whose states depend on inputs. "
        "HMMBatch.from_state_costs compares such models by their coefficients."
    )


# By package of the type of an object.
READERS = {
    "hmmlearn": hmmlearn_arrays,
    "dynamax": dynamax_arrays,
    "pomegranate": pomegranate_arrays,
    "ssm": ssm_arrays,
    "glhmm": glhmm_arrays,
    "nemos": _refused_glm,
    # MATLAB structures that `scipy.io.loadmat` leaves inside cells.
    "scipy": emhmm_arrays,
}
FILES = {
    ".npz": _read_npz,
    ".json": _read_json_file,
    ".mat": _read_mat,
    ".txt": _read_text,
}
