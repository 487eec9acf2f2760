"""Map of a whole collection."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skawhmm.distances._pairwise import pairwise_hmm_distances
from skawhmm.distances._resolve import resolve_metric
from skawhmm.models._batch import HMMBatch
from skawhmm.models._checks import check_models
from skawhmm.neighbors._from_distances import nearest_others
from skawhmm.numerics._lapack import in_batches
from skawhmm.plot._explorer import explorer_page
from skawhmm.plot._explorer_frame import ExplorerPage, in_notebook
from skawhmm.plot._style import (
    drawing_axes,
    legend_label,
    literal,
)
from skawhmm.utils._checks import check_choice, check_integer
from skawhmm.utils._colors import COLORS
from skawhmm.utils._numbers import (
    check_square,
    distinct_labels,
    label_array,
    shaped_array,
)
from skawhmm.utils._seeds import random_stream
from skawhmm.utils._whole_files import check_path, whole_file

# Markers change when the colours repeat.
MARKERS = "os^Dv<>ph*XP"

# With more labels than this, names are written on the map instead of in a legend.
MAX_LEGEND = 10

# Endings of pictures, which a page must not have.
IMAGE_SUFFIXES = {".gif", ".jpeg", ".jpg", ".pdf", ".png", ".svg"}


class HMMMapDisplay:
    """Show a collection as a map: similar models are close to each other.

    Use :meth:`from_models` or :meth:`from_distances` to create it.

    Parameters
    ----------
    positions : ndarray of shape (n_models, 2)
        Positions of the models on the map.

    y : ndarray of shape (n_models,), default=None
        Labels of the models.

    neighbors : ndarray of int of shape (n_models, n_neighbors), default=None
        The nearest models of each model, which are connected to it by lines.

    distances : ndarray of shape (n_models, n_models), default=None
        Distances between all models, for :meth:`to_html`.

    models : HMMBatch, default=None
        The models, for :meth:`to_html`.

    metric : object, default=None
        The distance between them, for :meth:`to_html`.

    Attributes
    ----------
    points_ : list of matplotlib.collections.PathCollection
        The points, one collection per label, in the order of `classes_`.

    classes_ : ndarray of shape (n_classes,)
        The labels.

    names_ : list of matplotlib.text.Text
        Names next to the points, if there are too many labels for a legend.

    links_ : matplotlib.collections.LineCollection or None
        Lines between neighbours.

    ax_ : matplotlib.axes.Axes
        The axes.

    figure_ : matplotlib.figure.Figure
        The figure.

    See Also
    --------
    DistanceMatrixDisplay : The distances themselves.

    Examples
    --------
    >>> from skawhmm import HMMTransformer
    >>> from skawhmm.plot import HMMMapDisplay
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=20, separation=2, random_state=0)
    >>> models = HMMTransformer(random_state=0).fit_transform(X)
    >>> display = HMMMapDisplay.from_models(models, y, method="mds")
    >>> len(display.points_), display.positions.shape
    (2, (20, 2))
    """

    def __init__(
        self,
        positions: ArrayLike,
        y: ArrayLike | None = None,
        *,
        neighbors: ArrayLike | None = None,
        distances: ArrayLike | None = None,
        models: HMMBatch | None = None,
        metric: Any = None,
    ) -> None:
        self.positions = positions
        self.y = y
        self.neighbors = neighbors
        self.distances = distances
        self.models = models
        self.metric = metric

    @classmethod
    def from_distances(
        cls,
        distances: ArrayLike,
        y: ArrayLike | None = None,
        *,
        method: str = "tsne",
        n_neighbors: int = 0,
        random_state: Any = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> "HMMMapDisplay":
        """Draw a map from a matrix of distances.

        Parameters
        ----------
        distances : array-like of shape (n_models, n_models)
            Distances between all models, which must be finite.

        y : array-like of shape (n_models,), default=None
            Labels of the models.

        method : {"tsne", "mds"}, default="tsne"
            How models are placed: by t-SNE, which keeps close models close, or by
            classical scaling, which keeps large distances as well as two axes can.

        n_neighbors : int, default=0
            Number of nearest models that are connected to each model by lines.

        random_state : int, RandomState instance, Generator or None, default=0
            Seed of "tsne", which starts from classical scaling.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.scatter`.

        Returns
        -------
        display : HMMMapDisplay
            The display.
        """
        check_choice("method", method, POSITIONS)
        distances = check_square("distances", distances)
        if not np.isfinite(distances).all():
            bad = distances[~np.isfinite(distances)].flat[0]
            raise ValueError(
                f"distances must be finite to be drawn, got {bad}; for KL set "
                'metric_params={"cap": ...}.'
            )
        # Check the number of labels before the work, not after it.
        distinct_labels("y", y, len(distances))
        neighbors = None
        if check_integer("n_neighbors", n_neighbors, 0) > 0:
            neighbors, _ = _linked_models(distances, n_neighbors)
        positions = POSITIONS[method](distances, random_stream(random_state))
        display = cls(positions, y, neighbors=neighbors, distances=distances)
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_models(
        cls,
        models: HMMBatch,
        y: ArrayLike | None = None,
        metric: Any = "maw",
        *,
        alpha: float | None = None,
        p: float | None = None,
        metric_params: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        ax: Any = None,
        **kwargs: Any,
    ) -> "HMMMapDisplay":
        """Draw a map of models.

        Parameters
        ----------
        models : HMMBatch
            The models.

        y : array-like of shape (n_models,), default=None
            Labels of the models.

        metric : {"maw", "iaw", "jaw", "kl", "coupling", "mmd"} or object, default="maw"
            Distance between two models.

        alpha : float in [0, 1], default=None
            Weight of the transition component in the distance. By default the weight of
            the distance: 0.1 for "maw" and "iaw", 0.5 for "jaw". Must be None if the
            distance has no components, or if `metric` is an object, which has its own.

        p : float in (0, 2], default=None
            Order of the distance, by default 1. Must be None if the distance has no
            order, or if `metric` is an object, which has its own.

        metric_params : dict, default=None
            Further parameters of the distance.

        n_jobs : int, default=None
            Number of joblib workers for the distances.

        verbose : int, default=0
            Whether to show a progress bar for the distances.

        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`from_distances`.

        Returns
        -------
        display : HMMMapDisplay
            The display.
        """
        chosen = resolve_metric(metric, alpha=alpha, p=p, metric_params=metric_params)
        check_models("models", models)
        distinct_labels("y", y, len(models))
        distances = pairwise_hmm_distances(
            models, metric=chosen, n_jobs=n_jobs, verbose=verbose
        )
        display = cls.from_distances(distances, y, ax=ax, **kwargs)
        display.models, display.metric = models, chosen
        return display

    def plot(self, ax: Any = None, **kwargs: Any) -> "HMMMapDisplay":
        """Draw the points, and lines between neighbours if there are any.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; by default on a new figure.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.scatter`.

        Returns
        -------
        display : HMMMapDisplay
            The display.
        """
        positions = shaped_array("positions", self.positions, "n_models", 2)
        self.classes_, codes = distinct_labels("y", self.y, len(positions))
        self.ax_, self.figure_ = drawing_axes(ax)
        self.links_ = self._draw_links(positions)
        self.points_: list[Any] = []
        self.names_: list[Any] = []
        for code, name in enumerate(self.classes_):
            place = positions[codes == code]
            style = {
                "color": COLORS[code % len(COLORS)],
                "marker": MARKERS[code // len(COLORS) % len(MARKERS)],
                "s": 34,
                "linewidths": 0.5,
                "edgecolors": "white",
                "label": legend_label(name),
                **kwargs,
            }
            self.points_.append(self.ax_.scatter(*place.T, **style))
            if len(self.classes_) > MAX_LEGEND:
                self._draw_name(np.median(place, axis=0), name)
        self.ax_.set(xticks=[], yticks=[], aspect="equal")
        self.ax_.set_adjustable("datalim")
        if 1 < len(self.classes_) <= MAX_LEGEND:
            self.ax_.legend()
        return self

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        n_neighbors: int = 10,
        names: Sequence[str] | None = None,
        channel_names: Sequence[str] | None = None,
        title: str = "Map of sequences",
    ) -> Path:
        """Write the map as a page that can be explored in a browser without a network.

        Hovering over a point shows its label; clicking it shows its nearest neighbours,
        its sequence, its transitions, and how its states correspond to the states of a
        neighbour or of any other point. Points are coloured by label or by any column
        of ``models.info``. The page saves its map as SVG or PNG, and its URL holds the
        current view. Sequences are drawn if the models contain them
        (``HMMTransformer(keep_sequences=True)``). Sequences of more than 100 frames are
        averaged down to 100 steps; of more than 8 channels, the 8 that vary most are
        drawn.

        Parameters
        ----------
        path : str or path-like
            File to write, completely or not at all. If it exists, it is replaced and
            keeps its permissions; a symbolic link is followed.

        n_neighbors : int, default=10
            Number of neighbours that the page shows per model.

        names : sequence of str of shape (n_models,), default=None
            An additional name per model, such as its file.

        channel_names : sequence of str of shape (n_features,), default=None
            Names of the channels; by default the names in the models, or else indices.

        title : str, default="Map of sequences"
            Heading of the page.

        Returns
        -------
        path : pathlib.Path
            The file.

        See Also
        --------
        HMMMapDisplay.explore : The page in a browser or in a notebook.

        Notes
        -----
        The page takes 60 kB, plus, per model of `m` states with `k` neighbours, about
        ``1.4 * (k * (8 + m * m) + 28 * m + 2 * m * m + n_steps * (n_channels + 1))``
        bytes: 0.4 kB for 3 states without the sequence, 1.6 kB with 100 steps of 8
        channels. Up to 480 models of 3 states, the page also holds all distances and
        registrations, at most 2.7 MB, so that any two points can be compared; with
        more models, only neighbours can.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from skawhmm import HMMTransformer
        >>> from skawhmm.plot import HMMMapDisplay
        >>> from skawhmm.datasets import make_hmm_sequences
        >>> X, y = make_hmm_sequences(n_sequences=20, separation=2, random_state=0)
        >>> hmm = HMMTransformer(keep_sequences=True, random_state=0)
        >>> display = HMMMapDisplay.from_models(hmm.fit_transform(X), y, method="mds")
        >>> page = display.to_html(Path(tempfile.mkdtemp()) / "map.html")
        >>> page.name
        'map.html'
        """
        check_path("path", path)
        path = Path(path)
        if path.suffix.lower() in IMAGE_SUFFIXES:
            raise ValueError(
                f"path must name a page, such as 'map.html', got {str(path)!r}. "
                "display.figure_.savefig saves the map as a picture."
            )
        page = self._page("to_html", n_neighbors, names, channel_names, title)
        with whole_file(path) as file:
            file.write(page.encode())
        return path

    def explore(
        self,
        *,
        n_neighbors: int = 10,
        names: Sequence[str] | None = None,
        channel_names: Sequence[str] | None = None,
        title: str = "Map of sequences",
        open_browser: bool | None = None,
    ) -> ExplorerPage:
        """Open the page of `to_html` in a browser, or show it in a notebook.

        Parameters
        ----------
        n_neighbors : int, default=10
            Number of neighbours that the page shows per model.

        names : sequence of str of shape (n_models,), default=None
            An additional name per model, such as its file.

        channel_names : sequence of str of shape (n_features,), default=None
            Names of the channels; by default the names in the models, or else indices.

        title : str, default="Map of sequences"
            Heading of the page.

        open_browser : bool, default=None
            Whether to open the page in a browser, from a temporary file. By default it
            is opened unless the code runs in a notebook.

        Returns
        -------
        page : ExplorerPage
            The page, which a notebook shows in a frame if it is the last line of a
            cell. Its attribute `html` is the text.

        Examples
        --------
        >>> from skawhmm import HMMTransformer
        >>> from skawhmm.plot import HMMMapDisplay
        >>> from skawhmm.datasets import make_hmm_sequences
        >>> X, y = make_hmm_sequences(n_sequences=20, separation=2, random_state=0)
        >>> models = HMMTransformer(random_state=0).fit_transform(X)
        >>> display = HMMMapDisplay.from_models(models, y, method="mds")
        >>> display.explore(open_browser=False)
        ExplorerPage(title='Map of sequences')
        """
        text = self._page("explore", n_neighbors, names, channel_names, title)
        page = ExplorerPage(text, title)
        if open_browser is None:
            open_browser = not in_notebook()
        if open_browser:
            page.open()
        return page

    def _page(self, caller, n_neighbors, names, channel_names, title):
        """Return the text of the page."""
        if self.distances is None:
            raise ValueError(
                f"{caller} needs the distances between the models; make the display "
                "by from_models or from_distances, or give distances."
            )
        distances = np.asarray(self.distances, dtype=float)
        n_models = len(distances)
        if names is not None and len(names) != n_models:
            raise ValueError(
                f"names must have one entry per model, {n_models}, got {len(names)}."
            )
        if channel_names is not None and self.models is None:
            raise ValueError("channel_names must be None if there are no models.")
        if not isinstance(title, str):
            raise TypeError(f"title must be a text, got {title!r}.")
        n_neighbors = check_integer("n_neighbors", n_neighbors, 1)
        neighbors, lengths = _linked_models(distances, n_neighbors)
        return explorer_page(
            np.asarray(self.positions),
            neighbors,
            lengths,
            distances,
            y=None if self.y is None else label_array("y", self.y, n_models),
            names=names,
            channel_names=channel_names,
            models=self.models,
            metric=self.metric,
            title=title,
        )

    def _draw_links(self, positions):
        """Draw lines between neighbours."""
        if self.neighbors is None:
            return None
        from matplotlib.collections import LineCollection

        neighbors = np.asarray(self.neighbors)
        starts = np.repeat(positions, neighbors.shape[1], axis=0)
        lines = np.stack([starts, positions[neighbors.ravel()]], axis=1)
        links = LineCollection(list(lines), colors="0.75", linewidths=0.6, zorder=0)
        return self.ax_.add_collection(links)

    def _draw_name(self, place, name):
        """Write a label over its points."""
        from matplotlib.patheffects import withStroke

        halo = [withStroke(linewidth=2.5, foreground="white")]
        style = {"ha": "center", "va": "center", "weight": "bold"}
        text = self.ax_.text(*place, literal(name), **style)
        text.set_path_effects(halo)
        self.names_.append(text)


def _linked_models(distances, n_neighbors):
    """Return the nearest other models of each model, and their distances."""
    n_neighbors = min(n_neighbors, len(distances) - 1)
    if n_neighbors == 0:
        return np.empty((1, 0), dtype=int), np.empty((1, 0))
    lengths, neighbors = nearest_others(distances, n_neighbors)
    return neighbors, lengths


def _classical_positions(distances, _random_state):
    """Positions by classical scaling: principal axes of the centred Gram matrix."""
    # Scaled by the largest distance, so that no square overflows or underflows.
    unit = np.abs(distances).max(initial=0.0)
    unit = unit if unit > 0 else 1.0
    squared = (distances / unit / 2 + distances.T / unit / 2) ** 2
    rows = squared.mean(axis=0)
    gram = (rows[:, None] + rows - squared - rows.mean()) / 2
    values, vectors = in_batches(np.linalg.eigh, gram)
    # Distances that are not Euclidean also have negative eigenvalues.
    sizes = np.sqrt(np.maximum(values[:-3:-1], 0))
    vectors = vectors[:, :-3:-1]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), range(vectors.shape[1])])
    positions = np.zeros((len(distances), 2))
    # A single model has only one axis.
    positions[:, : len(sizes)] = vectors * sizes * signs * unit
    return positions


def _neighbour_positions(distances, random_state):
    """Positions by t-SNE, started from classical scaling."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    start = _classical_positions(distances, random_state)
    if len(distances) == 1:
        return start
    spread = start[:, 0].std()
    tsne = TSNE(
        metric="precomputed",
        init=start * (1e-4 / spread if spread > 0 else 1.0),
        perplexity=min(30.0, max(1.0, (len(distances) - 1) / 3)),
        random_state=random_state,
    )
    # Sampled divergences can be slightly negative.
    distances = np.maximum((distances + distances.T) / 2, 0)
    # t-SNE's threads wait for each other at every step: on busy cores they take a
    # hundred times as long as a single thread.
    with threadpool_limits(1):
        return tsne.fit_transform(distances)


POSITIONS = {"tsne": _neighbour_positions, "mds": _classical_positions}
