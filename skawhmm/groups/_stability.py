@dataclass(frozen=True, eq=False)
class StabilityCurve:
    """How stable models are, by their number of states; see :func:`stability_curve`.

    Parameters
    ----------
    n_components : ndarray of shape (n_numbers,)
        Numbers of states.

    halves : ndarray of shape (n_numbers, n_sequences)
        Agreement of the models of the two halves of each sequence: 1 if they are equal,
        0 if they are as far from each other as from the halves of other sequences.

    restarts : ndarray of shape (n_numbers, n_sequences)
        The same for two fits of the whole sequence from different starts.

    best_n_components : int
        The largest number of states with which restarts agree, by 0.95 on average.

    See Also
    --------
    stability_curve : The computation.
    StabilityDisplay : A picture of it.

    Examples
    --------
    >>> from skawhmm.groups import stability_curve
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, _ = make_hmm_sequences(8, n_timesteps=300, separation=3, random_state=0)
    >>> curve = stability_curve(X, n_components=(1, 3, 6), random_state=0)
    >>> curve.best_n_components
    3
    """

    n_components: NDArray[np.int64]
    halves: NDArray[np.float64] = field(repr=False)
    restarts: NDArray[np.float64] = field(repr=False)
    best_n_components: int

    def _columns(self):
        root = np.sqrt(self.halves.shape[1])
        return {
            "n_components": self.n_components,
            "halves": self.halves.mean(axis=1),
            "halves_error": self.halves.std(axis=1, ddof=1) / root,
            "restarts": self.restarts.mean(axis=1),
            "restarts_error": self.restarts.std(axis=1, ddof=1) / root,
        }

    def to_frame(self) -> Any:
        """Return the curve as a data frame of pandas.

        Returns
        -------
        frame : pandas.DataFrame
            One row per number of states: mean agreement of halves and of restarts, and
            their standard errors over the sequences.
        """
        return data_frame(self._columns(), "StabilityCurve.to_frame")

    def __repr__(self) -> str:
        columns = {name: values.tolist() for name, values in self._columns().items()}
        return f"{text_table(columns)}\nbest_n_components={self.best_n_components}"


def stability_curve(
    X: Any,
    n_components: int | Iterable[int] = range(1, 9),
    *,
    hmm: Any = None,
    metric: str | Distance = "jaw",
    alpha: float | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> StabilityCurve:
    """Return how stable models are for each number of states, to choose one.

    Models are fitted to both halves of each sequence, and twice to the whole of it.
    Stable states are found again: the models of two halves are near to each other,
    compared with the distance to halves of other sequences.

    Parameters
    ----------
    X : list of array-like of shape (n_timesteps, n_features), or array
        At least two sequences, in any form that :class:`HMMTransformer` takes.

    n_components : int or iterable of int, default=range(1, 9)
        Numbers of states.

    hmm : transformer, default=None
        Fits the models; it is cloned, and its `n_components` and `random_state` are
        set. By default ``HMMTransformer()``.

    metric : {"maw", "iaw", "jaw", "kl", "coupling"} or object, default="jaw"
        Distance between two models.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw"
        and "iaw", 0.5 for "jaw". Must be None if the distance has no components, or if
        `metric` is an object, which has its own.

    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the starts.

    n_jobs : int, default=None
        Number of joblib workers for the distances.

    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    curve : StabilityCurve
        Agreement of halves and of restarts by number of states.

    See Also
    --------
    HMMTransformer : ``n_components="bic"`` chooses a number for each sequence.

    Notes
    -----
    A single state is always stable: it is the mean of the frames. The number to choose
    is therefore the largest with which restarts agree, unless its halves agree much
    less than with fewer states.

    Examples
    --------
    Sequences of three states:

    >>> from skawhmm.groups import stability_curve
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, _ = make_hmm_sequences(8, n_timesteps=300, separation=3, random_state=0)
    >>> stability_curve(X, n_components=range(1, 6), random_state=0)
    n_components  halves  halves_error  restarts  restarts_error
               1  0.6731       0.05821         1               0
               2  0.3695        0.1178    0.7477          0.1724
               3  0.4012         0.042    0.9994       0.0002319
               4  0.3181       0.03207    0.8449         0.05357
               5  0.2561       0.03367    0.6769         0.03904
    best_n_components=3
    """
    sizes = check_counts("n_components", _listed(n_components))
    check_hmm("hmm", hmm)
    check_n_jobs("n_jobs", n_jobs)
    check_verbose("verbose", verbose)
    seed = check_seed(random_state)
    chosen = resolve_metric(metric, alpha=alpha)
    sequences = symbol_sequences(X) if holds_symbols(X) else check_sequences(X)
    _check_halves(sequences)
    cuts = [len(x) // 2 for x in sequences]
    parts = [
        [x[:cut] for x, cut in zip(sequences, cuts, strict=True)],
        [x[cut:] for x, cut in zip(sequences, cuts, strict=True)],
    ]
    halves, restarts = [], []
    for size in sizes:
        hmm_of = HMMTransformer() if hmm is None else clone(hmm)
        starts = [
            clone(hmm_of).set_params(n_components=size, random_state=(seed + k) % 2**32)
            for k in range(2)
        ]
        fits = [starts[0].fit(sequences).transform(part) for part in parts]
        between = reference_distances(
            fits[0], fits[1], chosen, n_jobs=n_jobs, verbose=verbose
        )
        n_others = len(sequences) - 1
        apart = (between.sum(axis=1) - np.diagonal(between)) / n_others
        halves.append(_agreement(np.diagonal(between), apart))
        again = [start.fit_transform(sequences) for start in starts]
        pairs = np.arange(len(sequences)), len(sequences) + np.arange(len(sequences))
        both = HMMBatch.concatenate([fit._bare() for fit in again])
        near = chosen.distances(chosen.prepare(both), *pairs)
        restarts.append(_agreement(near, apart))
    found = np.array(restarts)
    return StabilityCurve(np.array(sizes), np.array(halves), found, _best(sizes, found))


def _listed(n_components):
    if isinstance(n_components, str) or not isinstance(n_components, Iterable):
        return n_components
    return list(n_components)


def _check_halves(sequences):
    if len(sequences) < 2:
        raise ValueError(f"X must hold at least 2 sequences, got {len(sequences)}.")
    short = [i for i, x in enumerate(sequences) if len(x) < 2]
    if short:
        raise ValueError(
            f"X must hold sequences of at least 2 frames, got 1 in X[{short[0]}]."
        )


def _agreement(near, apart):
    """Return 1 for equal models, 0 for those as far apart as others are."""
    return np.where(apart > 0, 1 - near / np.where(apart > 0, apart, 1), 0.0)


def _best(sizes, restarts):
    """Return the largest number of states with which restarts agree."""
    means = restarts.mean(axis=1)
    # If none does, the one that comes nearest.
    agreeing = np.minimum(AGREEING, means.max())
    return max(
        size for size, mean in zip(sizes, means, strict=True) if mean >= agreeing
    )
