"""Retrieval scores from distances and labels; equal distances count as one step."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from skawhmm.neighbors._from_distances import without_diagonal
from skawhmm.utils._checks import check_distances, check_integer
from skawhmm.utils._numbers import check_one_type, label_array, real_array


def retrieval_curve(
    distances: ArrayLike,
    y: ArrayLike,
    y_query: ArrayLike | None = None,
    *,
    n_levels: int = 101,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Precision per level of recall, averaged over the queries.

    An item is relevant if it has the label of the query.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_items)
        Distance of each query to each item; infinite ones are allowed.

    y : array-like of shape (n_items,)
        Labels of the items.

    y_query : array-like of shape (n_queries,), default=None
        Labels of the queries. By default the queries are the items, and each query is
        left out of its own list.

    n_levels : int, default=101
        Number of levels of recall, evenly spaced from 0 to 1.

    Returns
    -------
    recall : ndarray of shape (n_levels,)
        The levels, from 0 to 1.

    precision : ndarray of shape (n_levels,)
        Precision when that recall is first reached, averaged over the queries that
        have a relevant item. At recall 0 it is the precision at the first one found.
        NaN if no query has a relevant item.

    Examples
    --------
    >>> from skawhmm.neighbors import retrieval_curve
    >>> distances = [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
    >>> recall, precision = retrieval_curve(distances, ["a", "a", "b"], n_levels=2)
    >>> precision
    array([1., 1.])
    """
    check_integer("n_levels", n_levels, 2)
    recall = np.linspace(0, 1, n_levels)
    precision, found = _steps(*check_retrieval(distances, y, y_query))
    totals = found.sum(axis=1)
    asked = totals > 0
    # The number of relevant items that reaches the level; the slack keeps rounding from
    # demanding one more.
    wanted = np.ceil(recall * totals[asked, None] - 1e-9).astype(int)
    ranks = np.cumsum(found, axis=1)[asked]
    places = [
        np.searchsorted(row, np.maximum(want, 1))
        for row, want in zip(ranks, wanted, strict=True)
    ]
    if not places:
        return recall, np.full(n_levels, np.nan)
    curves = np.take_along_axis(precision[asked], np.array(places), axis=1)
    return recall, curves.mean(axis=0)


def average_precision(
    distances: ArrayLike, y: ArrayLike, y_query: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Average precision, one number per query.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_items)
        Distance of each query to each item; infinite ones are allowed.

    y : array-like of shape (n_items,)
        Labels of the items.

    y_query : array-like of shape (n_queries,), default=None
        Labels of the queries. By default the queries are the items, and each query is
        left out of its own list.

    Returns
    -------
    scores : ndarray of shape (n_queries,)
        Mean over the relevant items of the precision at the rank where each is found,
        as in :func:`sklearn.metrics.average_precision_score`; NaN for a query without
        one.

    Examples
    --------
    >>> from skawhmm.neighbors import average_precision
    >>> distances = [[0, 1, 3], [1, 0, 2], [2, 3, 0]]
    >>> average_precision(distances, ["a", "b", "a"])
    array([0.5, nan, 1. ])
    """
    precision, found = _steps(*check_retrieval(distances, y, y_query))
    return _ratio((precision * found).sum(axis=1), found.sum(axis=1))


def retrieval_auc(
    distances: ArrayLike, y: ArrayLike, y_query: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Area under the receiver operating characteristic, one number per query.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_items)
        Distance of each query to each item; infinite ones are allowed.

    y : array-like of shape (n_items,)
        Labels of the items.

    y_query : array-like of shape (n_queries,), default=None
        Labels of the queries. By default the queries are the items, and each query is
        left out of its own list.

    Returns
    -------
    scores : ndarray of shape (n_queries,)
        Probability that a relevant item is nearer than another one, as in
        :func:`sklearn.metrics.roc_auc_score`; NaN for a query for which all or none of
        the items are relevant.

    Examples
    --------
    >>> from skawhmm.neighbors import retrieval_auc
    >>> distances = [[0, 1, 3, 2], [1, 0, 2, 3], [2, 3, 0, 1], [3, 2, 1, 0]]
    >>> retrieval_auc(distances, ["a", "a", "b", "b"])
    array([1., 1., 1., 1.])
    """
    values, relevant = check_retrieval(distances, y, y_query)
    n_relevant = relevant.sum(axis=1)
    n_others = relevant.shape[1] - n_relevant
    ranks = (rankdata(values, axis=1) * relevant).sum(axis=1)
    wrong = ranks - n_relevant * (n_relevant + 1) / 2
    return 1 - _ratio(wrong, n_relevant * n_others)


