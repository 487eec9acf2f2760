"""Delay and false alarms of change detectors on windows of running processes.

Every detector sees the same windows and is set to the same level, a mean number of
false alarms per window. Delays are in windows, from the change to the end of the window
that raises the alarm; "missed" counts streams without an alarm. The references of each
kind of stream are learned once. Run with one thread to compare costs.
"""

import pickle
import time

import numpy as np
from scipy.stats import chi2
from sklearn.ensemble import IsolationForest

from skawhmm import HMMBatch, HMMMonitor, HMMTransformer
from skawhmm.datasets import load_basic_motions
from skawhmm.sequences import Windows

LENGTH = 100
LEVEL = 0.002
N_REFERENCE = 3000
N_STREAMS = 10
BEFORE, AFTER = 20, 60
NULL_WINDOWS = 1000

STAY = 0.9
UP = [[STAY, 0.09, 0.01], [0.01, STAY, 0.09], [0.09, 0.01, STAY]]
DOWN = [[STAY, 0.01, 0.09], [0.09, STAY, 0.01], [0.01, 0.09, STAY]]
LEVELS = np.random.default_rng(5).normal(0, 2, (3, 4))


def machine(n_timesteps, seed, *, chain=UP, levels=LEVELS):
    model = HMMBatch([chain], [levels], np.ones((1, *levels.shape)))
    return model.sample(n_timesteps, random_state=seed)[0][0]


def shifted(state, gap):
    levels = LEVELS.copy()
    levels[state] += gap
    return levels


def changed(kind, n_timesteps, seed):
    """Frames after a change of a kind."""
    if kind == "jump":
        return machine(n_timesteps, seed, levels=shifted(2, 2.0))
    if kind == "new state":
        return machine(n_timesteps, seed, levels=shifted(1, 8.0))
    if kind == "order":
        return machine(n_timesteps, seed, chain=DOWN)
    drift = np.linspace(0, 2, n_timesteps)[:, None]
    return machine(n_timesteps, seed) + drift


class Monitor:
    """HMMMonitor; `fit` once, then a fresh copy per stream."""

    def __init__(self, **params):
        self.params = params

    def fit(self, recordings):
        self.stored = pickle.dumps(HMMMonitor(**self.params).fit(recordings))
        return self

    def alarms(self, stream):
        rows = pickle.loads(self.stored).partial_fit(stream).rows_
        return [row["end"] for row in rows if row["alarm"]]


class OnSummaries:
    """A detector of changes in one vector per window."""

    def __init__(self, length, level, summary):
        self.length, self.level, self.summary = length, level, summary

    def vectors(self, recordings):
        windows = Windows(self.length).fit_transform(recordings)
        return np.array([self.summary(x) for x in windows])

    def alarms(self, stream):
        hits = self.hits(self.vectors([stream]))
        return [(k + 1) * self.length for k in hits]


class EWMAChart(OnSummaries):
    """Hotelling's T2 of exponentially weighted means of windows (MEWMA)."""

    weight = 0.3

    def fit(self, recordings):
        vectors = self.vectors(recordings)
        self.centre = vectors.mean(axis=0)
        self.scale = np.linalg.inv(np.cov(vectors.T))
        self.limit = chi2(vectors.shape[1]).ppf(1 - self.level)
        return self

    def hits(self, vectors):
        found, now, spread = [], 0.0, 0.0
        for k, vector in enumerate(vectors):
            now = (1 - self.weight) * now + self.weight * (vector - self.centre)
            spread = (1 - self.weight) ** 2 * spread + self.weight**2
            if now @ self.scale @ now / spread > self.limit:
                found.append(k)
                now, spread = 0.0, 0.0
        return found


class Forest(OnSummaries):
    """Isolation forest; its limit is a quantile of reference windows left out."""

    def fit(self, recordings):
        vectors = self.vectors(recordings)
        half = len(vectors) // 2
        self.forest = IsolationForest(n_estimators=200, random_state=0).fit(
            vectors[:half]
        )
        scores = np.sort(self.forest.score_samples(vectors[half:]))
        self.limit = scores[int(self.level * len(scores))]
        return self

    def hits(self, vectors):
        return np.flatnonzero(self.forest.score_samples(vectors) < self.limit).tolist()


