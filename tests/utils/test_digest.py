"""Digests of content: equal for equal content, in every process, and only then."""

import functools
import importlib
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from skawhmm import KL, MAW, HMMTransformer
from skawhmm.utils._digest import content_digest

FACTOR = 2.0


def doubled(x):
    return FACTOR * x


def power_of(exponent):
    return lambda x: x**exponent


class Metric:
    share = 0.5

    def __init__(self, scale):
        self.scale = scale

    def distances(self, x):
        return self.share * doubled(x)


LONG = np.zeros(5000)
CHANGED = np.where(np.arange(5000) == 2500, 1.0, 0.0)


def different_things():
    yield from (None, ..., 0, 1, 1.0, 1j, True, "1", b"1", np.float32(1), np.float64(1))
    yield from ([], (), {}, set(), [1], (1,), [[1]], [1, [2]], [1, 2], [2, 1], {1}, {2})
    yield from ({"a": 1}, {"a": 2}, {"b": 1}, LONG, CHANGED, LONG[:-1], LONG[None])
    yield from (LONG.astype(np.float32), LONG.view(np.int64), LONG.astype(object))
    yield from (
        np.array(["ab", "c"]),
        np.array(["a", "bc"]),
        np,
        np.linalg,
        np.linalg.norm,
    )
    yield from (MAW(), MAW(alpha=0.2), KL(), KL(cap=1.0), MAW, KL, np.add, np.abs, len)
    yield from (power_of(1), power_of(2), lambda x: x + 1, lambda x: x + 2, doubled)
    yield from (Metric(LONG), Metric(CHANGED), Metric, Metric(0).distances)
    yield from (functools.partial(doubled, 1), functools.partial(doubled, 2))
    yield from (np.random.RandomState(0), np.random.RandomState(1))
    yield from (HMMTransformer(2), HMMTransformer(3), [].append, [1].append)


def test_different_things_have_different_digests():
    digests = [content_digest(thing) for thing in different_things()]
    assert len(set(digests)) == len(digests)


def test_equal_content_has_one_digest(tmp_path):
    once, again = list(different_things()), list(different_things())
    assert list(map(content_digest, once)) == list(map(content_digest, again))
    assert content_digest({"a": 1, "b": 2}) == content_digest({"b": 2, "a": 1})
    wide = np.arange(20.0).reshape(4, 5)
    assert content_digest(wide[:, ::2]) == content_digest(wide[:, ::2].copy())
    np.save(tmp_path / "a.npy", wide)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert content_digest(mapped) == content_digest(wide)
    shared = [1.5]
    assert content_digest([shared, shared]) == content_digest([[1.5], [1.5]])


def test_globals_that_code_uses_count(monkeypatch):
    before = content_digest(doubled), content_digest(Metric(1)), content_digest(Metric)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    after = content_digest(doubled), content_digest(Metric(1)), content_digest(Metric)
    assert not set(before) & set(after)


def test_class_attributes_count(monkeypatch):
    before = content_digest(Metric(1))
    monkeypatch.setattr(Metric, "share", 0.6)
    assert content_digest(Metric(1)) != before


def test_objects_that_hold_themselves_end():
    one, two = [1], [1]
    one.append(one)
    two.append(two)
    assert content_digest(one) == content_digest(two)
    assert content_digest(one) != content_digest([1, [1]])


def test_other_processes_agree():
    script = """
import numpy as np
from skawhmm import MAW, HMMTransformer
from skawhmm.utils._digest import content_digest
square = lambda x: np.abs(x) ** 2
print(content_digest([{"x", "y", "z"}, square, MAW(), HMMTransformer()]))
"""
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_unreadable_input_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"content of _thread\.lock cannot be read"):
        content_digest({"a": [threading.Lock()]})
    with (tmp_path / "a").open("wb") as file, pytest.raises(TypeError, match="content"):
        content_digest(file)


