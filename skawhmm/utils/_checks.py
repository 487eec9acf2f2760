"""Checks of models and of the parameters of distances; every error about them."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state


def check_real(name, value, low, high, *, include_low=True):
    """Return `value` as a float if it lies in the interval, else raise.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : object
        What was given.

    low, high : float
        Ends of the interval; the upper one belongs to it unless it is infinite.

    include_low : bool, default=True
        Whether the lower end belongs to the interval.

    Returns
    -------
    value : float
        The number.
    """
    left = "[" if include_low else "("
    right = "]" if np.isfinite(high) else ")"
    wanted = f"a number in {left}{low}, {high}{right}"
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be {wanted}, got {value!r}.")
    number = float(value)
    if not (low <= number <= high) or (number == low and not include_low):
        raise ValueError(f"{name} must be {wanted}, got {value!r}.")
    return number


def check_integer(name, value, low):
    """Return `value` if it is an integer of at least `low`, else raise.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : object
        What was given.

    low : int
        The least value allowed.

    Returns
    -------
    value : int
        The number.
    """
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer of at least {low}, got {value!r}.")
    if value < low:
        raise ValueError(f"{name} must be an integer of at least {low}, got {value!r}.")
    return int(value)


def check_choice(name, value, choices):
    """Return `value` if it is one of `choices`, else raise.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    value : object
        What was given.

    choices : iterable of str
        What is allowed.

    Returns
    -------
    value : str
        The choice.
    """
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.")
    return value


def check_models(name, models):
    """Return `models` if it is a batch that holds a model, else raise.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    models : object
        What was given.

    Returns
    -------
    models : HMMBatch
        The batch.
    """
    if not hasattr(models, "emission"):
        raise TypeError(
            f"{name} must be an HMMBatch, got {type(models).__name__}. "
            "HMMTransformer makes one from sequences."
        )
    if len(models) == 0:
        raise ValueError(f"{name} must hold at least one model, got none.")
    return models


def check_single_model(name, models):
    """Return `models` if it is a batch of exactly one model, else raise.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    models : object
        What was given.

    Returns
    -------
    models : HMMBatch
        The batch.
    """
    if len(check_models(name, models)) != 1:
        raise ValueError(
            f"{name} must hold one model, got {len(models)}. models[i] takes one out "
            "of a batch."
        )
    return models


def check_same_features(X, Y, names=("X", "Y")):
    """Check that the models of two batches can be compared.

    Parameters
    ----------
    X, Y : HMMBatch
        The two batches.

    names : tuple of str, default=("X", "Y")
        The arguments as the caller knows them.
    """
    one, two = names
    if X.n_features != Y.n_features:
        raise ValueError(
            f"{one} and {two} must have the same number of features, got "
            f"{X.n_features} and {Y.n_features}."
        )
    if X.observed is None and Y.observed is None:
        return
    # Few masks differ, and comparing those keeps the memory small.
    masks, rows = np.unique(X.emission.masks(), axis=0, return_index=True)
    others, columns = np.unique(Y.emission.masks(), axis=0, return_index=True)
    apart = np.argwhere(masks @ others.T == 0)
    if len(apart):
        i, j = min((int(rows[k]), int(columns[m])) for k, m in apart)
        raise ValueError(
            f"Models must share an observed feature, got none for model {i} of {one} "
            f"and model {j} of {two}."
        )


def check_retrieval(distances, y, y_query):
    """Return the distances of retrieval and which items are relevant.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_items)
        Distance of each query to each item.

    y : array-like of shape (n_items,)
        Labels of the items.

    y_query : array-like of shape (n_queries,) or None
        Labels of the queries; None if they are the items.

    Returns
    -------
    distances : ndarray of shape (n_queries, n_items or n_items - 1)
        The distances, less those of the items to themselves.

    relevant : ndarray of bool of the same shape
        Whether an item has the label of the query.
    """
    distances, y = np.asarray(distances, dtype=float), np.asarray(y)
    labels = y if y_query is None else np.asarray(y_query)
    wanted = "n_items, n_items" if y_query is None else "n_queries, n_items"
    if distances.shape != labels.shape + y.shape or y.ndim != 1:
        raise ValueError(
            f"distances must have shape ({wanted}) and labels one axis, got distances "
            f"of shape {distances.shape} for {len(labels)} queries and {len(y)} items."
        )
    check_distances("distances", distances)
    relevant = labels[:, None] == y
    if y_query is None:
        if len(y) < 2:
            raise ValueError("distances must be between at least 2 items, got 1.")
        others = ~np.eye(len(y), dtype=bool)
        shape = (len(y), len(y) - 1)
        return distances[others].reshape(shape), relevant[others].reshape(shape)
    return distances, relevant


def check_distances(name, distances):
    """Return distances if none of them is NaN, else raise; infinity is legal.

    Parameters
    ----------
    name : str
        What gave them, as the caller knows it.

    distances : ndarray of shape (n_rows, n_columns[, 2])
        The values.

    Returns
    -------
    distances : ndarray of the same shape
        The values.
    """
    bad = np.isnan(distances)
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0][:2])
        raise ValueError(
            f"{name} must give a number for each pair, got NaN in row {row}, column "
            f"{column}. (Infinite distances are allowed.)"
        )
    return distances


def check_neighbor_count(n_neighbors, n_available):
    """Return a number of neighbours if there are so many, else raise.

    Parameters
    ----------
    n_neighbors : object
        What was given.

    n_available : int
        Number of models that can be neighbours.

    Returns
    -------
    n_neighbors : int
        The number.
    """
    number = check_integer("n_neighbors", n_neighbors, 1)
    if number > n_available:
        raise ValueError(
            f"n_neighbors must be at most the number of models to choose from, got "
            f"n_neighbors = {number}, n_samples_fit = {n_available}."
        )
    return number


def check_metric(metric, names):
    """Return `metric` if it has the members of a distance, else raise.

    Parameters
    ----------
    metric : object
        What was given.

    names : iterable of str
        The names that could have been given instead.

    Returns
    -------
    metric : object
        The distance.
    """
    members = ("symmetric", "prepare", "distances")
    if isinstance(metric, type) or not all(hasattr(metric, name) for name in members):
        raise TypeError(
            f"metric must be one of {', '.join(map(repr, names))} or an object with "
            f"symmetric, prepare and distances, got {metric!r}."
        )
    return metric


def check_seed(random_state):
    """Return an integer that stands for a random state in scikit-learn's sense.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        What was given.

    Returns
    -------
    seed : int
        The integer itself, or one drawn.
    """
    if isinstance(random_state, Integral):
        return check_integer("random_state", random_state, 0)
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_kept_sequences(models):
    """Check that models carry the sequences they were fitted to.

    Parameters
    ----------
    models : HMMBatch
        The models.
    """
    if models.sequences is None:
        raise ValueError(
            "method='data' needs models that carry their sequences, got models without."
            " HMMTransformer(keep_sequences=True) makes them."
        )
    if models.emission.name == "gaussian" and models.covariance_type == "full":
        for n, sequence in enumerate(models.sequences):
            if np.isnan(sequence).any():
                raise ValueError(
                    "method='data' needs complete sequences where covariances are full,"
                    f" got NaN in the sequence of model {n}."
                )


def check_targets(estimator, y):
    """Return `y` if it was given, else raise.

    Parameters
    ----------
    estimator : estimator
        Whose targets they are.

    y : array-like or None
        What was given.

    Returns
    -------
    y : array-like
        The targets.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None."
        )
    return y


