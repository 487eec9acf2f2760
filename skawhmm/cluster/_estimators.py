"""Clusters of models, around averages or around medoids."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from tqdm.auto import tqdm

from skawhmm._estimator import (
    ModelsMixin,
    ReferencesMixin,
    mixed_precomputed,
)
from skawhmm.cluster._algorithms import (
    kmeans_partition,
    medoid_partition,
    medoid_seeds,
    random_seeds,
    spread_seeds,
)
from skawhmm.cluster._averaging import make_members
from skawhmm.distances._pairwise import all_pairs
from skawhmm.distances._resolve import fitted_metric
from skawhmm.utils._checks import check_choice, check_integer, check_real
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._seeds import random_stream

INITS = {"k-means++": spread_seeds, "medoids": medoid_seeds, "random": random_seeds}


CLUSTERER_CHECKS = {
    "n_clusters": partial(check_integer, low=1),
    "max_iter": partial(check_integer, low=1),
}


class _HMMClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Base of the clusterers with centres; a subclass has `_to_centers`."""

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the distances of models to the cluster centres.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Models or sequences, in one of the forms that `fit` takes.

        Returns
        -------
        distances : ndarray of shape (n_models, n_clusters)
            One row per model, one column per cluster.
        """
        metric = self._check_ready()
        return self._to_centers(X, metric)

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.float64]:
        """Cluster models, and return their distances to the cluster centres.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Models or sequences, in one of the forms that `fit` takes.

        y : array-like of shape (n_models,), default=None
            Passed to `hmm`, not used otherwise.

        Returns
        -------
        distances : ndarray of shape (n_models, n_clusters)
            One row per model, one column per cluster.
        """
        return self.fit(X, y).transform(X)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return one cluster per model: the one with the nearest centre.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Models or sequences, in one of the forms that `fit` takes.

        Returns
        -------
        labels : ndarray of shape (n_models,)
            Indices of the clusters.
        """
        return np.argmin(self.transform(X), axis=1)

    def _check_cluster_count(self, n_models):
        if self.n_clusters > n_models:
            raise ValueError(
                "n_clusters must be at most the number of models, got "
                f"n_clusters={self.n_clusters} for n_samples={n_models}."
            )


