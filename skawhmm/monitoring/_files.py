"""Files of monitors: npz archives with a JSON header, never a pickle."""

import json
import os
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from skawhmm.emissions._base import Emission
from skawhmm.emissions._registry import stored_template, template_from
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.monitoring._evidence import Evidence, Ranks
from skawhmm.monitoring._names import Differences, StateNames
from skawhmm.monitoring._stream import FrameBuffer
from skawhmm.utils._archives import archived_arrays
from skawhmm.utils._whole_files import check_path, whole_file

KIND = "skawhmm.HMMMonitor"
VERSION = 1
HEADER = "header"


def save_monitor(path, monitor):
    """Write a monitor: its parameters, its reference windows and its current state."""
    names, buffer = monitor._names, monitor._buffer
    header = {
        "kind": KIND,
        "version": VERSION,
        "params": _plain_params(monitor),
        "rows": [*monitor._rows],
        "n_rows": monitor._n_rows,
        "n_added": monitor._n_added,
        "n_references": monitor._n_references,
        "n_frames": buffer.n_frames,
        "start": buffer.start,
        "place": buffer.place,
        "interval": buffer.interval,
        "known": names.known,
        "reach": names.reach,
        "seed": monitor._seed,
    }
    arrays = {
        "reference": np.concatenate(monitor._reference_windows),
        "calibration_scores": monitor.calibration_scores_,
        "frames": buffer.frames,
        "times": buffer.times,
    }
    for name in EVIDENCE:
        arrays[name] = np.stack([getattr(part, name) for part in monitor._evidence])
    for k, ranks in enumerate(monitor._ranks):
        arrays.update({f"{n}.{k}": getattr(ranks, n) for n in RANKS})
    arrays.update(zip(DIFFERENCES, _difference_parts(monitor), strict=True))
    models = monitor._retriever.models_
    for name, column in models.info.items():
        arrays[f"info.{name}"] = column
    arrays.update(_model_arrays("added", models[monitor._n_references :]))
    for k, anchor in enumerate(names.anchors):
        arrays.update(_model_arrays(f"anchor{k}", anchor))
    named: dict[str, Any] = {HEADER: np.array(json.dumps(header)), **arrays}
    with whole_file(path) as file:
        np.savez(file, **named)


EVIDENCE = ("sums", "runs", "since", "restarted")
RANKS = ("lows", "highs", "counts")
DIFFERENCES = ("cost_centres", "move_centres", "cost_spreads", "move_spreads")
CHAIN = ("transmats", "weights", "startprobs")


def _difference_parts(monitor):
    return *monitor._differences.centres, *monitor._differences.spreads


def _plain_params(monitor):
    """Return the parameters of a monitor for JSON, or raise."""
    params = monitor.get_params(deep=False)
    hmm = params["hmm"]
    if hmm is not None:
        if type(hmm) is not HMMTransformer:
            raise TypeError(
                f"Only monitors whose hmm is an HMMTransformer can be saved, got "
                f"{hmm!r}. Pickle the monitor."
            )
        params["hmm"] = hmm.get_params(deep=False)
        if isinstance(params["hmm"]["emission"], Emission):
            # The family has learned its parameters, such as scales, which must stay
            # fixed.
            learned = monitor.reference_model_.emission
            params["hmm"]["emission"] = stored_template(hmm.emission, learned)
    for name, value in [*params.items(), *(params["hmm"] or {}).items()]:
        try:
            json.dumps(value, default=_number)
        except TypeError as error:
            raise TypeError(
                f"Only monitors whose parameters are numbers and text can be saved, "
                f"got {name}={value!r}. Pickle the monitor."
            ) from error
    return json.loads(json.dumps(params, default=_number))


