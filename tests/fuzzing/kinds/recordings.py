"""Recordings in several parts: trials, windows, streams and monitors."""

import tempfile
from pathlib import Path

import numpy as np

import skawhmm as sk
from fuzzing.channels import recordings, template
from fuzzing.draw import pick, plain_sequences
from fuzzing.judge import PROPERTY, BreachError, Trial, check_same
from fuzzing.names import FITTED, SEQUENCES, arguments_of
from fuzzing.params import NO_COUNT, shown
from fuzzing.uses import closed_figures
from skawhmm import HMMMonitor, HMMTransformer, Trials
from skawhmm.models import Forecast, HMMStream
from skawhmm.sequences import WindowList, Windows


def trial(rng):
    """Draw recordings in several parts, and something that takes them."""
    return pick(rng, [_trials, _trials, _windows, _stream, _forecast, _monitor])(rng)


def _trials(rng):
    X = plain_sequences(rng, n_sequences=6)
    good = [X[:3], tuple(X), [X[0][:1], X[1]], [X[0]], np.zeros((2, 5, X[0].shape[1]))]
    odd = [X[0], 3, "abc", None, [], [3], [None], {}, [[X]], [Trials(X)], [X[0][:0]]]
    odd += [
        [X[0][:, :0]],
        [X[0], np.zeros((4, 9))],
        [X[0] + 1j],
        [np.full((4, 1), "a")],
    ]
    wrong = rng.random() < 0.4
    parts = pick(rng, odd if wrong else good)
    uses = {
        "fit": lambda X: HMMTransformer(2, random_state=0).fit_transform(X),
        "Deltas": lambda X: [*sk.sequences.Deltas().fit_transform(X)[0]],
        "Framewise": lambda X: [*sk.Framewise().fit_transform(X)[0]],
        "novelty": lambda X: (
            sk.HMMNoveltyDetector(1)
            .fit(HMMTransformer(1, random_state=0).fit_transform([*X, *X]))
            .predict(HMMTransformer(1, random_state=0).fit_transform(X))
        ),
        "score": lambda X: _models(len(X0[0])).score(X),
        "decode": lambda X: _models(len(X0[0])).decode(X),
    }
    X0 = X[0]
    name = pick(rng, [*uses])

    def call():
        return uses[name]([Trials(parts), X[0]])

    def verify(result):
        check_same(call(), result, "called twice")
        if name == "fit" and len(parts) == 1 and not wrong:
            plain = HMMTransformer(2, random_state=0).fit_transform([X[0], X[0]])
            check_same(plain.means, result.means, "one trial is a sequence")

    return Trial(
        f"{name} of Trials({parts!r:.50})",
        call,
        [X],
        SEQUENCES | {"recordings", "n_neighbors", "false_alarm_rate"},
        verify,
        finite=name not in {"score", "decode"},
        wrong=f"Trials({parts!r:.50})" if wrong else None,
        must=None if wrong else "recordings of one unit are trials",
    )


def _models(n_features):
    """Return a model with two states."""
    shape = 1, 2, n_features
    return sk.HMMBatch(np.full((1, 2, 2), 0.5), np.zeros(shape), np.ones(shape))


def _windows(rng):
    X = plain_sequences(rng)
    lengths = [len(x) for x in X]
    settings = {
        "length": pick(rng, [1, 2, 4, *NO_COUNT, 50]),
        "step": pick(rng, [None, 1, 3, 9, 0, "x", 2.5]),
        "min_length": pick(rng, [None, None, 1, 2, 0, "x"]),
    }
    align = pick(rng, ["end", "center", "x", None])

    def call():
        found = Windows(**settings).fit_transform(X)
        return found, found.per_frame(np.arange(len(found)), align=align)

    def verify(result):
        windows, values = result
        if not isinstance(windows, WindowList):
            raise BreachError(PROPERTY, "windows are not a WindowList")
        for window, r, start, end in zip(windows, *windows.info.values(), strict=True):
            check_same(window, X[r][start:end], "frames of a window")
        check_same([len(v) for v in values], lengths, "values of all frames")
        last = [windows.info["end"][v[v >= 0]] for v in values]
        frames = [np.flatnonzero(v >= 0) + 1 for v in values]
        late = any((e > f).any() for e, f in zip(last, frames, strict=True))
        if align == "end" and late:
            raise BreachError(PROPERTY, "a frame knows a window that ends later")

    return Trial(
        f"Windows({shown(settings)}) of {lengths}, align={align!r}",
        call,
        [X],
        SEQUENCES | arguments_of(Windows, WindowList.per_frame),
        verify,
    )


