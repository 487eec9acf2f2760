import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from skawhmm import HMMBatch
from skawhmm.models._html import MAX_MODELS


class Tags(HTMLParser):
    """The tags of a page, which must close in order, and its text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.words = [], [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.seen)


def test_first_models_have_a_row_and_a_picture(make_batch):
    models = make_batch(n_models=9, n_components=[1, 2, 3] * 3)
    page = Tags(models._repr_html_())
    assert page.count("svg") == MAX_MODELS
    assert page.count("tr") == MAX_MODELS + 1
    assert page.count("circle") == 1 + 2 + 3 + 1 + 2
    assert "… 4 more models" in page.words
    assert repr(models) in page.words


def test_picture_tells_times_and_transitions():
    model = HMMBatch.from_rates(
        transmats=[[[0.75, 0.25, 0], [0.001, 0.9, 0.099], [0, 0, 1]]],
        rates=[[[1.0], [2.0], [3.0]]],
        weights=[[0.25, 0.5, 0.25]],
    )
    page = Tags(model._repr_html_())
    assert "state 0: 25 % of the time, 4 steps per visit" in page.words
    assert "state 2: 25 % of the time, never left" in page.words
    arrows = [word for word in page.words if re.fullmatch(r"\d to \d: .*", word)]
    assert arrows == ["0 to 1: 0.25", "1 to 2: 0.099"]
    radii = [float(attrs["r"]) for tag, attrs in page.seen if tag == "circle"]
    assert radii[1] == pytest.approx(np.sqrt(2) * radii[0], abs=0.1)
    for tag, attrs in page.seen:
        if tag == "path":
            numbers = [float(x) for x in re.findall(r"-?\d+\.\d", attrs["d"])]
            assert all(-1 <= x <= 151 for x in numbers)


def test_hostile_info_stays_text(make_batch):
    models = make_batch(n_models=2)
    info = {"<script>x</script>": ["<img src=x onerror=alert(1)>", "&amp;"]}
    parts = models.transmats, models.means, models.covars
    page = Tags(HMMBatch(*parts, info=info)._repr_html_())
    assert page.count("script") == page.count("img") == 0
    assert {"<script>x</script>", "<img src=x onerror=alert(1)>"} <= {*page.words}


def test_many_columns_are_counted(make_batch):
    models = make_batch(n_models=2)
    info = {f"column {k}": [0.123456, 1.0] for k in range(9)}
    parts = models.transmats, models.means, models.covars
    page = Tags(HMMBatch(*parts, info=info)._repr_html_())
    assert "… 3 more info columns" in page.words
    assert page.words.count("0.1235") == 6


def test_empty_batch_has_no_rows(make_batch):
    assert Tags(make_batch(n_models=2)[:0]._repr_html_()).count("svg") == 0


def test_picture_needs_no_matplotlib(make_batch, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "<svg" in make_batch(n_models=1)._repr_html_()
