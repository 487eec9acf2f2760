"""Displays of many sequences of symbols, as in social sequence analysis."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.plot._style import item_names, legend_label, literal, pyplot
from skawhmm.sequences._symbols import (
    check_symbols,
    encoded,
    learned_symbols,
    symbol_sequences,
)
from skawhmm.sequences._trials import Trials
from skawhmm.utils._checks import check_integer, check_real
from skawhmm.utils._colors import COLORS
from skawhmm.utils._numbers import (
    check_square,
    distinct_labels,
    shaped_array,
)

# Codes of unknown symbols, and of times after the end of a sequence.
MISSING, ENDED = -1, -2

# Colour of unknown symbols.
MISSING_COLOR = "0.85"

# Panels per row of a figure.
PANELS_PER_ROW = 3

# Fraction of a row that separates it from the next.
ROW_GAP = 0.08


class SymbolSequencesDisplay(ABC):
    """Base of the displays of many sequences: panels, colours and legend."""

    _panel_size = 4.2, 3.4
    _shows_missing = True
    _has_titles = True

    def __init__(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        symbols: str | ArrayLike | None = None,
        names: Sequence[str] | None = None,
        start: float = 0,
    ) -> None:
        self.X = X
        self.y = y
        self.symbols = symbols
        self.names = names
        self.start = start

    @classmethod
    def from_sequences(
        cls, X: Any, y: ArrayLike | None = None, *, ax: Any = None, **params: Any
    ) -> Any:
        """Draw sequences of symbols.

        Parameters
        ----------
        X : list of str or array-like of shape (n_timesteps,)
            Sequences of strings or integers, as `as_sequences` returns them, or paths
            of states from :meth:`HMMBatch.decode`.

        y : array-like of shape (n_sequences,), default=None
            Groups of the sequences, such as clusters.

        ax : matplotlib.axes.Axes or sequence of them, default=None
            Where to draw, as for :meth:`plot`.

        **params : dict
            Further parameters of the display.

        Returns
        -------
        display : object
            The display.
        """
        return cls(X, y, **params).plot(ax=ax)

    def plot(self, ax: Any = None) -> Any:
        """Draw the sequences.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or sequence of them, default=None
            Where to draw, one per panel; by default on a new figure.

        Returns
        -------
        display : object
            The display.
        """
        codes = self._coded()
        kinds, labels = distinct_labels("y", self.y, len(codes), "sequence")
        groups = [np.flatnonzero(labels == k) for k in range(len(kinds))]
        panels = self._prepare(codes, groups, kinds)
        self._begin(ax, len(panels))
        for panel, (axes, rows) in enumerate(zip(self.axes_, panels, strict=True)):
            self._draw(axes, codes[rows], panel)
            axes.set_xlim(self.start - 0.5, self.start + codes.shape[1] - 0.5)
            axes.set_xlabel("time")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.spines[["top", "right"]].set_visible(False)
            if self.y is not None and self._has_titles:
                axes.set_title(literal(f"{kinds[panel]} (n = {len(rows)})"))
        self._draw_legend(self._shows_missing and (codes == MISSING).any())
        return self

    def _coded(self):
        """Return codes of the symbols, one row of equal length per sequence."""
        sequences = symbol_sequences(self.X)
        if any(isinstance(x, Trials) for x in sequences):
            raise TypeError("X must hold single sequences, got Trials.")
        given = self.symbols
        self.symbols_ = (
            learned_symbols(sequences) if given is None else check_symbols(given)
        )
        texts = item_names("names", self.names, len(self.symbols_), "symbol")
        if self.names is None:
            texts = [str(symbol) for symbol in self.symbols_]
        self._names = texts
        check_real("start", self.start, -np.inf, np.inf)
        codes = np.full((len(sequences), max(map(len, sequences))), ENDED)
        for row, x in zip(codes, encoded(sequences, self.symbols_), strict=True):
            row[: len(x)] = np.where(np.isnan(x[:, 0]), MISSING, x[:, 0])
        self.colors_ = symbol_colors(len(self.symbols_))
        return codes

    @abstractmethod
    def _prepare(self, codes, groups, kinds):
        """Compute what the display shows, and return the rows of each panel."""

    @abstractmethod
    def _draw(self, ax, codes, panel):
        """Draw the sequences of one panel."""

    def _begin(self, ax, n_axes):
        """Set the axes: the given ones, or new ones in rows."""
        self._is_new = ax is None
        if ax is None:
            columns = min(n_axes, PANELS_PER_ROW)
            rows = -(-n_axes // columns)
            width, height = self._panel_size
            figure, grid = pyplot().subplots(
                rows,
                columns,
                figsize=(width * columns, height * rows + 0.5),
                layout="constrained",
                squeeze=False,
            )
            for unused in grid.flat[n_axes:]:
                figure.delaxes(unused)
            ax = grid.flat[:n_axes]
        self.axes_ = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(self.axes_) != n_axes:
            raise ValueError(
                f"ax must hold one axes per panel, {n_axes}, got {len(self.axes_)}."
            )
        self.figure_ = self.axes_[0].figure

    def _draw_rows(self, ax, codes, edges, gap=0.0):
        """Draw sequences as rows of colours between edges of the vertical axis."""
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        patches, colors = [], []
        for row, low, high in zip(codes, edges[:-1], edges[1:], strict=True):
            firsts = np.flatnonzero(np.diff(row, prepend=ENDED - 1))
            for first, last in zip(
                firsts, np.append(firsts[1:], len(row)), strict=True
            ):
                if row[first] != ENDED:
                    corner = self.start + first - 0.5, low + gap / 2
                    patches.append(Rectangle(corner, last - first, high - low - gap))
                    colors.append(self._color(row[first]))
        drawn = PatchCollection(patches, facecolors=colors, linewidths=0)
        # Otherwise borders between rows of one colour would be visible.
        drawn.set_antialiased(False)
        ax.add_collection(drawn)
        ax.set_ylim(edges[-1], edges[0])
        return drawn

    def _color(self, code):
        return MISSING_COLOR if code == MISSING else self.colors_[code]

    def _draw_legend(self, has_missing):
        from matplotlib.patches import Patch

        entries = [*zip(self.colors_, self._names, strict=True)]
        if has_missing:
            entries.append((MISSING_COLOR, "missing"))
        handles = [Patch(color=c, label=legend_label(name)) for c, name in entries]
        style = {"handles": handles, "ncols": min(len(handles), 6), "frameon": False}
        if self._is_new:
            self.legend_ = self.figure_.legend(loc="outside lower center", **style)
        else:
            place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18)}
            self.legend_ = self.axes_[-1].legend(**place, **style)


def symbol_colors(n_symbols):
    """Return one colour per symbol: the colours of states, if there are enough."""
    if n_symbols <= len(COLORS):
        return [*COLORS[:n_symbols]]
    import matplotlib

    if n_symbols <= 20:
        return [*matplotlib.colormaps["tab20"](np.arange(n_symbols))]
    return [*matplotlib.colormaps["turbo"](np.linspace(0, 1, n_symbols))]


class SequenceIndexDisplay(SymbolSequencesDisplay):
    """Show every sequence of symbols as a row of colours: an index plot.

    There is one panel per group. Use :meth:`from_sequences` to create it.

    Parameters
    ----------
    X : list of str or array-like of shape (n_timesteps,)
        Sequences of strings or integers.

    y : array-like of shape (n_sequences,), default=None
        Groups of the sequences.

    symbols : str or array-like of shape (n_symbols,), default=None
        The alphabet, in the order of the legend; by default the symbols that occur.

    names : sequence of str of shape (n_symbols,), default=None
        Names of the symbols in the legend.

    start : float, default=0
        Time of the first symbol, such as an age.

    sort : {"start", "end"} or array-like of shape (n_sequences,), default=None
        Order of the rows: by their symbols from the start or from the end, or by
        numbers, such as the first column of `HMMMapDisplay.positions`.

    Attributes
    ----------
    order_ : ndarray of int of shape (n_sequences,)
        Indices of the sequences from top to bottom, one panel after the other.

    rows_ : list of matplotlib.collections.PatchCollection
        The rows of each panel.

    symbols_ : ndarray of shape (n_symbols,)
        The alphabet.

    axes_ : list of matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    StateDistributionDisplay : Frequencies of the symbols at each time.

    Examples
    --------
    >>> from skawhmm.plot import SequenceIndexDisplay
    >>> lives = ["SSWW", "SWWW", "SSSH"]
    >>> display = SequenceIndexDisplay.from_sequences(lives, sort="end")
    >>> display.order_
    array([2, 0, 1])
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        symbols: str | ArrayLike | None = None,
        names: Sequence[str] | None = None,
        start: float = 0,
        sort: Any = None,
    ) -> None:
        super().__init__(X, y, symbols=symbols, names=names, start=start)
        self.sort = sort

    def _prepare(self, codes, groups, kinds):  # noqa: ARG002
        n_sequences = len(codes)
        keys = np.zeros((n_sequences, 1))
        if isinstance(self.sort, str):
            if self.sort not in {"start", "end"}:
                raise ValueError(
                    "sort must be 'start', 'end', None or one number per sequence, got "
                    f"{self.sort!r}."
                )
            keys = codes if self.sort == "start" else _from_the_end(codes)
        elif self.sort is not None:
            keys = shaped_array("sort", self.sort, n_sequences)[:, None]
        # `lexsort` reads the last key first.
        orders = [rows[np.lexsort(keys[rows, ::-1].T)] for rows in groups]
        self.order_ = np.concatenate(orders)
        self.rows_: list[Any] = []
        return orders

    def _draw(self, ax, codes, panel):  # noqa: ARG002
        self.rows_.append(self._draw_rows(ax, codes, np.arange(len(codes) + 1) + 0.5))
        ax.set_ylabel("sequence")
        ax.yaxis.get_major_locator().set_params(integer=True)


