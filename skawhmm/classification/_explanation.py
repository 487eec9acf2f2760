"""Explanations of decisions: contributions of groups of features."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from skawhmm.classification._channels import SymbolChannel
from skawhmm.features._embedding_statistics import name_fields
from skawhmm.sequences._checks import input_names
from skawhmm.sequences._preprocessing import SequenceTransformer
from skawhmm.utils._checks import check_choice

# Levels by which features can be grouped.
LEVELS = ("view", "reference", "block", "state", "channel", "signal", "feature")


@dataclass(frozen=True)
class Explanation:
    """Contributions of groups of features to the decisions about sequences.

    :meth:`HMMViewClassifier.explain` and :meth:`HMMViewRegressor.explain` return it.

    Parameters
    ----------
    labels : list of str
        Names of the groups of features.

    contributions : ndarray of shape (n_sequences, n_groups, n_targets)
        What each group adds to each decision: the decision minus the decision with the
        features of the group set to their training means.

    decisions : ndarray of shape (n_sequences, n_targets)
        The decisions; one per class, even for two classes.

    classes : ndarray of shape (n_targets,) or None
        The classes; None for a regressor.

    See Also
    --------
    ExplanationDisplay : A picture of it.

    Examples
    --------
    >>> from skawhmm import make_classifier
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=40, random_state=0)
    >>> classifier = make_classifier(random_state=0).fit(X, y)
    >>> explanation = classifier.explain(X[:1], by="view")
    >>> explanation.labels
    ['frames', 'deltas', 'lags']
    >>> explanation.contributions.shape
    (1, 3, 2)
    """

    labels: list[str]
    contributions: np.ndarray
    decisions: np.ndarray
    classes: np.ndarray | None


def check_levels(name, value):
    """Return one of `LEVELS`, or several, as a list, or raise."""
    is_list = isinstance(value, Iterable) and not isinstance(value, str)
    levels = list(value) if is_list else [value]
    if not levels:
        raise ValueError(f"{name} must hold at least 1 of {list(LEVELS)}, got none.")
    return [check_choice(name, level, LEVELS) for level in levels]


def feature_fields(named, sizes):
    """Return the fields of all features of all views."""
    fields: list[dict[str, str]] = []
    for (view, transformer), size in zip(named, sizes, strict=True):
        channel = channel_finder(transformer)
        for name in feature_names(transformer, size):
            own = {**dict.fromkeys(LEVELS, ""), **name_fields(name)}
            own |= {"signal": own["channel"], "channel": channel(own["channel"])}
            fields.append({**own, "view": view, "feature": name})
    return fields


def channel_finder(view):
    """Return a function from a name within a view to the channel it comes from."""
    steps = [step for _, step in view.steps[:-1]] if isinstance(view, Pipeline) else []
    if not steps or not all(isinstance(step, SequenceTransformer) for step in steps):
        return str
    names = sources = input_names(steps[0], None)
    for step in steps:
        names, sources = step._names(names), step._sources(sources)
    if isinstance(steps[0], SymbolChannel):
        # Symbols, words and transitions of symbols all come from one channel.
        return lambda _: sources[0]
    known = dict(zip(names, sources, strict=True))
    return lambda name: known.get(name, name)


def feature_names(transformer: Any, size: int) -> list[str]:
    """Return the names of a view's features; indices if the transformer has none."""
    if not hasattr(transformer, "get_feature_names_out"):
        return [str(n) for n in range(size)]
    return [str(name) for name in transformer.get_feature_names_out()]


def feature_groups(fields, levels):
    """Return the groups of features that agree in some fields."""
    members: dict[str, list[int]] = {}
    for n, own in enumerate(fields):
        label = " ".join(own[level] for level in levels if own[level])
        members.setdefault(label or "other", []).append(n)
    return list(members), [np.array(group) for group in members.values()]