def check_channel_groups(groups, n_features):
    """Return the channels of each group by its name.

    Parameters
    ----------
    groups : dict or sequence of sequences of int, or None
        What was given; None stands for one group of all channels.

    n_features : int
        Number of channels.

    Returns
    -------
    groups : dict of ndarray of int
        The channels.
    """
    if groups is None:
        return {"all": np.arange(n_features)}
    if not hasattr(groups, "items"):
        groups = {f"group{n}": channels for n, channels in enumerate(groups)}
    if not groups:
        raise ValueError("groups must hold at least one group of channels, got none.")
    checked = {}
    for name, channels in groups.items():
        array = np.asarray(channels)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise ValueError(
                f"groups[{name!r}] must be a list of channel numbers, got {channels!r}."
            )
        if array.min() < 0 or array.max() >= n_features:
            raise ValueError(
                f"groups[{name!r}] must hold channels from 0 to {n_features - 1}, got "
                f"{channels!r}."
            )
        checked[str(name)] = array
    return checked


def check_matrix(name, matrix, shape):
    """Check that an array can take a result.

    Parameters
    ----------
    name : str
        The argument as the caller knows it.

    matrix : ndarray
        What was given.

    shape : tuple of int
        The shape it must have.
    """
    floating = np.issubdtype(matrix.dtype, np.floating)
    if matrix.shape != shape or not floating or not matrix.flags.writeable:
        raise ValueError(
            f"{name} must be a writable array of floating-point numbers of shape "
            f"{shape}, got {matrix.dtype} of shape {matrix.shape}."
        )


def check_paired(n_models, n_sequences):
    """Check that models and sequences go together one by one.

    Parameters
    ----------
    n_models, n_sequences : int
        How many there are of each.
    """
    if 1 not in {n_models, n_sequences} and n_models != n_sequences:
        raise ValueError(
            f"X must hold a sequence for each of {n_models} models (or one for all), "
            f"got {n_sequences}."
        )


def check_prunable(possible, metric):
    """Check that neighbours can be sought by bounds.

    Parameters
    ----------
    possible : bool
        Whether they can.

    metric : object
        The distance as the caller gave it.
    """
    if not possible:
        raise ValueError(
            "algorithm='pruned' needs a distance with lower bounds ('maw', 'iaw' with "
            "project=True and debias=False, or 'coupling', with p >= 1 and alpha < 1) "
            f"and Gaussian models that observed every feature, got metric={metric!r}. "
            "Use algorithm='auto' or 'brute'."
        )
