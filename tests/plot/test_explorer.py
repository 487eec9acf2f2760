import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from base64 import b64decode
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skawhmm import MAW, HMMBatch, HMMTransformer, register_states
from skawhmm.datasets import make_hmm_sequences
from skawhmm.emissions import (
    Bernoulli,
    ByChannel,
    Categorical,
    Gamma,
    NegativeBinomial,
    VonMises,
)
from skawhmm.fitting import MarkovChainTransformer
from skawhmm.plot import HMMMapDisplay
from skawhmm.plot._explorer import MAX_STEPS

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]

MAX_SECONDS = 300

# The browser takes commands from file 3 and answers on file 4.
START = """import os, sys
os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4)
os.execvp(sys.argv[3], sys.argv[3:])"""


class Browser:
    """Chromium, controlled by its DevTools protocol without a driver."""

    def __init__(self, commands, answers):
        self.commands, self.answers = commands, answers
        self.count, self.events, self.session = 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def message(self):
        letters = bytearray()
        while (letter := self.answers.read(1)) != b"\0":
            if not letter:
                raise EOFError
            letters += letter
        return json.loads(letters)

    def call(self, method, **params):
        self.count += 1
        order = {"id": self.count, "method": method, "params": params}
        if self.session:
            order["sessionId"] = self.session
        self.commands.write(json.dumps(order).encode() + b"\0")
        self.commands.flush()
        while (answer := self.message()).get("id") != self.count:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, path, width=1280, height=800, scheme="light"):
        self.events.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", mobile=width < 500, **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.call("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())
        self.frame()

    def run(self, code):
        answer = self.call(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def frame(self):
        """Wait until the page is drawn."""
        twice = "requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        self.run(f"new Promise((done) => {twice})")

    def mouse(self, *kinds, x, y, shift=False):
        for kind in kinds:
            button = {"button": "none" if kind == "mouseMoved" else "left"}
            place = {"x": x, "y": y, "clickCount": 1, "modifiers": 8 * shift}
            self.call("Input.dispatchMouseEvent", type=kind, **place, **button)
        self.frame()

    def click(self, x, y, shift=False):
        kinds = ("mouseMoved", "mousePressed", "mouseReleased")
        self.mouse(*kinds, x=x, y=y, shift=shift)

    def press(self, key, shift=False):
        for kind in ("keyDown", "keyUp"):
            order = {"type": kind, "key": key, "modifiers": 8 * shift}
            self.call("Input.dispatchKeyEvent", **order)
        self.frame()

    def text(self, selector):
        return self.run(f"document.querySelector('{selector}').textContent")

    def label(self, name):
        return self.run(f"document.getElementById('{name}').getAttribute('aria-label')")

    def downloaded(self, button, path):
        """Click a button, and return the file it saves."""
        order = {"behavior": "allow", "downloadPath": str(path.parent)}
        self.call("Browser.setDownloadBehavior", eventsEnabled=True, **order)
        self.events.clear()
        self.run(f"document.getElementById('{button}').click()")
        while not any(
            event.get("method") == "Browser.downloadProgress"
            and event["params"]["state"] == "completed"
            for event in self.events
        ):
            self.events.append(self.message())
        return path.read_bytes()

    def picture(self, path):
        path.write_bytes(b64decode(self.call("Page.captureScreenshot")["data"]))

    def complaints(self):
        kinds = (
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
        )
        return [event for event in self.events if event.get("method") in kinds]

    def requests(self):
        sent = [
            e for e in self.events if e.get("method") == "Network.requestWillBeSent"
        ]
        urls = [event["params"]["request"]["url"] for event in sent]
        return [url for url in urls if not url.startswith("data:")]


@contextmanager
def running_browser(folder):
    """Yield a browser with an empty profile in the folder."""
    ends = [*os.pipe(), *os.pipe()]
    # The numbers 3 and 4 must stay free for the child.
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    child_in, commands, answers, child_out = high
    start = [sys.executable, "-c", START, str(child_in), str(child_out)]
    process = subprocess.Popen(
        [*start, CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
        pass_fds=(child_in, child_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(child_in)
    os.close(child_out)
    # A browser that hangs is killed, and the test that waits for it fails.
    guard = threading.Timer(MAX_SECONDS, process.kill)
    guard.start()
    try:
        with open(commands, "wb") as writer, open(answers, "rb") as reader:
            yield Browser(writer, reader)
    finally:
        guard.cancel()
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    with ExitStack() as stack:
        try:
            folder = tmp_path_factory.mktemp("profile")
            found = stack.enter_context(running_browser(folder))
        except (EOFError, BrokenPipeError):
            pytest.skip(f"{CHROMIUM} does not start")
        yield found


def page_data(path):
    """Return the data of a page, with arrays unpacked."""
    text = path.read_text(encoding="utf-8")
    text = text.split('id="data">')[1].split("</script>")[0]

    def unpacked(entry):
        if isinstance(entry, dict) and "packed" in entry:
            kind, letters = entry["packed"]
            return np.frombuffer(b64decode(letters), f"<{kind}")
        if isinstance(entry, dict):
            return {name: unpacked(value) for name, value in entry.items()}
        if isinstance(entry, list):
            return [unpacked(value) for value in entry]
        return entry

    return unpacked(json.loads(text))


@pytest.fixture(scope="module")
def display():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = make_hmm_sequences(
        60, n_classes=3, n_features=2, separation=3, random_state=0
    )
    models = HMMTransformer(keep_sequences=True, random_state=0).fit_transform(X)
    labels = np.array(["wing", "</script><script>alert(1)</script>", "<!--"])[y]
    weight = np.where(np.arange(60) == 7, np.nan, np.linspace(-5, 5, 60))
    info = {"weight": weight, "<b>who</b>": np.array(["ann", "<i>bob"])[y % 2]}
    models = HMMBatch(
        models.transmats,
        models.means,
        models.covars,
        weights=models.weights,
        startprobs=models.startprobs,
        info=info,
        sequences=models.sequences,
    )
    return HMMMapDisplay.from_models(models, labels, method="mds", alpha=0.25)


@pytest.fixture(scope="module")
def page(display, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "map.html"
    names = ["speed & <b>", "height"]
    title = "Kinds & <kinds>"
    return display.to_html(path, n_neighbors=4, channel_names=names, title=title)


def test_page_holds_neighbours_and_registrations(display, page):
    data = page_data(page)
    neighbors = data["points"]["neighbors"].reshape(60, 4)
    expected = np.argsort(display.distances, axis=1)[:, 1:5]
    assert_array_equal(neighbors, expected)
    distances = np.sort(display.distances, axis=1)[:, 1:5]
    assert_allclose(data["points"]["distances"].reshape(60, 4), distances, rtol=1e-6)
    plans = data["states"]["plans"].reshape(60, 4, 3, 3) / 255
    for model, rank in [(0, 0), (7, 3), (59, 1)]:
        other = int(neighbors[model, rank])
        plan = register_states(display.models[model], display.models[other])
        assert_allclose(plans[model, rank], plan, atol=0.5 / 255)


def test_page_holds_short_sequences(display, page):
    found = page_data(page)["sequences"]
    x = display.models.sequences[3]
    assert len(x) <= MAX_STEPS
    steps = slice(*found["starts"][3:5])
    low, high = found["ranges"].reshape(60, 2, 2)[3].T
    values = found["values"].reshape(-1, 2)[steps] / 254 * (high - low) + low
    assert_allclose(values, x, atol=np.ptp(x, axis=0).max() / 254)
    paths, _ = display.models.decode(display.models.sequences)
    assert_array_equal(found["paths"][steps], paths[3])


def test_long_sequences_are_averaged_and_gaps_kept(make_batch, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 2)) for length in (350, 40, 9, 500)]
    X[1][10:20, 0] = np.nan
    models = make_batch(n_models=4)
    models = HMMBatch(models.transmats, models.means, models.covars, sequences=X)
    display = HMMMapDisplay.from_models(models, method="mds")
    found = page_data(display.to_html(tmp_path / "map.html"))["sequences"]
    assert_array_equal(np.diff(found["starts"]), [MAX_STEPS, 40, 9, MAX_STEPS])
    assert_array_equal(found["lengths"], [350, 40, 9, 500])
    values = found["values"].reshape(-1, 2)
    assert_array_equal(np.flatnonzero(values[:, 0] == 255), np.arange(110, 120))
    low, high = found["ranges"].reshape(4, 2, 2)[3].T
    means = X[3].reshape(MAX_STEPS, 5, 2).mean(axis=1)
    assert_allclose(values[-MAX_STEPS:] / 254 * (high - low) + low, means, atol=0.01)


def test_columns_with_several_numbers_per_model_are_not_shown(tmp_path, make_batch):
    pytest.importorskip("matplotlib").use("Agg")
    info = {"site": ["a", "b", "c"], "vectors": np.arange(6).reshape(3, 2)}
    display = HMMMapDisplay.from_models(make_batch(3, info=info), method="mds")
    columns = page_data(display.to_html(tmp_path / "map.html"))["columns"]
    assert [column["name"] for column in columns] == ["site"]


def test_numbers_of_many_states_do_not_wrap(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    n_states = 300
    # Each model walks through all of its states, one after the other.
    walk = np.roll(np.eye(n_states), 1, axis=1)
    start = np.eye(n_states)[0]
    means = np.arange(n_states)[:, None] * 10.0
    X = [means[:260], means[:280]]
    models = HMMBatch(
        [walk] * 2,
        [means] * 2,
        np.ones((2, n_states, 1)),
        startprobs=[start] * 2,
        sequences=[x[160:] for x in X],
    )
    models = models._changed(startprobs=np.eye(n_states)[[160, 160]])
    distances = np.array([[0.0, 1.0], [1.0, 0.0]])
    display = HMMMapDisplay.from_distances(distances, method="mds")
    display = HMMMapDisplay(
        display.positions, models=models, distances=distances, metric=MAW()
    )
    data = page_data(display.to_html(tmp_path / "map.html"))
    assert_array_equal(data["states"]["counts"], [300, 300])
    starts = data["sequences"]["starts"]
    paths, _ = models.decode(models.sequences)
    assert_array_equal(data["sequences"]["paths"][: starts[1]], paths[0])
    assert data["sequences"]["paths"].max() > 255


def test_labels_cannot_escape_their_script(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert "<title>Kinds &amp; &lt;kinds&gt;</title>" in text
    assert page_data(page)["classes"][:2] == [
        "<!--",
        "</script><script>alert(1)</script>",
    ]


HOSTILE = [
    "</script><script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    "<svg onload=\"document.title = 'owned'\">",
    "'\"><b onmouseover=\"document.title = 'owned'\">x</b>",
    "${document.title = 'owned'}",
    "\u2028document.title = 'owned'//",
]


def test_hostile_labels_have_no_effect_in_the_browser(browser, make_batch, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    models = make_batch(n_models=6)
    display = HMMMapDisplay.from_models(models, HOSTILE, method="mds")
    display.metric = type(HOSTILE[1], (MAW,), {})()
    page = display.to_html(tmp_path / "map.html", names=HOSTILE, title=HOSTILE[0])
    browser.open(page)
    for model in range(6):
        browser.run(f"explorer.select({model})")
        browser.frame()
    assert browser.run("document.title") == HOSTILE[0]
    active = "img, script, [onload], [onerror], [onmouseover]"
    assert browser.run(f"document.querySelectorAll('{active}').length") == 2
    assert browser.run("document.getElementById('title').textContent") == HOSTILE[0]
    assert not browser.complaints()


def test_interrupted_page_keeps_old_file(display, tmp_path, monkeypatch):
    path = tmp_path / "map.html"
    path.write_text("before")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        display.to_html(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_page_is_part_of_the_package():
    # A script lists the files that the build leaves out; the others are installed.
    script = Path(__file__).parents[2] / "tools" / "unshipped.py"
    run = [sys.executable, str(script)]
    left_out = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert {"plot/_explorer.html", "py.typed"}.isdisjoint(left_out.split())
    assert "numerics/_transport.pyx" in left_out.split()


def test_page_of_distances_alone(display, tmp_path):
    plain = HMMMapDisplay(display.positions, distances=display.distances)
    data = page_data(plain.to_html(str(tmp_path / "map.html"), names=range(60)))
    assert data["states"] is None
    assert data["sequences"] is None
    assert data["names"][7] == "7"
    with pytest.raises(ValueError, match="to_html needs the distances"):
        HMMMapDisplay(display.positions).to_html(tmp_path / "map.html")
    with pytest.raises(
        ValueError, match="names must have one entry per model, 60, got 2"
    ):
        plain.to_html(tmp_path / "map.html", names=["a", "b"])
    with pytest.raises(ValueError, match="n_neighbors must be an integer"):
        plain.to_html(tmp_path / "map.html", n_neighbors=0)


@pytest.mark.parametrize("n_features", [1, 5])
@pytest.mark.parametrize("metric", ["maw", "kl"])
def test_page_of_any_metric_and_shape(
    browser, make_batch, tmp_path, metric, n_features
):
    pytest.importorskip("matplotlib").use("Agg")
    models = make_batch(8, [1, 2, 3, 4] * 2, n_features, "full")
    display = HMMMapDisplay.from_models(models, metric=metric, method="mds")
    page = display.to_html(tmp_path / "map.html")
    assert page_data(page)["n_neighbors"] == 7
    browser.open(page)
    browser.run("explorer.select(2)")
    browser.frame()
    assert "state 0 with state" in browser.run(
        "document.getElementById('ribbons').getAttribute('aria-label')"
    )
    assert not browser.complaints()


@pytest.mark.parametrize("emission", ["categorical", "poisson"])
def test_page_of_other_emissions(browser, tmp_path, rng, emission):
    pytest.importorskip("matplotlib").use("Agg")
    X = [rng.integers(4, size=(length, 1)) for length in (30, 250, 40, 50, 60)]
    hmm = HMMTransformer(2, emission=emission, keep_sequences=True, random_state=0)
    models = hmm.fit_transform(X)
    display = HMMMapDisplay.from_models(models, method="mds")
    page = display.to_html(tmp_path / "map.html")
    found = page_data(page)["sequences"]
    steps = slice(*found["starts"][1:3])
    paths, _ = models.decode(X)
    assert set(found["paths"][steps]) <= set(paths[1])
    if emission == "categorical":
        codes = np.rint(found["values"][steps] / 254 * 3)
        assert_array_equal(codes, X[1][(np.arange(MAX_STEPS) * 250) // 100, 0])
    browser.open(page)
    browser.run("explorer.select(1)")
    browser.frame()
    assert browser.run("document.getElementById('plane').hidden")
    assert browser.label("channels") == "What states emit: channel 0"
    assert not browser.complaints()


@pytest.fixture(scope="module")
def mixed():
    """A map of models with channels of five kinds."""
    pytest.importorskip("matplotlib").use("Agg")
    rng, X = np.random.default_rng(0), []
    for n in range(6):
        busy = np.arange(120) // 20 % 2
        columns = [
            rng.gamma(3, 0.3 + 2 * busy + n % 2) * (rng.random(120) > 0.05),
            rng.vonmises(2.0 * busy, 1 + 3 * busy),
            rng.integers(0, 3, 120) * busy,
            rng.random(120) < 0.1 + 0.7 * busy,
            rng.poisson(rng.gamma(3, 1 + 9 * busy)),
        ]
        X.append(np.column_stack(columns))
    blocks = [
        ("step", Gamma(zero_mass=True), [0]),
        ("turn", VonMises(), [1]),
        ("mode", Categorical([0, 1, 2]), [2]),
        ("flag", Bernoulli(), [3]),
        ("calls", NegativeBinomial(), [4]),
    ]
    hmm = HMMTransformer(
        2, emission=ByChannel(blocks), keep_sequences=True, random_state=0
    )
    return HMMMapDisplay.from_models(hmm.fit_transform(X), method="mds")


def test_page_holds_what_states_emit(mixed, tmp_path):
    page = mixed.to_html(tmp_path / "map.html", channel_names=[*"abcde"])
    models, panels = mixed.models, page_data(page)["states"]["panels"]
    assert [panel["kind"] for panel in panels] == [
        "curve", "rose", "bars", "bars", "curve",
    ]  # fmt: skip
    heights = [
        (panel["heights"].reshape(6, 2, -1) / 255) * panel["peaks"][:, None, None]
        for panel in panels
    ]
    # Bytes are rounded to 1 / 510 of the peak.
    rounding = [panel["peaks"].max() / 500 for panel in panels]
    modes, flags = models.emission.block("mode"), models.emission.block("flag")
    assert_allclose(heights[2], modes.emissionprobs, atol=rounding[2])
    assert_allclose(heights[3][:, :, 1], flags.probabilities[:, :, 0], atol=rounding[3])
    turn = models.emission.block("turn")
    places = 2 * np.pi * np.arange(64) / 64 - np.pi
    density = stats.vonmises(turn.concentrations, turn.locations).pdf(places)
    expected = models.weights[..., None] * density
    assert_allclose(heights[1], expected, atol=rounding[1])
    assert_allclose(heights[1].sum(axis=(1, 2)) * 2 * np.pi / 64, 1, atol=0.02)
    low, high = panels[0]["ends"]
    areas = heights[0].sum(axis=(1, 2)) * (high - low) / 64
    zeros = np.sum(models.weights * panels[0]["zeros"].reshape(6, 2), axis=1)
    assert_allclose(areas + zeros, 1, atol=0.06)
    x = models.sequences[4][:, 3]
    bars = panels[3]["bars"].reshape(6, 2)[4] / 255 * panels[3]["peaks"][4]
    assert_allclose(bars, [np.mean(x == 0), np.mean(x == 1)], atol=rounding[3])


def test_large_pages_draw_fewer_channels(mixed, tmp_path, monkeypatch):
    # Room for two curves of 64 places for two states of six models.
    monkeypatch.setattr("skawhmm.plot._explorer_channels.MAX_BYTES", 2 * 64 * 2 * 6)
    panels = page_data(mixed.to_html(tmp_path / "map.html"))["states"]["panels"]
    assert [panel["name"] for panel in panels] == ["channel 0", "channel 1"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_states_of_any_kind_are_drawn(browser, mixed, tmp_path, scheme, width):
    browser.open(mixed.to_html(tmp_path / "map.html"), width, 800, scheme)
    browser.run("explorer.select(2)")
    browser.frame()
    assert browser.label("channels").endswith("channel 3, channel 4")
    assert not browser.complaints()
    # Each of the five panels holds ink of many colours.
    inks = browser.run("""(() => {
        const canvas = document.getElementById("channels");
        const pen = canvas.getContext("2d");
        return [0, 1, 2, 3, 4].map((at) => {
            const w = canvas.width / 2, h = canvas.height / 3;
            const area = pen.getImageData((at % 2) * w, Math.floor(at / 2) * h, w, h);
            return new Set(new Uint32Array(area.data.buffer)).size;
        });
    })()""")
    assert min(inks) > 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_click_shows_neighbours_sequence_and_registration(
    browser, page, display, width, scheme
):
    browser.open(page, width=width, scheme=scheme)
    assert browser.run("document.getElementById('map').dataset.drawn") == "60"
    x, y = browser.run("explorer.place(8)")
    browser.mouse("mouseMoved", x=x, y=y)
    hovered = browser.run("explorer.state.hover")
    label = display.y[hovered]
    assert browser.text("#tip") == f"{label} #{hovered}"
    browser.click(x, y)
    assert browser.run("explorer.state.selected") == hovered
    assert browser.text("#name") == f"{label} #{hovered}"
    nearest = np.argsort(display.distances[hovered])[1:5]
    shown = browser.run(
        "[...document.querySelectorAll('#list i')].map((item) => item.textContent)"
    )
    assert shown == [f"#{other}" for other in nearest]
    ink = """(id) => { const c = document.getElementById(id);
        const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        return p.filter((v, i) => i % 4 === 3 && v > 0).length; }"""
    for canvas in ("map", "sequences", "ribbons", "plane"):
        assert browser.run(f"({ink})('{canvas}')") > 500, canvas
    browser.run("document.querySelectorAll('#list button')[2].click()")
    said = browser.run("document.getElementById('ribbons').getAttribute('aria-label')")
    plan = register_states(
        display.models[int(hovered)], display.models[int(nearest[2])]
    )
    a, b = np.unravel_index(plan.argmax(), plan.shape)
    assert f"state {a} with state {b}: {100 * plan.max():.0f} %" in said
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert not browser.complaints()
    assert browser.requests() == [page.as_uri()]


def test_keys_do_what_the_mouse_does(browser, page, display):
    browser.open(page)
    browser.run("document.getElementById('map').focus()")
    browser.press("ArrowRight")
    first = browser.run("explorer.state.selected")
    browser.press("ArrowRight")
    second = browser.run("explorer.state.selected")
    assert display.positions[second, 0] > display.positions[first, 0]
    browser.press("3")
    third = int(np.argsort(display.distances[second])[3])
    assert browser.run("document.getElementById('map').dataset.compared") == str(third)
    browser.press("Enter")
    assert browser.run("explorer.state.selected") == third
    for _ in range(9):
        browser.press("+")
    assert int(browser.run("document.getElementById('map').dataset.drawn")) < 60
    browser.press("0")
    assert browser.run("document.getElementById('map').dataset.drawn") == "60"
    browser.press("Escape")
    assert browser.run("document.getElementById('detail').hidden")
    assert not browser.complaints()


def test_three_thousand_points_stay_fluid(browser, tmp_path, rng, capsys):
    positions = rng.normal(size=(3000, 2))
    distances = np.linalg.norm(positions[:, None] - positions, axis=-1)
    display = HMMMapDisplay(positions, rng.integers(12, size=3000), distances=distances)
    browser.open(display.to_html(tmp_path / "map.html"))
    assert browser.run("document.getElementById('map').dataset.drawn") == "3000"
    frames = browser.run("explorer.state.frames")
    # A hundred changes between two frames are drawn once.
    browser.run("for (let i = 0; i < 100; i++) explorer.zoom(1.001)")
    browser.frame()
    assert browser.run("explorer.state.frames") - frames <= 3
    milliseconds = browser.run(
        """(() => { const start = performance.now();
        for (let i = 0; i < 20; i++) explorer.frame();
        return (performance.now() - start) / 20; })()"""
    )
    with capsys.disabled():
        sys.stdout.write(f"\n3000 points: {milliseconds:.1f} ms per frame\n")
    for i in (0, 1500, 2999):
        x, y = browser.run(f"explorer.place({i})")
        browser.mouse("mouseMoved", x=x, y=y)
        assert browser.run("explorer.state.hover") == i
    assert not browser.complaints()


def far_pair(display):
    """Two models that are not neighbours, with their states in different orders."""
    for other in np.argsort(display.distances[3])[20:].tolist():
        plan = register_states(display.models[3], display.models[other])
        a, b = np.unravel_index(plan.argmax(), plan.shape)
        if abs(plan[a, b] - plan[b, a]) > 0.1:
            return 3, other
    raise AssertionError


def test_page_names_the_distance(browser, page):
    browser.open(page)
    assert (
        browser.text("#facts") == "60 sequences · 3 labels · distance: MAW · alpha 0.25"
    )
    title = browser.run("document.getElementById('facts').title")
    assert title == "MAW(alpha=0.25)"


def test_points_are_coloured_by_any_column(browser, page, display):
    browser.open(page)
    names = "[...document.querySelectorAll('#by option')].map((o) => o.textContent)"
    assert browser.run(names) == ["label", "weight", "<b>who</b>"]

    def pixels(*models):
        return browser.run(
            f"""(() => {{ const map = document.getElementById('map');
            const at = map.getBoundingClientRect(), copy = map.cloneNode();
            const pen = copy.getContext('2d', {{ willReadFrequently: true }});
            pen.drawImage(map, 0, 0);
            const data = pen.getImageData(0, 0, map.width, map.height).data;
            return {list(models)}.map((i) => {{ const [x, y] = explorer.place(i);
            const start = 4 * (Math.round(y - at.top) * map.width +
            Math.round(x - at.left)); return [...data.slice(start, start + 3)];
            }}); }})()"""
        )

    choose = """(index) => { const by = document.getElementById('by'); by.value = index;
        by.dispatchEvent(new Event('change')); }"""
    browser.run(f"({choose})(1)")
    browser.frame()
    # From dark blue to yellow, and grey for missing values.
    low, high, missing = pixels(0, 59, 7)
    assert low[2] > low[0] + 20
    assert high[0] > high[2] + 80
    assert min(missing) > 200
    assert "-5" in browser.text("#legend")
    browser.run("explorer.select(59)")
    assert browser.text("#more").startswith("weight: 5 · ")
    browser.run(f"({choose})(2)")
    browser.frame()
    chips = "[...document.querySelectorAll('#legend button')].map((b) => b.textContent)"
    assert browser.run(chips) == ["<i>bob", "ann"]
    assert browser.text("#more").startswith("<b>who</b>: ")
    browser.run("explorer.select(-1)")
    browser.frame()
    same = [i for i in range(60) if display.models.info["<b>who</b>"][i] == "ann"]
    one, two = pixels(*same[:2])
    assert one == two
    assert browser.run("document.querySelectorAll('#legend i').length") == 0
    assert not browser.complaints()


def test_panel_shows_channels_and_transitions(browser, page, display):
    browser.open(page)
    browser.run("explorer.select(5)")
    assert browser.label("sequences").endswith(": speed & <b>, height")
    said = browser.label("graphs")
    transmat = display.models.transmats[5]
    a, b = np.unravel_index(np.argmax(transmat - 9 * np.eye(3)), (3, 3))
    found = float(said.split("#5: ")[1].split(f"{a} to {b}: ")[1].split(";")[0])
    assert_allclose(found, transmat[a, b], rtol=0.01)
    steps = float(said.split("#5: ")[1].split("state 1: ")[1].split(" steps")[0])
    assert_allclose(steps, 1 / (1 - transmat[1, 1]), rtol=0.01)
    assert not browser.complaints()


def test_any_two_points_can_be_compared(browser, page, display):
    one, two = far_pair(display)
    plan = register_states(display.models[one], display.models[two], "maw")
    a, b = np.unravel_index(plan.argmax(), plan.shape)
    expected = f"state {a} with state {b}: {100 * plan.max():.0f} %"

    def check(first, second, text):
        assert browser.run("explorer.state.selected") == first
        assert browser.run("document.getElementById('map').dataset.compared") == str(
            second
        )
        assert text in browser.label("ribbons")
        shown = float(browser.text("#pair").split("distance ")[1])
        assert_allclose(shown, display.distances[first, second], rtol=0.01)

    browser.open(page)
    browser.run(f"explorer.select({one})")
    browser.click(*browser.run(f"explorer.place({two})"), shift=True)
    check(one, two, expected)
    # Without a Shift key, a button says that the next point is the other one.
    browser.run(f"explorer.select({two}); document.getElementById('pick').click()")
    browser.click(*browser.run(f"explorer.place({one})"))
    check(two, one, f"state {b} with state {a}: {100 * plan.max():.0f} %")
    browser.run("document.getElementById('map').focus()")
    browser.press("ArrowRight", shift=True)
    other = browser.run("explorer.state.other")
    assert other not in {one, two}
    assert browser.run("explorer.state.selected") == two
    assert browser.text("#tip").startswith(f"{display.y[other]} #{other}")
    browser.press("Enter")
    assert browser.run("explorer.state.selected") == other
    assert not browser.complaints()


def test_large_pages_compare_neighbours_only(browser, display, tmp_path, monkeypatch):
    monkeypatch.setattr("skawhmm.plot._explorer.MAX_PAIR_BYTES", 1000)
    page = display.to_html(tmp_path / "map.html", n_neighbors=4)
    assert page_data(page)["pairs"] is None
    one, two = far_pair(display)
    browser.open(page)
    browser.run(f"explorer.select({one}); explorer.compareWith({two})")
    assert "is not in this file" in browser.text("#pair")
    assert browser.run("document.getElementById('ribbons').hidden")
    assert f"#{two}" in browser.label("graphs")
    browser.run("explorer.compare(2)")
    assert not browser.run("document.getElementById('ribbons').hidden")
    assert not browser.complaints()


def test_several_labels_are_shown_at_once(browser, page, display):
    browser.open(page)
    names = ["<!--", "</script><script>alert(1)</script>", "wing"]
    press = "document.querySelectorAll('#legend button')[{}].click()"
    browser.run(press.format(0) + ";" + press.format(2))
    pressed = """[...document.querySelectorAll('#legend button')]
        .map((b) => b.getAttribute('aria-pressed'))"""
    assert browser.run(pressed) == ["true", "false", "true"]
    for i in (np.flatnonzero(display.y == name)[0] for name in names):
        x, y = browser.run(f"explorer.place({i})")
        browser.mouse("mouseMoved", x=x, y=y)
        hovered = browser.run("explorer.state.hover")
        assert hovered < 0 or display.y[hovered] != names[1]
        assert display.y[i] == names[1] or display.y[hovered] == display.y[i]
    browser.run(press.format(0) + ";" + press.format(2))
    assert browser.run("explorer.state.only.size") == 0
    assert not browser.complaints()


def test_filter_does_not_hide_what_is_searched_for(browser, page, display):
    browser.open(page)
    browser.run("document.querySelectorAll('#legend button')[0].click()")
    wanted = int(np.flatnonzero(display.y == "wing")[4])
    browser.run(
        f"""(() => {{ const find = document.getElementById('find');
        find.value = '#{wanted}'; find.dispatchEvent(new Event('input')); }})()"""
    )
    assert browser.run("explorer.state.selected") == wanted
    assert browser.run("[...explorer.state.only].sort()") == [0, 2]
    pressed = "document.querySelectorAll('#legend button')[2].ariaPressed"
    assert browser.run(pressed) == "true"


def test_tip_follows_the_keys(browser, page, display):
    browser.open(page)
    browser.run("document.getElementById('map').focus()")
    tip = """(() => { const tip = document.getElementById('tip'), at =
        tip.getBoundingClientRect(); return [tip.style.visibility, tip.textContent,
        at.left, at.bottom]; })()"""
    for key in ("ArrowUp", "ArrowLeft", "ArrowRight"):
        browser.press(key)
        i = browser.run("explorer.state.selected")
        x, y = browser.run(f"explorer.place({i})")
        visibility, text, left, bottom = browser.run(tip)
        assert (visibility, text) == ("visible", f"{display.y[i]} #{i}")
        assert abs(left - x) < 400
        assert abs(bottom - y) < 60
    browser.press("2")
    other = browser.run("explorer.state.other")
    assert browser.run(tip)[1] == f"{display.y[other]} #{other}"
    browser.press("Escape")
    assert browser.run(tip)[0] == "hidden"


def test_map_is_saved_as_svg_and_png(browser, page, display, tmp_path):
    browser.open(page)
    browser.run("explorer.select(8)")
    text = browser.downloaded("svg", tmp_path / "map.svg").decode()
    root = ElementTree.fromstring(text)
    names = [tag.text for tag in root.iter() if tag.tag.endswith("text")]
    assert names[:2] == ["Kinds & <kinds>", browser.text("#facts")]
    assert set(names[2:]) == {*display.y}
    assert not [tag for tag in root.iter() if tag.tag.endswith("script")]
    filled = [tag for tag in root.iter() if tag.get("fill", "").startswith("#")]
    dots = [tag for tag in filled if tag.tag.endswith("path")]
    # All points, the selected one and its neighbours once more, and the labels.
    assert len(dots) == 60 + 1 + 4 + 3
    png = browser.downloaded("png", tmp_path / "map.png")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width = int.from_bytes(png[16:20], "big")
    assert width == 2 * round(float(root.get("width")))
    assert not browser.complaints()


def test_address_holds_the_current_view(browser, page, display):
    one, two = far_pair(display)
    browser.open(page)
    browser.run("explorer.colour(2); document.querySelector('#legend button').click()")
    browser.run(f"explorer.zoom(3, 200, 300); explorer.select({one})")
    browser.run(f"explorer.compareWith({two})")
    browser.frame()
    seen = """[explorer.state.selected, explorer.state.other, [...explorer.state.only],
        document.getElementById('by').value, ...explorer.place(0).map(Math.round)]"""
    address, before = browser.run("location.href"), browser.run(seen)
    assert f"point={one}&with={two}" in address
    browser.open("about:blank")
    browser.open(address)
    after = browser.run(seen)
    assert after[:4] == before[:4]
    assert_allclose(after[4:], before[4:], atol=2)
    browser.press("0")
    browser.run("explorer.select(-1); explorer.colour(0); explorer.fit()")
    browser.frame()
    assert browser.run("location.href") == page.as_uri()
    assert not browser.complaints()


@pytest.mark.parametrize(
    "hash",
    [
        "point=99&with=-1&by=none&only=7.x.99&view=0 a b",
        "point=<script>alert(1)</script>&with=3",
        "%%%&view=1e9 NaN 0",
        "point=5&with=5",
    ],
)
def test_invalid_addresses_are_ignored(browser, page, hash):  # noqa: A002
    browser.open("about:blank")
    browser.open(f"{page.as_uri()}#{hash}")
    assert browser.run("document.getElementById('map').dataset.drawn") == "60"
    assert browser.run("explorer.state.only.size") == 0
    browser.run("explorer.select(2)")
    assert not browser.complaints()


def test_explore_opens_a_browser(display, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    page = display.explore(title="<b>")
    (address,) = opened
    path = Path(unquote(urlsplit(address).path))
    assert path.read_text(encoding="utf-8") == page.html
    shutil.rmtree(path.parent)
    assert repr(page) == "ExplorerPage(title='<b>')"
    display.explore(open_browser=False)
    assert len(opened) == 1


def test_explore_shows_a_frame_in_a_notebook(browser, display, monkeypatch, tmp_path):
    monkeypatch.setattr("webbrowser.open", pytest.fail)
    shell = SimpleNamespace(kernel=object())
    notebook = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    page = display.explore(title='Kinds "<kinds>"')
    cell = tmp_path / "cell.html"
    cell.write_text(f"<!DOCTYPE html>{page._repr_html_()}", encoding="utf-8")
    browser.open(cell, height=900)
    inside = "document.querySelector('iframe').contentWindow"
    browser.run(f"{inside}.explorer.select(4)")
    browser.frame()
    title = browser.run(f"{inside}.document.getElementById('title').textContent")
    assert title == 'Kinds "<kinds>"'
    assert browser.run(f"{inside}.document.getElementById('link').hidden")
    assert browser.run(f"{inside}.document.getElementById('map').dataset.drawn") == "60"
    assert not browser.complaints()


def test_ipython_terminal_is_not_a_notebook(display, monkeypatch):
    opened = []
    monkeypatch.setattr("skawhmm.plot._explorer_frame.webbrowser.open", opened.append)
    terminal = SimpleNamespace(get_ipython=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    display.explore()
    shutil.rmtree(Path(unquote(urlsplit(opened[0]).path)).parent)


def test_failed_page_keeps_old_file(display, tmp_path, monkeypatch):
    path = tmp_path / "map.html"
    path.write_text("the old page")

    def refused(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", refused)
        with pytest.raises(OSError, match="disk full"):
            display.to_html(path)
    assert path.read_text() == "the old page"
    assert [*tmp_path.iterdir()] == [path]
    display.to_html(path)
    assert [*tmp_path.iterdir()] == [path]


def test_channel_names_must_match(display, tmp_path):
    with pytest.raises(ValueError, match="channel_names must name the 2 channels"):
        display.to_html(tmp_path / "map.html", channel_names=["a"])
    plain = HMMMapDisplay(display.positions, distances=display.distances)
    with pytest.raises(ValueError, match="channel_names must be None"):
        plain.to_html(tmp_path / "map.html", channel_names=["a"])
    with pytest.raises(ValueError, match="explore needs the distances"):
        HMMMapDisplay(display.positions).explore()
    wrong = HMMMapDisplay(display.positions, [1, 2], distances=display.distances)
    with pytest.raises(ValueError, match="y must hold one label per model"):
        wrong.to_html(tmp_path / "map.html")


def test_channels_of_a_page_have_the_names_of_the_models(display, tmp_path):
    named = display.models._changed(feature_names=("temp", "vib"))
    found = HMMMapDisplay.from_models(named, method="mds")
    data = page_data(found.to_html(tmp_path / "map.html"))
    assert data["sequences"]["names"] == ["temp", "vib"]
    assert data["states"]["axes"] == "temp and vib"


def typed(browser, text):
    """Type a text into the search field, and return what the page says."""
    browser.run(
        f"""(() => {{ const find = document.getElementById('find');
        find.value = {json.dumps(text)};
        find.dispatchEvent(new Event('input')); }})()"""
    )
    browser.frame()
    return browser.text("#found")


def test_search_marks_all_hits_and_reports_no_hits(browser, page, display):
    browser.open(page)
    hits = "[...explorer.state.hits].sort((a, b) => a - b)"
    wings = np.flatnonzero(display.y == "wing").tolist()
    assert typed(browser, "wing") == f"{len(wings)} found"
    assert browser.run(hits) == wings
    assert browser.run("explorer.state.selected") == wings[0]
    # Part of a label, in other letters.
    assert typed(browser, "WIN") == f"{len(wings)} found"
    faint, bright = (
        browser.run(f'(explorer.svgText().match(/opacity="{part}"/g) || []).length')
        for part in ("0.25", "1")
    )
    # Each point is filled and outlined.
    assert faint >= 2 * (60 - len(wings)) - 2 * 5
    assert bright > 0
    assert typed(browser, "zebra") == "no hits"
    assert browser.run(hits) == []
    assert browser.run("explorer.state.selected") == wings[0]
    assert typed(browser, "#7") == "1 found"
    assert browser.run(hits) == [7]
    assert typed(browser, "#60") == "no hits"
    assert typed(browser, " ") == ""
    assert not browser.complaints()


def test_search_does_not_move_the_map(browser, page):
    browser.open(page)
    # A map of another size would be fitted to it again.
    size = """(() => { const at = document.getElementById('stage')
        .getBoundingClientRect(); return [at.width, at.height]; })()"""
    before = browser.run(size)
    for text in ("w", "zebra"):
        typed(browser, text)
        assert browser.run(size) == before


def test_panel_has_the_colours_of_the_map(browser, page):
    browser.open(page)
    chips = """[...document.querySelectorAll('#list .chip')].map((c) =>
        [...c.getContext('2d').getImageData(6, 6, 1, 1).data.slice(0, 3)])"""
    # By a column of numbers: from blue to yellow.
    browser.run("explorer.colour(1); explorer.select(30)")
    browser.frame()
    data = page_data(page)
    weights = data["columns"][0]["values"]
    neighbors = data["points"]["neighbors"].reshape(60, -1)[30]
    order = np.argsort(weights[neighbors])
    # The lightness of the scale grows with the number.
    brightness = np.sum(np.array(browser.run(chips))[order], axis=1)
    steps = np.floor(24 * weights[neighbors][order])
    assert (np.sign(np.diff(brightness)) == np.sign(np.diff(steps))).all()


def test_labels_stay_inside_the_map(browser, display, tmp_path):
    long = np.array([f"a rather long label, that of kind {k}" for k in range(12)])
    y = long[np.arange(60) % 12]
    found = HMMMapDisplay(display.positions, y, distances=display.distances)
    browser.open(found.to_html(tmp_path / "map.html"), width=700)
    ends = """(() => { const pen = document.createElement('canvas').getContext('2d');
        pen.font = '600 12.5px system-ui, sans-serif';
        const page = new DOMParser().parseFromString(explorer.svgText(),
        'image/svg+xml'), wide = Number(page.documentElement.getAttribute('width'));
        return [...page.querySelectorAll('text[text-anchor=middle][fill]')].map((t) => {
        const half = pen.measureText(t.textContent).width / 2, x =
        Number(t.getAttribute('x')); return [x - half, wide - x - half]; }); })()"""
    gaps = np.array(browser.run(ends))
    assert len(gaps) >= 12
    assert gaps.min() >= 0
    title = "document.querySelector('#legend button').title"
    assert browser.run(title) == "a rather long label, that of kind 0"


def test_states_of_visible_chains_have_their_symbols(browser, tmp_path):
    texts = ["aabbaab", "abbbba", "abab", "aaab"]
    models = MarkovChainTransformer().fit_transform([t * 3 for t in texts])
    path = HMMMapDisplay.from_models(models, method="mds").to_html(
        tmp_path / "map.html"
    )
    browser.open(path)
    browser.run("explorer.select(0)")
    assert "a to b: " in browser.label("graphs")
    assert "a with a: " in browser.label("ribbons")
    assert browser.run("document.getElementById('emits').hidden")
    assert not browser.complaints()