class HMMKMeans(ModelsMixin, _HMMClusterer):
    r"""Cluster models around averages (k-means).

    Lloyd's algorithm with :func:`hmm_barycenter` instead of the mean: models are
    assigned to the nearest centre, and centres move to the average of their models.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.

    metric : {"maw", "iaw", "jaw", "coupling"} or object, default="maw"
        Distance between models and centres, of order ``p=2`` if it is a name. Centres
        are averages under "maw" whatever the metric. If the metric registers states by
        index, such as ``JAW(p=2, registration="identity")``, so do the averages.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw" and
        "iaw", 0.5 for "jaw". With 0, centres and assignment minimise the same
        objective; otherwise the best of all rounds is kept.

    init : {"medoids", "k-means++", "random"}, default="medoids"
        How the first centres are chosen: medoids of a sample, which miss the fewest
        clusters; models drawn far from each other; or models drawn at random.

    n_init : int, default=1
        Number of runs from different starts. The run with the least inertia is kept.
        With "medoids" one run is enough; random starts need several.

    max_iter : int, default=100
        Largest number of rounds of a run.

    tol : float, default=1e-4
        A run stops when a round lowers the inertia by less than this fraction.

    hmm : transformer, default=None
        Turns sequences into models; it is cloned, and fitted on the training
        sequences. By default ``HMMTransformer()``; None if `X` is an `HMMBatch`.

    n_jobs : int, default=None
        Number of joblib workers for the distances, threads by default.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed for choosing the first centres.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    cluster_centers_ : HMMBatch
        The averages, one per cluster.

    labels_ : ndarray of shape (n_models,)
        Cluster of each training model.

    inertia_ : float
        Sum of squared distances of the training models to their centres.

    n_iter_ : int
        Number of rounds of the run that was kept.

    hmm_ : transformer or None
        The fitted `hmm`; None if `fit` was given models.

    n_features_in_ : int
        Number of features of the models or sequences; of columns if `fit` was given a
        2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences or models that have
        names; of the columns, if it was given distances in a data frame.

    See Also
    --------
    HMMKMedoids : Clusters around models of the data, for any distance.
    hmm_barycenter : The average of models.

    Examples
    --------
    >>> from skawhmm import HMMKMeans, HMMTransformer
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=8, separation=8.0, random_state=0)
    >>> hmm = HMMTransformer(n_components=2, random_state=0)
    >>> kmeans = HMMKMeans(n_clusters=2, hmm=hmm, random_state=0).fit(X)
    >>> kmeans.labels_
    array([1, 0, 1, 0, 1, 0, 1, 0])
    >>> kmeans.cluster_centers_
    HMMBatch(n_models=2, n_components=2, n_features=2, covariance_type='diag')
    """

    _implied: ClassVar = {"p": 2}
    _parameter_checks: ClassVar = {
        **ModelsMixin._parameter_checks,
        **CLUSTERER_CHECKS,
        "init": partial(check_choice, choices=INITS),
        "n_init": partial(check_integer, low=1),
        "tol": partial(check_real, low=0, high=np.inf),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: Any = "maw",
        alpha: float | None = None,
        init: str = "medoids",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-4,
        hmm: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.alpha = alpha
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.hmm = hmm
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike | None = None) -> "HMMKMeans":
        """Cluster models.

        Parameters
        ----------
        X : HMMBatch or list of array-like of shape (n_timesteps, n_features)
            Models or sequences; sequences may also be a 3-D array padded by NaN, or a
            2-D array whose rows are univariate.

        y : array-like of shape (n_models,), default=None
            Passed to `hmm`, not used otherwise.

        Returns
        -------
        self : HMMKMeans
            The fitted clusterer.
        """
        metric = self._begin_fit()
        X = self._checked(X, y, reset=True)
        self._check_cluster_count(len(X))
        self._references = self._learned_models(X, y)
        metric = fitted_metric(metric, self._references)
        by_index = getattr(metric, "registration", "transport") == "identity"
        members = make_members(self._references, by_index=by_index)
        random_state = random_stream(self.random_state)
        draw, distances = INITS[self.init], partial(self._distances, metric=metric)
        starts = (
            draw(members.models, self.n_clusters, distances, random_state)
            for _ in range(self.n_init)
        )
        rule = self.max_iter, self.tol
        n_rounds = int(self.n_init) * int(self.max_iter)
        label, hidden = "rounds of k-means", not self.verbose
        with tqdm(total=n_rounds, desc=label, disable=hidden) as bar:
            runs = (
                kmeans_partition(members, seeds, distances, *rule, bar.update)
                for seeds in starts
            )
            best = min(runs, key=lambda run: run.inertia)
        self.inertia_, self.labels_, self.cluster_centers_, self.n_iter_ = best
        self._n_features_out = self.n_clusters
        return self

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Return minus the sum of squared distances to the nearest centres.

        Parameters
        ----------
        X : HMMBatch, list of array-like, or array-like
            Models or sequences, in one of the forms that `fit` takes.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        score : float
            Higher is better; 0 if every model equals a centre.
        """
        return -float(np.sum(self.transform(X).min(axis=1) ** 2))

    def _to_centers(self, X, metric):
        metric = fitted_metric(metric, self._references)
        return self._distances(self._models(X), self.cluster_centers_, metric)

    def _distances(self, X, Y, metric):
        distances = all_pairs(X, Y, metric, n_jobs=self.n_jobs)
        if not np.isfinite(distances).all():
            raise ValueError(
                "metric must give finite distances between models and centres, got "
                f"infinity or NaN with metric={self.metric!r}."
            )
        return distances


class HMMKMedoids(ReferencesMixin, _HMMClusterer):
    """Cluster models around medoids, which are models of the data itself.

    The sum of the distances of all models to the medoid of their cluster is minimised
    by FasterPAM from the greedy start of PAM. Nothing is random.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.

    metric : str or object, default="maw"
        Distance between two models: "maw", "iaw", "jaw", "kl", "coupling", "mmd" or an
        object.
        With "precomputed", `X` holds distances of shape (n_models, n_models_fit), or
        their components of shape (n_models, n_models_fit, 2), to be mixed at `alpha`.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw" and
        "iaw", 0.5 for "jaw". Required if `X` holds components; must be None for
        distances without components, and for a `metric` object, which has its own.

    max_iter : int, default=100
        Largest number of rounds over all models.

    hmm : transformer, default=None
        Turns sequences into models; it is cloned, and fitted on the training
        sequences. By default ``HMMTransformer()``; None if `X` is an `HMMBatch`.

    n_jobs : int, default=None
        Number of joblib workers for the distances, threads by default.

    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    medoid_indices_ : ndarray of shape (n_clusters,)
        Indices of the training models that are medoids.

    cluster_centers_ : HMMBatch or None
        The medoids; None if `X` was distances.

    labels_ : ndarray of shape (n_models,)
        Cluster of each training model.

    inertia_ : float
        Sum of the distances of the training models to their medoids.

    n_iter_ : int
        Number of rounds.

    hmm_ : transformer or None
        The fitted `hmm`; None if `fit` was given models or distances.

    n_features_in_ : int
        Number of features of the models or sequences; of columns if `fit` was given a
        2-D array.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the channels, if `fit` was given sequences or models that have
        names; of the columns, if it was given distances in a data frame.

    See Also
    --------
    HMMKMeans : Clusters around averages.

    References
    ----------
    E. Schubert and P. J. Rousseeuw (2021). "Fast and eager k-medoids clustering: O(k)
    runtime improvement of the PAM, CLARA, and CLARANS algorithms." Information Systems
    101, 101804.

    Examples
    --------
    >>> from skawhmm import HMMKMedoids, HMMTransformer
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(n_sequences=8, separation=8.0, random_state=0)
    >>> models = HMMTransformer(n_components=2, random_state=0).fit_transform(X)
    >>> medoids = HMMKMedoids(n_clusters=2).fit(models)
    >>> medoids.labels_
    array([1, 0, 1, 0, 1, 0, 1, 0])
    >>> medoids.medoid_indices_
    array([1, 4])
    """

    _parameter_checks: ClassVar = {
        **ReferencesMixin._parameter_checks,
        **CLUSTERER_CHECKS,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: Any = "maw",
        alpha: float | None = None,
        max_iter: int = 100,
        hmm: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.alpha = alpha
        self.max_iter = max_iter
        self.hmm = hmm
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike | None = None) -> "HMMKMedoids":
        """Cluster models.

        Parameters
        ----------
        X : HMMBatch, list of array-like of shape (n_timesteps, n_features), or array
            Models or sequences; sequences may also be a 3-D array padded by NaN, or a
            2-D array whose rows are univariate. Distances or components between the
            training models if ``metric="precomputed"``.

        y : array-like of shape (n_models,), default=None
            Passed to `hmm`, not used otherwise.

        Returns
        -------
        self : HMMKMedoids
            The fitted clusterer.
        """
        metric = self._begin_fit()
        X = self._checked(X, y, reset=True)
        self._check_cluster_count(len(X))
        self._references = models = self._learned_models(X, y)
        if models is None:
            distances = mixed_precomputed(X, self.alpha)
        else:
            distances = all_pairs(
                models, models, metric, n_jobs=self.n_jobs, verbose=self.verbose
            )
        medoids, self.n_iter_ = medoid_partition(
            distances, self.n_clusters, self.max_iter
        )
        own = distances[:, medoids]
        self.medoid_indices_ = medoids
        self.cluster_centers_ = None if models is None else models[medoids]
        self.labels_ = np.argmin(own, axis=1)
        self.inertia_ = float(own.min(axis=1).sum())
        self._n_features_out = self.n_clusters
        return self

    def _to_centers(self, X, metric):
        if self._precomputed:
            X = self._checked(X, reset=False)
            return mixed_precomputed(X, self.alpha)[:, self.medoid_indices_]
        return all_pairs(
            self._models(X),
            self.cluster_centers_,
            fitted_metric(metric, self._references),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