def _from_the_end(codes):
    """Return reversed sequences, each starting from its own last symbol."""
    turned = np.full_like(codes, ENDED)
    for row, new in zip(codes, turned, strict=True):
        own = row[row != ENDED]
        new[: len(own)] = own[::-1]
    return turned


class StateDistributionDisplay(SymbolSequencesDisplay):
    """Show how frequent each symbol, or state, is at each time.

    Each time only counts sequences that last until then and whose symbol is known.
    There is one panel per group. Use :meth:`from_sequences` to create it.

    Parameters
    ----------
    X : list of str or array-like of shape (n_timesteps,)
        Sequences of strings or integers.

    y : array-like of shape (n_sequences,), default=None
        Groups of the sequences.

    symbols : str or array-like of shape (n_symbols,), default=None
        The alphabet, in the order of the legend; by default the symbols that occur.

    names : sequence of str of shape (n_symbols,), default=None
        Names of the symbols in the legend.

    start : float, default=0
        Time of the first symbol, such as an age.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_groups, n_timesteps, n_symbols)
        Fractions of the symbols; NaN at times without a known symbol in the group.

    entropies_ : ndarray of shape (n_groups, n_timesteps)
        Entropy of each distribution, as a fraction of its maximum.

    areas_ : list of list of matplotlib.collections.PolyCollection
        The symbols of each panel.

    symbols_ : ndarray of shape (n_symbols,)
        The alphabet.

    axes_ : list of matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    SequenceIndexDisplay : The sequences themselves.

    Examples
    --------
    >>> from skawhmm.plot import StateDistributionDisplay
    >>> lives = ["SSWW", "SWWW", "SSSH"]
    >>> display = StateDistributionDisplay.from_sequences(lives, symbols="SWH")
    >>> display.frequencies_[0].round(2)
    array([[1.  , 0.  , 0.  ],
           [0.67, 0.33, 0.  ],
           [0.33, 0.67, 0.  ],
           [0.  , 0.67, 0.33]])
    """

    _shows_missing = False

    def _prepare(self, codes, groups, kinds):  # noqa: ARG002
        n_symbols = len(self.symbols_)
        counts = np.array(
            [
                [(codes[rows] == code).sum(axis=0) for code in range(n_symbols)]
                for rows in groups
            ]
        ).transpose(0, 2, 1)
        total = counts.sum(axis=2, keepdims=True)
        self.frequencies_ = np.where(total > 0, counts / np.maximum(total, 1), np.nan)
        logs = np.log(np.where(self.frequencies_ > 0, self.frequencies_, 1))
        largest = np.log(n_symbols) if n_symbols > 1 else 1.0
        self.entropies_ = (0.0 - (self.frequencies_ * logs).sum(axis=2)) / largest
        self.areas_: list[Any] = []
        return groups

    def _draw(self, ax, codes, panel):
        edges = self.start - 0.5 + np.arange(codes.shape[1] + 1)
        tops = np.cumsum(self.frequencies_[panel], axis=1)
        lows = np.column_stack([np.zeros(len(tops)), tops[:, :-1]])
        # The last value is drawn up to the last edge.
        tops, lows = (np.vstack([part, part[-1:]]) for part in (tops, lows))
        self.areas_.append(
            [
                ax.fill_between(edges, low, top, step="post", color=color, linewidth=0)
                for low, top, color in zip(lows.T, tops.T, self.colors_, strict=True)
            ]
        )
        ax.set_ylim(0, 1)
        ax.set_ylabel("fraction of sequences")


