"""HMMMonitor: detects when a running process changes, and what changed."""

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from skawhmm._estimator import EstimatorMixin
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.models._causal import filtered
from skawhmm.monitoring._evidence import Evidence, Ranks
from skawhmm.monitoring._files import load_monitor, save_monitor
from skawhmm.monitoring._names import (
    Differences,
    StateNames,
    registered_to,
    state_letters,
    usual_gap,
)
from skawhmm.monitoring._references import References
from skawhmm.monitoring._stream import FrameBuffer, check_frames, check_times
from skawhmm.neighbors._retriever import HMMRetriever
from skawhmm.sequences._forms import warn_caller
from skawhmm.sequences._windows import Windows
from skawhmm.utils._checks import (
    check_choice,
    check_integer,
    check_optional,
    check_real,
    check_seed,
)
from skawhmm.utils._interruption import all_or_nothing
from skawhmm.utils._seeds import item_rng
from skawhmm.utils._tables import data_frame

# With fewer calibration windows, alarms take long.
FEW_WINDOWS = 20

# Least p-value of a window that becomes a reference with adapt="quiet".
QUIET_PVALUE = 0.5

# A frame that a model cannot emit counts as if its log density were minus this.
MOST_SURPRISE = 1e6

# Columns of a row, in order.
COLUMNS = (
    "start",
    "end",
    "time",
    "distance",
    "pvalue",
    "evidence",
    "alarm",
    "began",
    "nearest",
    "state",
    "transition",
    "states",
    "weights",
)

positive = partial(check_integer, low=1)


def check_adapt(name, value):
    """Raise unless `value` is a rule for which windows become references."""
    if value is not None and not callable(value) and value != "quiet":
        raise ValueError(
            f"{name} must be None, 'quiet' or a function of a row, got {value!r}."
        )