class River(OnSummaries):
    """A detector of river per summary, each at its part of the level."""

    def __init__(self, *args, make):
        super().__init__(*args)
        self.make = make

    def fit(self, recordings):
        self.known = self.vectors(recordings)[-300:]
        return self

    def hits(self, vectors):
        n_parts = vectors.shape[1]
        detectors = [self.make(self.level / n_parts) for _ in range(n_parts)]
        found = []
        for k, vector in enumerate(np.concatenate([self.known, vectors])):
            hit = False
            for detector, value in zip(detectors, vector, strict=True):
                detector.update(float(value))
                hit |= detector.drift_detected
            if hit and k >= len(self.known):
                found.append(k - len(self.known))
        return found


def means(x):
    return x.mean(axis=0)


def moments(x):
    z = x - x.mean(axis=0)
    lagged = (z[1:] * z[:-1]).mean(axis=0) / np.maximum(z.var(axis=0), 1e-12)
    return np.concatenate([x.mean(axis=0), x.std(axis=0), lagged])


def detectors(length, level, **params):
    found = {
        "HMMMonitor": Monitor(length=length, false_alarm_rate=level, **params),
        "EWMA T2 chart of means": EWMAChart(length, level, means),
        "EWMA T2 chart of moments": EWMAChart(length, level, moments),
        "isolation forest": Forest(length, level, moments),
    }
    try:
        from river import drift
    except ModuleNotFoundError:
        print("river is not installed (pip install river): its detectors are left out.")
        return found
    for name, make in {
        "KSWIN (river)": lambda level: drift.KSWIN(level, 100, 30, seed=0),
        "ADWIN (river)": drift.ADWIN,
    }.items():
        found[name] = River(length, level, moments, make=make)
    return found


def delays(detector, streams, change, length):
    """Windows from the change to the first alarm after it; NaN if there is none."""
    found = []
    for stream in streams:
        later = [end - change for end in detector.alarms(stream) if end > change]
        found.append(later[0] / length if later else np.nan)
    return np.array(found)


def line(name, cells):
    print(f"| {name} | " + " | ".join(cells) + " |")


def shown(found):
    missed = int(np.isnan(found).sum())
    if missed == len(found):
        return "missed"
    return f"{np.nanmean(found):.1f}" + (f" ({missed} missed)" if missed else "")


def generated():
    kinds = ["jump", "drift", "new state", "order"]
    reference = [machine(N_REFERENCE * LENGTH, 0)]
    nulls = [machine(NULL_WINDOWS * LENGTH, 100 + s) for s in range(N_STREAMS)]
    streams = {
        kind: [
            np.concatenate(
                [
                    machine(BEFORE * LENGTH, 200 + s),
                    changed(kind, AFTER * LENGTH, 300 + s),
                ]
            )
            for s in range(N_STREAMS)
        ]
        for kind in kinds
    }
    n_null = N_STREAMS * NULL_WINDOWS
    print(
        f"Generated: windows of {LENGTH} frames, {LEVELS.shape[1]} channels, level "
        f"{LEVEL:g} per window, i.e. {LEVEL * 10_000:.0f} per 10 000; {n_null} windows "
        f"without a change, {N_STREAMS} streams per change.\n"
    )
    line("detector", ["false alarms per 10 000", *kinds, "ms per window"])
    line("---", ["---"] * (len(kinds) + 2))
    for name, detector in detectors(LENGTH, LEVEL).items():
        detector.fit(reference)
        began = time.process_time()
        n_alarms = sum(len(detector.alarms(x)) for x in nulls)
        cost = 1e3 * (time.process_time() - began) / n_null
        change = BEFORE * LENGTH
        cells = [shown(delays(detector, streams[k], change, LENGTH)) for k in kinds]
        line(name, [f"{1e4 * n_alarms / n_null:.0f}", *cells, f"{cost:.2f}"])


