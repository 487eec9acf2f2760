"""Decisions from the vectors of several views: linear, or by a radial kernel.

Both kinds have the same two members. `decide(parts)` takes a list with the vectors of
each view, and returns decisions of shape (n_sequences, n_targets). `shares(parts,
groups)` says what each group of features adds to them: the decisions less those with
the features of the group at their means in the training data. The features are numbered
through all views; `groups` is a list of arrays of such numbers.
"""

from typing import NamedTuple

import numpy as np

from skawhmm.classification._views import (
    View,
    inner_products,
    squared_gaps,
    squared_lengths,
    turned,
)


class LinearDecision(NamedTuple):
    """Sums of features times coefficients: `coefs` has one array per view."""

    views: tuple[View, ...]
    coefs: list[np.ndarray]
    intercept: np.ndarray

    def decide(self, parts):
        """Return the decisions."""
        triples = zip(self.views, parts, self.coefs, strict=True)
        return self.intercept + sum(turned(*triple) for triple in triples)

    def shares(self, parts, groups):
        """Return what groups add, of shape (n_sequences, n_groups, n_targets)."""
        gaps = np.hstack([p - v.mean for v, p in zip(self.views, parts, strict=True)])
        coefs = np.vstack(self.coefs)
        return np.stack([gaps[:, g] @ coefs[g] for g in groups], axis=1)


class RadialDecision(NamedTuple):
    """Sums of kernel values times dual coefficients.

    The kernel is `exp(-rate * d**2)`, with the distance d between all views, weighted.
    `rows` and `lengths` hold the vectors of the training sequences by view, and their
    weighted squared lengths.
    """

    views: tuple[View, ...]
    weights: np.ndarray
    rows: tuple[np.ndarray, ...]
    lengths: np.ndarray
    rate: float
    coef: np.ndarray
    intercept: np.ndarray

    def decide(self, parts):
        """Return the decisions."""
        return self._decided(*self._products(parts))

    def shares(self, parts, groups):
        """Return what groups add, of shape (n_sequences, n_groups, n_targets)."""
        products, lengths = self._products(parts)
        whole, found = self._decided(products, lengths), []
        for group in groups:
            own, length = self._products(parts, group)
            found.append(whole - self._decided(products - own, lengths - length))
        return np.stack(found, axis=1)

    def _products(self, parts, group=None):
        """Return products with training vectors, and squared lengths, of a group."""
        products, lengths, first = 0.0, 0.0, 0
        everything = zip(self.views, self.weights, parts, self.rows, strict=True)
        for view, weight, part, rows in everything:
            part_view, n_features = view, len(view.mean)
            if group is not None:
                own = group[(group >= first) & (group < first + n_features)] - first
                part_view = view._replace(mean=view.mean[own])
                part, rows = part[:, own], rows[:, own]  # noqa: PLW2901
            products = products + weight * inner_products(part_view, part, rows)
            lengths = lengths + weight * squared_lengths(part_view, part)
            first += n_features
        return products, lengths

    def _decided(self, products, lengths):
        gaps = squared_gaps(products, lengths, self.lengths)
        return np.exp(-self.rate * gaps) @ self.coef + self.intercept