class HMMMonitor(EstimatorMixin, BaseEstimator):
    """Monitor a running process: detect when it changed, and what changed.

    `fit` learns from recordings of the normal process. `partial_fit` takes frames as
    they arrive. Every `step` frames it fits a model to the last `length` frames,
    compares it with the models of reference windows, and appends a row. An alarm means
    that windows have become less and less like the reference. On average there are at
    most `false_alarm_rate` false alarms per row, whatever the process is.

    Parameters
    ----------
    length : int, default=200
        Number of frames of a window. A window should contain many changes of state,
        because windows of the process must be roughly independent of each other.

    step : int, default=None
        Number of frames from one row to the next; it must divide `length`. By default
        `length`, so that windows do not overlap. Smaller steps detect changes sooner.

    n_neighbors : int, default=5
        Number of nearest references over which the distance of a window is averaged.

    false_alarm_rate : float in (0, 1), default=0.001
        Largest mean number of false alarms per row. An alarm is raised as soon as the
        evidence reaches the reciprocal of this rate.

    metric : {"jaw", "maw", "coupling", "iaw", "kl", "mmd"} or object, default="jaw"
        Distance between two models.

    alpha : float in [0, 1], default=None
        Weight of the transition component in the distance. By default 0.1 for "maw" and
        "iaw", 0.5 for "jaw".

    hmm : transformer, default=None
        Turns windows into models; it is cloned. It must start from, or shrink to, a
        pooled model, so that all windows are fitted in the same way. By default
        ``HMMTransformer(init="pooled", random_state=0)``.

    split : {"time", "recordings"}, default="time"
        How reference windows are divided into those that calibrate the alarms and those
        that new windows are compared with: "time" calibrates with the later half of
        each recording, "recordings" with every second recording. The latter is right if
        recordings differ from each other and the stream is one more of them.

    adapt : {None, "quiet"} or callable, default=None
        Which new windows become references, too: none, windows with a p-value of at
        least one half, or windows for whose row (a dictionary) the callable returns
        True. The newest ones are kept, as many as `fit` had. The bound on false alarms
        is proved only for None.

    new_state : float, default=2.0
        A state gets a new name if its distance to all known states exceeds this
        multiple of the distance within which 95 % of the states of calibration windows
        lie.

    state_names : list of str, default=None
        Names of the states of the reference model, by default "A", "B" and so on.

    max_missing : float in [0, 1], default=0.2
        Largest missing fraction of a channel. Windows beyond it are not judged: their
        rows have no distance.

    max_gap : float, default=None
        Largest time between two frames of a window, if times are given. By default 1.5
        times the median interval of the first frames.

    max_rows : int, default=10000
        Number of newest rows that are kept, so that memory does not grow with time.

    n_jobs : int, default=None
        Number of joblib workers for fits and distances.

    random_state : int, RandomState instance, Generator or None, default=0
        Seed of the random numbers that break ties between p-values.

    Attributes
    ----------
    models_ : HMMBatch
        The references.

    reference_model_ : HMMBatch
        One model of all references; its states have the names `state_names_`.

    state_names_ : list of str
        Names of the states of the reference model.

    calibration_scores_ : ndarray of shape (n_windows,)
        Distances of the calibration windows to the references.

    rows_ : list of dict
        The rows, with the columns described in the notes.

    n_frames_ : int
        Number of frames taken so far. After `load`, continue with the next one.

    n_features_in_ : int
        Number of features of a frame.

    See Also
    --------
    HMMNoveltyDetector : P-values of single models, without a time order.
    skawhmm.sequences.Windows : Windows of recordings.
    skawhmm.plot.MonitorDisplay : A picture of the rows.

    Notes
    -----
    Rows have the columns ``start`` and ``end`` (frames of the window), ``time`` (of its
    last frame), ``distance``, ``pvalue``, ``evidence``, ``alarm``, ``began`` (time at
    which the change began, if there is an alarm), ``nearest`` (index of the nearest
    reference), ``state`` and ``transition`` (what differs most from the reference),
    ``states`` and ``weights`` (names and probabilities of the states of the window).

    An error leaves the monitor unchanged, except that rejected frames count as a gap:
    the next window begins with the next frames.

    The page :doc:`/user_guide/monitoring` proves the bound on false alarms and says
    what it assumes.

    References
    ----------
    Vovk, V., Gammerman, A. and Shafer, G. (2005). Algorithmic Learning in a Random
    World. Springer.

    Shin, J., Ramdas, A. and Rinaldo, A. (2024). E-detectors: a nonparametric framework
    for sequential change detection. New England Journal of Statistics in Data Science.

    Examples
    --------
    A machine reverses the order of its states after 4000 frames, at the same levels.
    The alarm comes 600 frames later and dates the change to frame 4003:

    >>> import numpy as np
    >>> from skawhmm import HMMBatch, HMMMonitor
    >>> def machine(up, down, n_timesteps, seed):
    ...     chain = [[0.9, up, down], [down, 0.9, up], [up, down, 0.9]]
    ...     model = HMMBatch([chain], [[[0.0], [3.0], [6.0]]], np.ones((1, 3, 1)))
    ...     return model.sample(n_timesteps, random_state=seed)[0][0]
    >>> monitor = HMMMonitor(length=200).fit([machine(0.09, 0.01, 40_000, seed=0)])
    >>> stream = np.concatenate(
    ...     [machine(0.09, 0.01, 4000, seed=1), machine(0.01, 0.09, 2000, seed=2)]
    ... )
    >>> rows = monitor.partial_fit(stream).rows_
    >>> first = next(row for row in rows if row["alarm"])
    >>> first["end"], first["began"]
    (4600, 4003.0)
    """

    _parameter_checks: ClassVar = {
        **EstimatorMixin._parameter_checks,
        "length": positive,
        "step": partial(check_optional, check=positive),
        "n_neighbors": positive,
        "false_alarm_rate": partial(
            check_real, low=0, high=1, include_low=False, include_high=False
        ),
        "split": partial(check_choice, choices=("time", "recordings")),
        "adapt": check_adapt,
        "new_state": partial(check_real, low=0, high=np.inf, include_low=False),
        "max_missing": partial(check_real, low=0, high=1),
        "max_gap": partial(
            check_optional,
            check=partial(check_real, low=0, high=np.inf, include_low=False),
        ),
        "max_rows": positive,
    }

    def __init__(
        self,
        length: int = 200,
        step: int | None = None,
        *,
        n_neighbors: int = 5,
        false_alarm_rate: float = 0.001,
        metric: Any = "jaw",
        alpha: float | None = None,
        hmm: Any = None,
        split: str = "time",
        adapt: str | Callable[[dict[str, Any]], bool] | None = None,
        new_state: float = 2.0,
        state_names: list[str] | None = None,
        max_missing: float = 0.2,
        max_gap: float | None = None,
        max_rows: int = 10_000,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.length = length
        self.step = step
        self.n_neighbors = n_neighbors
        self.false_alarm_rate = false_alarm_rate
        self.metric = metric
        self.alpha = alpha
        self.hmm = hmm
        self.split = split
        self.adapt = adapt
        self.new_state = new_state
        self.state_names = state_names
        self.max_missing = max_missing
        self.max_gap = max_gap
        self.max_rows = max_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "HMMMonitor":  # noqa: ARG002
        """Learn the normal process, and calibrate the alarms.

        Parameters
        ----------
        X : list of array-like of shape (n_timesteps, n_features)
            Reference recordings, each of at least `length` frames.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : HMMMonitor
            The monitor, ready for the first frame.
        """
        self._begin_fit()
        step = self._checked_step()
        windows = Windows(self.length).fit_transform(X)
        kept = [i for i, x in enumerate(windows) if not self._too_gappy(x)]
        parts = self._halves(windows.info["recording"][kept])
        references, calibration = (np.array(kept, int)[part] for part in parts)
        self._check_amounts(len(references), len(calibration))
        self._learn([windows[i] for i in references])
        columns = {name: part[references] for name, part in windows.info.items()}
        self._keep_references(self._reference_models, columns)
        models = self.hmm_.transform([windows[i] for i in calibration])._bare()
        self.calibration_scores_ = self._judged(models)[0]
        found = registered_to(self.reference_model_, models)
        self._names = StateNames(
            self.reference_model_,
            self.state_names_,
            reach=self.new_state * usual_gap(found),
        )
        self._differences = Differences(found, len(self.state_names_))
        n_phases = self.length // step
        self._ranks = [Ranks(self.calibration_scores_) for _ in range(n_phases)]
        self._evidence = [Evidence(self.false_alarm_rate) for _ in range(n_phases)]
        self._buffer = FrameBuffer(self.length, step, self.n_features_in_)
        self._rows: deque[dict[str, Any]] = deque(maxlen=self.max_rows)
        self._n_rows = self._n_added = 0
        self._seed = check_seed(self.random_state)
        return self

    def _checked_step(self):
        step = self.length if self.step is None else self.step
        if self.length % step:
            raise ValueError(
                f"step must divide length={self.length}, so that every few windows "
                f"follow each other without overlap, got {step}."
            )
        return step

    def _halves(self, recording):
        """Return which windows are references, and which calibrate."""
        if self.split == "recordings":
            later = np.unique(recording, return_inverse=True)[1] % 2 == 1
            return ~later, later
        later = np.zeros(len(recording), bool)
        spare = False
        for r in np.unique(recording):
            rows = np.flatnonzero(recording == r)
            # With an odd number of windows, the extra one goes to the two halves in
            # turn.
            later[rows[(len(rows) + (not spare)) // 2 :]] = True
            spare ^= len(rows) % 2 == 1
        return ~later, later

    def _check_amounts(self, n_references, n_calibration):
        if n_references < self.n_neighbors or n_calibration == 0:
            raise ValueError(
                f"X must hold at least {self.n_neighbors} windows of "
                f"{self.length} frames to compare with (n_neighbors) and others to "
                f"calibrate, got {n_references} and {n_calibration} "
                f"(split={self.split!r})."
            )
        if n_calibration < FEW_WINDOWS:
            warn_caller(
                f"{n_calibration} windows calibrate the alarms: p-values are at least "
                f"{1 / (n_calibration + 1):.2g} at first, and alarms take long. Use "
                "longer recordings or shorter windows."
            )

    def _learn(self, windows):
        """Fit the transformer to reference windows; set the reference model."""
        hmm = HMMTransformer(init="pooled", random_state=0)
        self.hmm_ = clone(hmm if self.hmm is None else self.hmm)
        self._reference_models = self.hmm_.fit_transform(windows)
        pooled = getattr(self.hmm_, "pooled_model_", None)
        if pooled is None:
            raise ValueError(
                "hmm must start from a pooled model or shrink to one, so that all "
                'windows are fitted in the same way: HMMTransformer(init="pooled"), '
                f"got {self.hmm!r}."
            )
        self._reference_windows = windows
        self.reference_model_ = pooled._bare()
        self.n_features_in_ = self.hmm_.n_features_in_
        size = int(pooled.n_components[0])
        names = state_letters(size) if self.state_names is None else self.state_names
        if len(names) != size or len({*names}) != size:
            raise ValueError(
                f"state_names must hold {size} different names, one per state of the "
                f"reference model, got {names!r}."
            )
        self.state_names_ = [*map(str, names)]

    def _keep_references(self, models, columns):
        """Set the models that windows are compared with."""
        self._retriever = HMMRetriever(
            self.n_neighbors, metric=self.metric, alpha=self.alpha, n_jobs=self.n_jobs
        ).fit(models._bare()._changed(_info=columns))
        self._metric = self._retriever._check_ready()
        self._references = References(self._retriever.models_, self._metric)
        self._n_references = len(models)

    @property
    def models_(self) -> Any:
        """The references."""
        check_is_fitted(self, "calibration_scores_")
        return self._retriever.models_

    @property
    def rows_(self) -> list[dict[str, Any]]:
        """The rows, oldest first."""
        check_is_fitted(self, "calibration_scores_")
        return [*self._rows]

    @property
    def n_frames_(self) -> int:
        """Number of frames taken so far."""
        check_is_fitted(self, "calibration_scores_")
        return self._buffer.n_frames

    def partial_fit(self, X: ArrayLike, times: Any = None) -> "HMMMonitor":
        """Add the next frames, and append a row for each window that they complete.

        Parameters
        ----------
        X : array-like of shape (n_frames, n_features)
            The next frames, one or more. How frames are divided between calls makes no
            difference. NaN stands for values that were not observed.

        times : array-like of shape (n_frames,) or float, default=None
            Increasing times of the frames, in any unit, if the monitor is to recognise
            gaps, which no window may span. Pass them always or never. By default frames
            are numbered from 0.

        Returns
        -------
        self : HMMMonitor
            The monitor.
        """
        self._check_ready()
        buffer = self._buffer
        try:
            frames = check_frames(X, self.hmm_)
            if times is None:
                times = np.arange(buffer.n_frames, buffer.n_frames + len(frames)) * 1.0
            times = check_times(times, len(frames), buffer.last_time)
        except (TypeError, ValueError):
            # Rejected frames count as a gap.
            buffer.cut()
            raise
        gaps = buffer.gaps(times, self.max_gap).tolist()
        for first, last in pairwise([*sorted({0, *gaps}), len(times)]):
            if first in gaps:
                self._meet_gap(times, first)
            buffer.append(frames[first:last], times[first:last])
            self._process()
        return self

    def _meet_gap(self, times, first):
        """Begin a new window after a gap, and warn."""
        before = self._buffer.last_time
        warn_caller(
            f"times has a gap from {before:g} to {times[first]:g}, the usual interval "
            f"being {self._buffer.interval:g}: the next window begins after it."
        )
        self._buffer.cut()

    def _process(self):
        """Append a row per complete window."""
        buffer = self._buffer
        starts = [*buffer.starts()]
        # Adding a reference changes the distances of later windows.
        size = len(starts) if self.adapt is None else 1
        for k in range(0, len(starts), max(size, 1)):
            windows = [buffer.window(start) for start in starts[k : k + size]]
            good = [n for n, (x, _) in enumerate(windows) if not self._too_gappy(x)]
            found: list[Any] = []
            if good:
                models = self.hmm_._unscored([windows[n][0] for n in good])._bare()
                found = [*zip(*self._judged(models), models, strict=True)]
            for n, (_, times) in enumerate(windows):
                judged = found[good.index(n)] if n in good else None
                self._append(buffer.start, times, judged)
        buffer.trim()

    def _judged(self, models):
        """Return distances of models to the references, and the nearest ones."""
        if self._references.models is not self._retriever.models_:
            self._references = References(self._retriever.models_, self._metric)
        if self._references.takes(models):
            found = self._references.nearest(models, self.n_neighbors)
        else:
            found = self._retriever._nearest(models, self.n_neighbors, self._metric)
        distances, indices = found
        return distances.mean(axis=1), indices[:, 0]

    def _too_gappy(self, x):
        if x.dtype.kind not in "fiu":
            return False
        return bool((np.isnan(x).mean(axis=0) > self.max_missing).any())

    def _append(self, start, times, judged):
        """Append the row of a window, and move on to the next window."""
        row = dict.fromkeys(COLUMNS)
        row.update(start=start, end=start + self.length, time=float(times[-1]))
        row.update(distance=np.nan, pvalue=np.nan, evidence=np.nan, began=np.nan)
        row.update(alarm=False, nearest=-1, state="", transition="")
        row.update(states=(), weights=())
        if judged is None:
            warn_caller(
                f"More than max_missing={self.max_missing} of a channel is missing in "
                f"the window that ends at time {row['time']:g}: it is not judged."
            )
        else:
            self._judge(row, float(times[0]), *judged)
        self._rows.append(row)
        self._n_rows += 1
        self._buffer.advance()
        if judged is not None and self._is_adopted(row):
            self._adopt(judged[2], start)

    def _judge(self, row, time, distance, nearest, model):
        """Fill in the row of a window that begins at a time."""
        phase = self._buffer.place % len(self._ranks)
        ranks, evidence = self._ranks[phase], self._evidence[phase]
        uniform = 1 - item_rng(self._seed, self._n_rows).random()
        pvalue = ranks.pvalue(distance, uniform)
        value = evidence.add(pvalue, time)
        ranks.add(distance)
        row.update(distance=float(distance), nearest=int(nearest), pvalue=pvalue)
        row.update(evidence=value, alarm=value >= 1 / self.false_alarm_rate)
        if row["alarm"]:
            row["began"] = self._change_point(evidence, model)
            evidence.restart(row["time"])
        names, fresh, found = self._names.name(model)
        state, (one, two) = self._differences.largest(found)
        known = self.state_names_
        row["state"] = fresh[0] if fresh else known[state]
        row["transition"] = f"{known[one]} -> {known[two]}"
        weights = model.weights[0]
        row["states"] = tuple(name for name in names if name)
        row["weights"] = tuple(weights[[bool(name) for name in names]].tolist())

    def _change_point(self, evidence, model):
        """Return when the change began, given the evidence of an alarm.

        It is the time that best divides the frames into an earlier part, explained by
        the reference model, and a later part, explained by the model of the last
        window.
        """
        buffer, time = self._buffer, evidence.began
        first = int(np.searchsorted(buffer.times, time))
        if first == 0 and time < buffer.times[0]:
            return time
        end = buffer.start + self.length - buffer.first
        # A change that led to an alarm is not reported again.
        known = int(np.searchsorted(buffer.times, evidence.restarted, side="right"))
        low = max(first - self.length, known, 0)
        x = buffer.frames[low:end]
        gains = np.zeros(len(x))
        for sign, one in ((1, self.reference_model_), (-1, model)):
            _, surprise, _ = next(filtered(one, [x]))
            gains += sign * np.minimum(surprise, MOST_SURPRISE)
        after = np.cumsum(gains[::-1])[::-1]
        candidates = after[: first + self.length - low]
        return float(buffer.times[low + int(np.argmax(candidates))])

    def _is_adopted(self, row):
        """Return whether the window of a row becomes a reference."""
        if self.adapt is None or callable(self.adapt):
            return bool(self.adapt is not None and self.adapt(dict(row)))
        return row["pvalue"] >= QUIET_PVALUE and not row["alarm"]

    def _adopt(self, model, start):
        """Add a window to the references; the oldest added one may be dropped."""
        columns = {"recording": -1, "start": start, "end": start + self.length}
        columns = {name: np.array([value]) for name, value in columns.items()}
        self._retriever.partial_fit(model._changed(_info=columns))
        if self._n_added == self._n_references:
            self._retriever.remove(self._n_references)
        else:
            self._n_added += 1

    def to_frame(self) -> Any:
        """Return the rows as a pandas data frame.

        Returns
        -------
        frame : pandas.DataFrame
            One row per window that was compared, in the order of time.
        """
        rows = self.rows_
        columns = {name: [row[name] for row in rows] for name in COLUMNS}
        return data_frame(columns, "HMMMonitor.to_frame")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the monitor to a file, completely or not at all.

        Parameters
        ----------
        path : str or path-like
            The file, usually named ``*.npz``; it is replaced if it exists. It holds
            arrays and text, never a pickle. Monitors whose parameters are objects, such
            as a distance or a family of your own, can be pickled instead.
        """
        self._check_ready()
        save_monitor(path, self)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "HMMMonitor":
        """Read a monitor that `save` wrote, ready to continue.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        monitor : HMMMonitor
            The monitor. Continue with the frame after the first `n_frames_` frames.
        """
        return load_monitor(cls, path)