def precision_at_k(
    distances: ArrayLike,
    y: ArrayLike,
    y_query: ArrayLike | None = None,
    *,
    n_retrieved: int = 1,
) -> NDArray[np.float64]:
    """Fraction of relevant items among the nearest, one number per query.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_items)
        Distance of each query to each item; infinite ones are allowed.

    y : array-like of shape (n_items,)
        Labels of the items.

    y_query : array-like of shape (n_queries,), default=None
        Labels of the queries. By default the queries are the items, and each query is
        left out of its own list.

    n_retrieved : int, default=1
        Number of items retrieved per query; all, if there are fewer. Items tied with
        the last one count by their expected fraction under random order.

    Returns
    -------
    scores : ndarray of shape (n_queries,)
        One fraction per query.

    Examples
    --------
    >>> from skawhmm.neighbors import precision_at_k
    >>> distances = [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
    >>> precision_at_k(distances, ["a", "a", "b"])
    array([1., 1., 0.])
    """
    if isinstance(y_query, Integral):
        raise TypeError(
            f"y_query must hold one label per query, got {y_query}. The number of "
            f"items is given by its name: n_retrieved={y_query}."
        )
    values, relevant = check_retrieval(distances, y, y_query)
    number = min(check_integer("n_retrieved", n_retrieved, 1), values.shape[1])
    last = np.partition(values, number - 1, axis=1)[:, number - 1, None]
    before, tied = values < last, values == last
    fraction = (tied & relevant).sum(axis=1) / tied.sum(axis=1)
    hits = (before & relevant).sum(axis=1)
    return (hits + (number - before.sum(axis=1)) * fraction) / number


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
        The distances without the diagonal.

    relevant : ndarray of bool of the same shape
        Whether an item has the label of the query.
    """
    distances = real_array("distances", distances)
    wanted = "n_items, n_items" if y_query is None else "n_queries, n_items"
    if distances.ndim != 2 or (y_query is None and len(set(distances.shape)) > 1):
        raise ValueError(
            f"distances must have shape ({wanted}), got {distances.shape}."
        )
    n_queries, n_items = distances.shape
    check_one_type("y", y, "item")
    y = label_array("y", y, n_items, of="item")
    labels = y
    if y_query is not None:
        check_one_type("y_query", y_query, "query")
        labels = label_array("y_query", y_query, n_queries, of="query")
        if (labels.dtype.kind in "US") != (y.dtype.kind in "US"):
            raise ValueError(
                "y_query must hold labels of the type of those in y, or no item is "
                f"relevant, got {labels.dtype} and {y.dtype}."
            )
    check_distances("distances", distances)
    relevant = labels[:, None] == y
    if y_query is None:
        if len(y) < 2:
            raise ValueError(
                f"distances must be between at least 2 items, got {len(y)}."
            )
        return without_diagonal(distances), without_diagonal(relevant)
    return distances, relevant


def _steps(distances, relevant):
    """Walk each list from near to far, a group of equal distances at a time.

    Returns the precision after the group of each place, and whether the item at that
    place is relevant.
    """
    order = np.argsort(distances, axis=1, kind="stable")
    ordered = np.take_along_axis(distances, order, axis=1)
    found = np.take_along_axis(relevant, order, axis=1)
    n_items = distances.shape[1]
    last = np.ones(ordered.shape, bool)
    last[:, :-1] = ordered[:, :-1] != ordered[:, 1:]
    ends: Any = np.where(last, np.arange(n_items), n_items)
    ends = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    hits = np.take_along_axis(np.cumsum(found, axis=1), ends, axis=1)
    return hits / (ends + 1), found


def _ratio(values, counts):
    """Divide, giving NaN where there is nothing to divide by."""
    return np.divide(values, counts, out=np.full(len(values), np.nan), where=counts > 0)
