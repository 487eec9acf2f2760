"""Draw the figures of the README and of the start page into docs/_static.

Run with ``python docs/make_overview.py``. ``order.png`` shows rows of the table in
docs/order.md, which ``benchmarks/bench_order.py`` writes. The explorer is saved as
a page; its picture is a screenshot of it (the command is printed).
"""

import re
import runpy
import tempfile
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from skawhmm import Framewise, HMMTransformer, pairwise_hmm_distances
from skawhmm.datasets import make_hmm_sequences, make_phonemes
from skawhmm.plot import (
    EffectsDisplay,
    HMMMapDisplay,
    RegistrationDisplay,
    StateSummaryDisplay,
)

HERE = Path(__file__).parent
OUT = HERE / "_static"
# Sets of docs/order.md as a reader knows them.
SETS = {
    "Kinect actions": "actions seen by a Kinect,\nnew subjects",
    "sleep scorers": "who scored a night of sleep",
    "chorales": "chorales, forwards or reversed",
    "regulation": "achievement of student groups",
    "JapaneseVowels": "speakers of a vowel",
    "digits": "spoken digits",
    "motions": "motion capture",
}
STATES = ("#4477aa", "#ee6677", "#228833")


def draw_course(ax, x, path, colors, name):
    """Draw a sequence over the colours of its states."""
    turns = np.flatnonzero(np.diff(path)) + 1
    edges = [0, *turns, len(path)]
    for start, end in pairwise(edges):
        ax.axvspan(start, end, color=colors[path[start]], alpha=0.3, lw=0)
    ax.plot(np.arange(len(x)) + 0.5, x, color="0.15", lw=0.9)
    ax.set(yticks=[], xlim=(0, len(x)), ylabel=name)
    ax.spines[["top", "right", "left"]].set_visible(False)


def pair(models):
    """Return a model that uses all its states, and its nearest neighbour."""
    distances = pairwise_hmm_distances(models)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    used = models.weights.min(axis=1)
    best = int(np.argmax(np.minimum(used, used[nearest])))
    return best, int(nearest[best])


def overview():
    """Draw the way from sequences to a map."""
    X, y = make_hmm_sequences(
        n_sequences=160, n_classes=6, n_features=2, separation=3, random_state=1
    )
    models = HMMTransformer(n_components=3, random_state=0).fit_transform(X)
    plt.rcParams.update({"font.size": 9, "axes.titlesize": 10})
    figure = plt.figure(figsize=(10, 3.1), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[1.1, 1, 1])
    courses = left.subplots(2, 1)
    a, b = pair(models)
    registered = RegistrationDisplay.from_models(
        models[a], models[b], names=("a", "b"), ax=middle.subplots()
    )
    registered.axes_[0].set(xticks=[], yticks=[], xlabel="", ylabel="")
    paths, _ = models[[a, b]].decode([X[a], X[b]])
    match = np.asarray(registered.plan).argmax(axis=0)
    draw_course(courses[0], X[a], paths[0], STATES, "a")
    draw_course(courses[1], X[b], paths[1], [STATES[k] for k in match], "b")
    courses[0].set_xticks([])
    courses[1].set_xlabel("time")
    HMMMapDisplay.from_models(models, y, ax=right.subplots())
    right.axes[0].get_legend().remove()
    for part, title in zip(
        (left, middle, right),
        (
            "1  each sequence becomes a model",
            "2  transport matches states",
            "3  distances become maps",
        ),
        strict=True,
    ):
        part.suptitle(title, x=0.02, ha="left", fontsize=10, weight="bold")
    figure.savefig(OUT / "overview.png", dpi=125)


def order_table():
    """Return the table of docs/order.md as {row: {set: score}}."""
    page = (HERE / "order.md").read_text(encoding="utf-8")
    lines = re.search(r"<!-- table 0 -->\n(.*?)<!--", page, re.DOTALL)[1].splitlines()
    cells = [[cell.strip(" †") for cell in line.split("|")[1:-1]] for line in lines]
    scores = {
        row[0]: {
            name: float(cell.split()[0])
            for name, cell in zip(cells[0][1:], row[1:], strict=True)
            if cell
        }
        for row in cells[2:]
    }
    return cells[0][1:], scores


def order():
    """Draw one nearest neighbour without and with order, on all sets of the table."""
    names, scores = order_table()
    gains = scores["dynamics_gain"]
    names = sorted(names, key=gains.get)
    figure, ax = plt.subplots(figsize=(7.2, 3.9), layout="constrained")
    for place, name in enumerate(names):
        symbols = name in scores["symbols: 1-NN"]
        plain = scores["symbols: 1-NN" if symbols else "mean, std: 1-NN"][name]
        states = plain if symbols else scores["R: 1-NN"][name]
        jaw = scores["JAW, identity: 1-NN" if symbols else "JAW: 1-NN"][name]
        print(f"{name}: JAW {jaw - states:+.3f} over states alone")
        ax.plot([states, jaw], [place, place], color="0.75", lw=3, zorder=1)
        marks = {"markersize": 9, "linestyle": "none"}
        ax.plot(plain, place, marker="|", color="0.2", mew=2.5, ms=15, ls="none")
        ax.plot(states, place, marker="s", color="#D55E00", **marks)
        ax.plot(jaw, place, marker="o", color="#0072B2", **marks)
        ax.annotate(f"{jaw:.2f}", (1.035, place), va="center", color="#0072B2")
    ax.set(yticks=range(len(names)), yticklabels=[SETS[name] for name in names])
    ax.set(xlim=(0.25, 1.1), xticks=[0.4, 0.6, 0.8, 1])
    ax.set_xlabel("balanced accuracy of one nearest neighbour")
    ax.legend(
        ax.lines[1:4],
        ["means, deviations, frequencies", "states alone", "states and order: JAW"],
        loc="lower center",
        bbox_to_anchor=(0.3, 1),
        ncols=3,
        frameon=False,
        handletextpad=0.3,
        columnspacing=1,
    )
    ax.grid(axis="x", color="0.92")
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    figure.savefig(OUT / "order.png", dpi=125)


def groups():
    """Draw which state differs between two groups: the subjects of the gallery."""
    found = runpy.run_path(str(HERE.parent / "examples" / "groups" / "plot_groups.py"))
    plt.close("all")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    EffectsDisplay.from_effects(found["effects"], max_rows=7, ax=axes[0])
    StateSummaryDisplay.from_models(
        found["models"],
        found["group"],
        "dwell_time",
        reference=found["aligner"],
        ax=axes[1],
    )
    figure.savefig(OUT / "groups.png", dpi=125)


def explorer():
    """Save the page of which explorer.png is a picture."""
    phonemes = ["aa", "ay", "iy", "oy", "uw", "m", "n", "s", "sh", "t"]
    X, y, speakers = make_phonemes(phonemes=phonemes, deltas=0, random_state=0)
    hmm = HMMTransformer(
        3, topology="left-to-right", keep_sequences=True, random_state=0
    )
    models = make_pipeline(Framewise(), hmm).fit_transform(X)
    page = Path(tempfile.mkdtemp()) / "explorer.html"
    HMMMapDisplay.from_models(models, y).to_html(
        page, names=[f"speaker {speaker}" for speaker in speakers], title="Phonemes"
    )
    print(
        "chromium --headless --hide-scrollbars --window-size=1200,720 "
        f"--screenshot={OUT / 'explorer.png'} file://{page}#point=3"
    )


def main():
    overview()
    plt.rcParams.update({"font.size": 11})
    order()
    groups()
    explorer()


if __name__ == "__main__":
    main()