class SequenceFrequencyDisplay(SymbolSequencesDisplay):
    """Show the most frequent sequences of symbols, with heights by frequency.

    There is one panel per group. Use :meth:`from_sequences` to create it.

    Parameters
    ----------
    X : list of str or array-like of shape (n_timesteps,)
        Sequences of strings or integers.

    y : array-like of shape (n_sequences,), default=None
        Groups of the sequences.

    symbols : str or array-like of shape (n_symbols,), default=None
        The alphabet, in the order of the legend; by default the symbols that occur.

    names : sequence of str of shape (n_symbols,), default=None
        Names of the symbols in the legend.

    start : float, default=0
        Time of the first symbol, such as an age.

    max_rows : int, default=10
        Largest number of different sequences per panel.

    Attributes
    ----------
    counts_ : list of ndarray of int of shape (n_rows,)
        How often each sequence occurs, per panel.

    examples_ : list of ndarray of int of shape (n_rows,)
        Index in `X` of the first occurrence of each sequence.

    rows_ : list of matplotlib.collections.PatchCollection
        The rows of each panel.

    symbols_ : ndarray of shape (n_symbols,)
        The alphabet.

    axes_ : list of matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    MedoidSequencesDisplay : One typical sequence per group.

    Examples
    --------
    >>> from skawhmm.plot import SequenceFrequencyDisplay
    >>> lives = ["SSWW", "SWWW", "SSSH", "SWWW"]
    >>> display = SequenceFrequencyDisplay.from_sequences(lives, max_rows=2)
    >>> display.counts_[0], display.examples_[0]
    (array([2, 1]), array([1, 0]))
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        symbols: str | ArrayLike | None = None,
        names: Sequence[str] | None = None,
        start: float = 0,
        max_rows: int = 10,
    ) -> None:
        super().__init__(X, y, symbols=symbols, names=names, start=start)
        self.max_rows = max_rows

    def _prepare(self, codes, groups, kinds):  # noqa: ARG002
        check_integer("max_rows", self.max_rows, 1)
        self.counts_, self.examples_ = [], []
        self.rows_: list[Any] = []
        for rows in groups:
            own = codes[rows]
            _, first, counts = np.unique(
                own, axis=0, return_index=True, return_counts=True
            )
            # The most frequent first; ties by first occurrence.
            order = np.lexsort((first, -counts))[: self.max_rows]
            self.counts_.append(counts[order])
            self.examples_.append(rows[first[order]])
        self._frequent = [codes[rows] for rows in self.examples_]
        return groups

    def _draw(self, ax, codes, panel):
        counts = self.counts_[panel]
        edges = np.concatenate([[0], np.cumsum(counts)]) / len(codes)
        gap = ROW_GAP * edges[-1] / len(counts)
        self.rows_.append(self._draw_rows(ax, self._frequent[panel], edges, gap))
        middles = (edges[:-1] + edges[1:]) / 2
        ax.set_yticks(middles, [f"{100 * n / len(codes):.3g} %" for n in counts])
        ax.tick_params(axis="y", length=0)
        ax.set_ylabel(f"{100 * edges[-1]:.3g} % of the sequences")


class MedoidSequencesDisplay(SymbolSequencesDisplay):
    """Show the medoid of each group, the sequence nearest to the others of the group.

    There is one row per group, whose height shows the size of the group. Use
    :meth:`from_sequences` to create it.

    Parameters
    ----------
    X : list of str or array-like of shape (n_timesteps,)
        Sequences of strings or integers.

    y : array-like of shape (n_sequences,), default=None
        Groups of the sequences, such as the clusters of :class:`HMMKMedoids`.

    distances : array-like of shape (n_sequences, n_sequences)
        Distances between the sequences, or between their models.

    symbols : str or array-like of shape (n_symbols,), default=None
        The alphabet, in the order of the legend; by default the symbols that occur.

    names : sequence of str of shape (n_symbols,), default=None
        Names of the symbols in the legend.

    start : float, default=0
        Time of the first symbol, such as an age.

    Attributes
    ----------
    medoids_ : ndarray of int of shape (n_groups,)
        Index in `X` of the medoid of each group; the first one if there are several.

    mean_distances_ : ndarray of shape (n_groups,)
        Mean distance of the sequences of a group to its medoid.

    rows_ : matplotlib.collections.PatchCollection
        The rows.

    symbols_ : ndarray of shape (n_symbols,)
        The alphabet.

    axes_ : list of matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    SequenceFrequencyDisplay : The most frequent sequences.

    Examples
    --------
    >>> from skawhmm import pairwise_hmm_distances
    >>> from skawhmm.fitting import MarkovChainTransformer
    >>> from skawhmm.plot import MedoidSequencesDisplay
    >>> lives = ["SSWWWW", "SSSWWW", "SSSSWW", "SHHHHH", "SSHHHH", "SHHHSH"]
    >>> chains = MarkovChainTransformer().fit_transform(lives)
    >>> distances = pairwise_hmm_distances(chains)
    >>> display = MedoidSequencesDisplay.from_sequences(
    ...     lives, ["work"] * 3 + ["home"] * 3, distances=distances
    ... )
    >>> [lives[i] for i in display.medoids_]
    ['SHHHSH', 'SSSWWW']
    """

    _panel_size = 6.4, 3.4
    _has_titles = False

    def __init__(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        distances: ArrayLike,
        symbols: str | ArrayLike | None = None,
        names: Sequence[str] | None = None,
        start: float = 0,
    ) -> None:
        super().__init__(X, y, symbols=symbols, names=names, start=start)
        self.distances = distances

    def _prepare(self, codes, groups, kinds):
        distances = check_square("distances", self.distances, of="sequence")
        if len(distances) != len(codes):
            raise ValueError(
                f"distances must have one row per sequence, {len(codes)}, got "
                f"{len(distances)}."
            )
        self.medoids_ = np.empty(len(groups), np.int64)
        self.mean_distances_ = np.empty(len(groups))
        for k, rows in enumerate(groups):
            means = distances[np.ix_(rows, rows)].mean(axis=0)
            self.medoids_[k] = rows[np.argmin(means)]
            self.mean_distances_[k] = means.min()
        self._sizes = [len(rows) for rows in groups]
        self._groups = (
            [""] * len(kinds) if self.y is None else [f"{k}\n" for k in kinds]
        )
        return [np.arange(len(codes))]

    def _draw(self, ax, codes, panel):  # noqa: ARG002
        edges = np.concatenate([[0], np.cumsum(self._sizes)]) / len(codes)
        gap = ROW_GAP / len(self._sizes)
        self.rows_ = self._draw_rows(ax, codes[self.medoids_], edges, gap)
        parts = zip(self._groups, self._sizes, self.mean_distances_, strict=True)
        texts = [
            literal(f"{name}n = {n}, mean distance {mean:.2g}")
            for name, n, mean in parts
        ]
        ax.set_yticks((edges[:-1] + edges[1:]) / 2, texts)
        ax.tick_params(axis="y", length=0)