def _number(value):
    """Return a NumPy number as a Python number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError


def _model_arrays(prefix, models):
    parts = {name: getattr(models, name) for name in CHAIN}
    parts.update(models.emission.parameters)
    return {f"{prefix}.{name}": array for name, array in parts.items()}


def _models(prefix, arrays, like):
    """Return stored models of the same family as `like`."""
    emission = like.emission
    states = [arrays[f"{prefix}.{name}"] for name in emission.parameter_names]
    chain = {name: arrays[f"{prefix}.{name}"] for name in CHAIN}
    return like._changed(emission=emission.like(*states), **chain)


def load_monitor(kind, path):
    """Return the monitor that a file holds."""
    check_path("path", path)
    header, arrays = _read(path)
    params = header["params"]
    if params["hmm"] is not None:
        params["hmm"] = HMMTransformer(**params["hmm"])
        if isinstance(params["hmm"].emission, dict):
            params["hmm"].emission = template_from(params["hmm"].emission)
    monitor = kind(**params)
    monitor._begin_fit()
    length, step = monitor.length, monitor._checked_step()
    reference = arrays["reference"]
    monitor._learn([*reference.reshape(-1, length, *reference.shape[1:])])
    _restore_references(monitor, header, arrays)
    monitor.calibration_scores_ = arrays["calibration_scores"]
    monitor._differences = Differences.__new__(Differences)
    parts = [arrays[name] for name in DIFFERENCES]
    monitor._differences.n_states = len(monitor.state_names_)
    monitor._differences.centres = tuple(parts[:2])
    monitor._differences.spreads = tuple(parts[2:])
    one = monitor.reference_model_
    names = StateNames(one, monitor.state_names_, header["reach"])
    names.known = header["known"]
    names.anchors = [
        _models(f"anchor{k}", arrays, one) for k in range(len(names.known))
    ]
    monitor._names = names
    monitor._ranks, monitor._evidence = [], []
    for k in range(length // step):
        ranks, evidence = Ranks([]), Evidence(monitor.false_alarm_rate)
        for name in RANKS:
            setattr(ranks, name, arrays[f"{name}.{k}"])
        for name in EVIDENCE:
            setattr(evidence, name, arrays[name][k])
        monitor._ranks.append(ranks)
        monitor._evidence.append(evidence)
    buffer = FrameBuffer(length, step, monitor.n_features_in_)
    buffer.frames, buffer.times = arrays["frames"], arrays["times"]
    for name in ("n_frames", "start", "place", "interval"):
        setattr(buffer, name, header[name])
    monitor._buffer = buffer
    rows = ({**row, **_tuples(row)} for row in header["rows"])
    monitor._rows = deque(rows, maxlen=monitor.max_rows)
    monitor._n_rows, monitor._seed = header["n_rows"], header["seed"]
    return monitor


def _tuples(row):
    return {name: tuple(row[name]) for name in ("states", "weights")}


def _restore_references(monitor, header, arrays):
    """Set the references: the windows of `fit`, and windows added later."""
    n_references = header["n_references"]
    columns = {
        name.removeprefix("info."): column
        for name, column in arrays.items()
        if name.startswith("info.")
    }
    first = {name: column[:n_references] for name, column in columns.items()}
    monitor._keep_references(monitor._reference_models, first)
    monitor._n_added = header["n_added"]
    if monitor._n_added:
        added = _models("added", arrays, monitor.reference_model_)
        rest = {name: column[n_references:] for name, column in columns.items()}
        monitor._retriever.partial_fit(added._changed(_info=rest))


def _read(path):
    """Return the header and the arrays of a file."""
    try:
        arrays = archived_arrays(Path(path))
        header = json.loads(str(arrays.pop(HEADER)))
        kind, version = header["kind"], int(header["version"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} must be a complete {KIND} file, but cannot be read "
            f"as one ({error}): it was cut short, damaged or is something else. "
            "HMMMonitor.save writes such files."
        ) from error
    if kind != KIND or version > VERSION:
        raise ValueError(
            f"{os.fspath(path)!r} must hold a {KIND} of version {VERSION} or earlier, "
            f"got a {str(kind)[:40]} of version {version}."
        )
    return header, arrays