def null(n_streams=500, length=20, level=0.01):
    """False alarms of streams without a change, each with references of its own."""
    chain = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    model = HMMBatch([chain], [[[0.0], [2.0], [5.0]]], np.ones((1, 3, 1)))
    hmm = HMMTransformer(2, init="pooled", random_state=0)
    counts = []
    for seed in range(n_streams):
        x = model.sample(2000, random_state=1000 + seed)[0][0]
        monitor = HMMMonitor(
            length, false_alarm_rate=level, hmm=hmm, random_state=seed
        ).fit([x[:1000]])
        rows = monitor.partial_fit(x[1000:]).rows_
        counts.append(sum(row["alarm"] for row in rows))
    n_rows = n_streams * len(rows)
    error = np.std(counts) * n_streams**0.5 / n_rows
    print(
        f"\nNull streams: {n_streams} of {len(rows)} windows, level {level:g}: "
        f"{sum(counts)} false alarms in {n_rows} windows, {sum(counts) / n_rows:.4f} "
        f"per window (standard error {error:.4f})."
    )


def real(length=25, level=0.02):
    """Motions of a watch: recordings of one activity, then of another."""
    X, y = load_basic_motions(return_X_y=True)
    X = [np.asarray(x) for x in X]
    print(
        f"\nBasicMotions: windows of {length} frames, level {level:g} per window; 14 "
        "recordings of an activity as reference, 6 further ones, then 10 of another "
        "activity; all 12 pairs.\n"
    )
    line("detector", ["false alarms", "windows without change", "delay"])
    line("---", ["---"] * 3)
    activities = np.unique(y)
    hmm = HMMTransformer(2, init="pooled", random_state=0)
    params = {"split": "recordings", "hmm": hmm, "n_neighbors": 3}
    missed = []
    for name, detector in detectors(length, level, **params).items():
        n_alarms, n_windows, found = 0, 0, []
        for known in activities:
            own = [x for x, label in zip(X, y, strict=True) if label == known]
            detector.fit(own[:14])
            before = np.concatenate(own[14:])
            n_alarms += len(detector.alarms(before))
            n_windows += len(before) // length
            for other in activities[activities != known]:
                after = [x for x, label in zip(X, y, strict=True) if label == other]
                stream = np.concatenate([before, *after[:10]])
                found.append(delays(detector, [stream], len(before), length)[0])
                if np.isnan(found[-1]):
                    missed.append(f"{name}: {known} to {other}")
        line(name, [str(n_alarms), str(n_windows), shown(np.array(found))])
    print("\nMissed: " + "; ".join(missed) + ".")


def cost():
    """One window at a time, against 1000 references of 12 channels."""
    rng = np.random.default_rng(0)
    chain = np.full((3, 3), 0.03) + 0.91 * np.eye(3)
    model = HMMBatch([chain], rng.normal(0, 2, (1, 3, 12)), np.ones((1, 3, 12)))
    x = model.sample(200 * 2300, random_state=0)[0][0]
    monitor = HMMMonitor(200).fit([x[: 200 * 2000]])
    took = []
    for k in range(2000, 2300):
        began = time.process_time()
        monitor.partial_fit(x[200 * k : 200 * k + 200])
        took.append(1e3 * (time.process_time() - began))
    print(
        f"\nOne window of 200 frames and 12 channels against {len(monitor.models_)} "
        f"references: {np.median(took):.2f} ms (median of {len(took)})."
    )
    stream, n_frames = model.stream(), 20_000
    began = time.process_time()
    for frame in x[:n_frames]:
        stream.update(frame)
    rate = n_frames / (time.process_time() - began)
    print(f"HMMBatch.stream, 3 states, 12 channels: {rate:.0f} frames per second.")


if __name__ == "__main__":
    generated()
    null()
    real()
    cost()