@pytest.mark.parametrize(
    ("folder", "counts"),
    [("lib/site-packages", False), ("lib/dist-packages", False), ("project", True)],
)
def test_code_of_installed_packages_counts_by_name(tmp_path, folder, counts):
    # The site-packages of the user lie outside those of Python.
    def digest(body):
        place = tmp_path / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / "costs_of_someone.py").write_text(f"def cost(x): return {body}\n")
        lines = (
            f"import sys; sys.path.insert(0, {str(place)!r})",
            "from costs_of_someone import cost",
            "from skawhmm.utils._digest import content_digest",
            "print(content_digest(cost))",
        )
        command = [sys.executable, "-B", "-c", "\n".join(lines)]
        return subprocess.run(
            command, capture_output=True, check=True, text=True
        ).stdout

    assert (digest("x + 1") != digest("x + 20")) == counts


@pytest.fixture
def user_modules(tmp_path, monkeypatch):
    """Return a function that writes modules of a user, and imports one of them."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def imported(name, **sources):
        for module, source in sources.items():
            path = tmp_path.joinpath(*module.split("__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(source)
        for module in [m for m in sys.modules if m.startswith("digest_case")]:
            del sys.modules[module]
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield imported
    for module in [m for m in sys.modules if m.startswith("digest_case")]:
        del sys.modules[module]


METRIC = """
{top}
class Metric:
    def distances(self, prepared, index_a, index_b):
        {inside}
        return {call}
"""
HELPER = """
import functools
import importlib
SHARE = {share}
def deep(x):
    return {factor} * x
def helped(x):
    return deep(x)
@functools.lru_cache
def kept(x):
    return deep(x)
"""
WAYS = {
    "a function of a module": ("import digest_case_b as b", "pass", "b.helped(1)"),
    "a name of a module": ("import digest_case_b", "pass", "digest_case_b.SHARE"),
    "an imported function": ("from digest_case_b import helped", "pass", "helped(1)"),
    "a function with a cache": ("from digest_case_b import kept", "pass", "kept(1)"),
    "an import in the code": ("", "from digest_case_b import helped", "helped(1)"),
    "a module imported in the code": ("", "import digest_case_b as b", "b.helped(1)"),
    "code inside code": (
        "import digest_case_b as b",
        "pass",
        "(lambda: b.helped(1))()",
    ),
    "a module of a package": (
        "import digest_case_p.c",
        "pass",
        "digest_case_p.c.helped(1)",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_functions_of_other_modules_of_the_user_count(user_modules, way):
    top, inside, call = WAYS[way]
    metric = METRIC.format(top=top, inside=inside, call=call)

    def digest(**helper):
        source = HELPER.format(**helper)
        sources = {"digest_case_b": source, "digest_case_p__c": source}
        found = user_modules(
            "digest_case_a", digest_case_a=metric, digest_case_p____init__="", **sources
        )
        return content_digest(found.Metric())

    same, again = digest(share=1, factor=2), digest(share=1, factor=2)
    assert same == again
    assert digest(share=3, factor=4) != same


def test_unused_names_of_imported_modules_do_not_count(user_modules):
    metric = METRIC.format(
        top="import digest_case_b as b", inside="pass", call="b.deep(1)"
    )
    helper = HELPER.format(share=1, factor=2)
    one = user_modules("digest_case_a", digest_case_a=metric, digest_case_b=helper)
    before = content_digest(one.Metric())
    longer = f"{helper}\nOTHER = 1\n"
    two = user_modules("digest_case_a", digest_case_a=metric, digest_case_b=longer)
    assert content_digest(two.Metric()) == before


def test_modules_that_import_each_other_end(user_modules):
    metric = METRIC.format(
        top="import digest_case_b", inside="pass", call="digest_case_b.digest_case_a"
    )
    helper = "import digest_case_a\n"
    found = user_modules("digest_case_a", digest_case_a=metric, digest_case_b=helper)
    assert len(content_digest(found.Metric())) == 32


@pytest.mark.parametrize("call", ["eval('b.f')", "__import__('b')"])
def test_code_that_may_run_anything_is_refused(user_modules, call):
    metric = METRIC.format(top="", inside="pass", call=call)
    found = user_modules("digest_case_a", digest_case_a=metric)
    with pytest.raises(TypeError, match="which may run any code"):
        content_digest(found.Metric())