def _fitted(rng):
    """Return a model with states of any kind, and a recording of it."""
    family, kinds = template(rng)
    (x,) = recordings(rng, kinds, n=1)
    hmm = HMMTransformer(int(rng.integers(1, 4)), emission=family, random_state=0)
    return hmm.fit_transform([x]), x, kinds


def _stream(rng):
    model, x, kinds = _fitted(rng)
    frame = pick(rng, [x[0], x[:1], 3, "a", None, [], [[np.nan]], x[0] + 1j, np.inf])

    def call():
        stream = model.stream()
        if not isinstance(stream, HMMStream):
            raise BreachError(PROPERTY, "not an HMMStream")
        rows = [stream.update(row if len(row) > 1 else row[0]) for row in x]
        return np.array([p for p, _ in rows]), np.array([s for _, s in rows])

    def verify(result):
        check_same(
            result[0], model.filter_proba([x])[0], "frame by frame", tolerance=1e-9
        )
        check_same(result[1], model.surprise([x])[0], "frame by frame", tolerance=1e-9)

    if rng.random() < 0.5:
        return Trial(f"stream of {kinds}", call, [x], {"frame"}, verify, must="frames")
    return Trial(
        f"stream of {kinds}, frame {frame!r:.40}",
        lambda: model.stream().update(frame),
        [x],
        {"frame", "Block"},
        finite=False,
    )


def _forecast(rng):
    model, x, kinds = _fitted(rng)
    steps = pick(rng, [1, 3, 0, -1, 2.5, "x", None, True])
    seed = pick(rng, [0, 1, -1, "x"])

    def call():
        ahead = model.forecast([x], steps)
        if not isinstance(ahead, Forecast):
            raise BreachError(PROPERTY, "not a Forecast")
        return ahead.probabilities, ahead.sample(random_state=seed)

    def verify(result):
        if not np.allclose(result[0].sum(axis=-1), 1):
            raise BreachError(PROPERTY, "probabilities do not sum to one")
        check_same(call(), result, "called twice")

    return Trial(
        f"forecast({steps!r}).sample({seed!r}) of {kinds}",
        call,
        [x],
        {"steps", "random_state", "X", "n_samples"},
        verify,
    )


def _monitor(rng):
    """Draw a monitor that follows a stream, in any pieces, and is saved on the way."""
    is_plain = rng.random() < 0.5
    family, kinds = ("gaussian", ["gaussian"]) if is_plain else template(rng)
    long = np.concatenate(recordings(rng, kinds, n=12))
    settings = {
        "length": pick(rng, [10, 15, 10**6, 0, "x"]),
        "step": pick(rng, [None, 5, 3, "x"]),
        "n_neighbors": pick(rng, [1, 2, 10**3, 0]),
        "false_alarm_rate": pick(rng, [0.1, 0.5, 0, 1, "x"]),
        "adapt": pick(rng, [None, "quiet", "x"]),
        "metric": pick(rng, ["jaw", "maw", "far"]),
    }
    hmm = HMMTransformer(2, emission=family, init="pooled", max_iter=5, random_state=0)
    stream = long[::-1][:40].copy()

    def call():
        monitor = HMMMonitor(**settings, hmm=hmm).fit([long])
        return _rows(monitor.partial_fit(stream))

    def verify(rows):
        monitor = HMMMonitor(**settings, hmm=hmm).fit([long])
        cut = int(rng.integers(1, 39))
        monitor.partial_fit(stream[:cut])
        path = Path(tempfile.mkdtemp(prefix="fuzz")) / "monitor.npz"
        monitor.save(path)
        again = HMMMonitor.load(path).partial_fit(stream[cut:])
        check_same(_rows(again), rows, "in two pieces, saved between")
        with closed_figures():
            sk.plot.MonitorDisplay.from_monitor(again)

    return Trial(
        f"monitor of {kinds}, {shown(settings)}",
        call,
        [long],
        FITTED | SEQUENCES | arguments_of(HMMMonitor, HMMTransformer) | {"Block"},
        verify,
        finite=False,
    )


def _rows(monitor):
    """Return the numbers of the rows."""
    names = "start", "end", "distance", "pvalue", "evidence", "alarm", "nearest"
    return {n: np.array([row[n] for row in monitor.rows_], float) for n in names}
