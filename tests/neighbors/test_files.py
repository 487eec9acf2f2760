"""Retrievers in files."""

import json
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from neighbors.test_approximate import clustered

from skawhmm import JAW, MAW, HMMBatch, HMMRetriever, HMMTransformer
from skawhmm.neighbors import HMMShards
from skawhmm.utils._mapped_arrays import mapped_arrays, write_arrays


@pytest.fixture(scope="module")
def collection():
    return clustered(700), clustered(20, seed=1)


def same(one, two):
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("memory_map", [True, False])
@pytest.mark.parametrize(
    "params",
    [
        {"metric": "maw", "alpha": 0.2},
        {"metric": JAW(alpha=0.3, p=2), "algorithm": "approximate"},
        {"metric": "mmd", "algorithm": "approximate"},
        {"metric": "kl", "metric_params": {"method": "variational"}, "n_jobs": 2},
    ],
)
def test_searches_are_the_same_after_save_and_load(
    collection, tmp_path, params, memory_map
):
    models, queries = collection
    before = HMMRetriever(4, **params).fit(models[:600])
    before.save(tmp_path / "retriever.npz")
    after = HMMRetriever.load(tmp_path / "retriever.npz", memory_map=memory_map)
    assert same(after.kneighbors(queries), before.kneighbors(queries))
    assert after.models_ == before.models_
    assert after.get_params() == before.get_params()
    if "algorithm" in params:
        assert after.recall_ == before.recall_
    # It grows and shrinks like any other.
    for retriever in (before, after):
        retriever.partial_fit(models[600:]).remove([0, 5])
    assert same(after.kneighbors(queries), before.kneighbors(queries))


def test_models_with_info_names_counts_and_symbols(tmp_path, rng):
    sequences = [rng.normal(size=(30, 2)) for _ in range(8)]
    hmm = HMMTransformer(2, random_state=0)
    retriever = HMMRetriever(2, hmm=hmm).fit(sequences)
    retriever.save(tmp_path / "fitted.npz")
    loaded = HMMRetriever.load(tmp_path / "fitted.npz")
    assert loaded.models_ == retriever.models_
    with pytest.raises(TypeError, match="HMMBatch"):
        loaded.kneighbors(sequences)
    loaded = HMMRetriever.load(tmp_path / "fitted.npz", hmm=retriever.hmm_)
    assert same(loaded.kneighbors(sequences), retriever.kneighbors(sequences))
    probs = rng.dirichlet(np.ones(3), (6, 2))
    symbols = HMMBatch.from_emissionprobs(rng.dirichlet(np.ones(2), (6, 2)), probs)
    retriever = HMMRetriever(2).fit(symbols)
    retriever.save(tmp_path / "symbols.npz")
    loaded = HMMRetriever.load(tmp_path / "symbols.npz")
    assert loaded.models_ == symbols
    assert same(loaded.kneighbors(symbols), retriever.kneighbors(symbols))


def test_another_process_reads_the_file(collection, tmp_path):
    models, queries = collection
    retriever = HMMRetriever(3, algorithm="approximate").fit(models)
    retriever.save(tmp_path / "retriever.npz")
    queries.save(tmp_path / "queries.npz")
    code = (
        "import sys, numpy as np\n"
        "from skawhmm import HMMBatch, HMMRetriever\n"
        "queries = HMMBatch.load(sys.argv[2])\n"
        "found = HMMRetriever.load(sys.argv[1]).kneighbors(queries)\n"
        "np.savez(sys.argv[3], *found)\n"
    )
    names = [str(tmp_path / name) for name in ("retriever.npz", "queries.npz", "x.npz")]
    subprocess.run([sys.executable, "-c", code, *names], check=True)
    with np.load(tmp_path / "x.npz") as found:
        assert same(found.values(), retriever.kneighbors(queries))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
@pytest.mark.parametrize("is_new", [True, False])
def test_a_killed_process_leaves_the_old_file_or_none(collection, tmp_path, is_new):
    models, queries = collection
    path, source = tmp_path / "retriever.npz", tmp_path / "source.npz"
    retriever = HMMRetriever(3).fit(models)
    retriever.save(source)
    if not is_new:
        retriever.save(path)
        before = path.read_bytes()
    code = (
        "import sys\n"
        "from skawhmm import HMMRetriever\n"
        "from skawhmm.utils import _mapped_arrays\n"
        "retriever = HMMRetriever.load(sys.argv[1], memory_map=False)\n"
        "write = _mapped_arrays.np.lib.format.write_array\n"
        "def slow(*args, **kwargs):\n"
        "    write(*args, **kwargs)\n"
        "    print('writing', flush=True)\n"
        "    import time; time.sleep(60)\n"
        "_mapped_arrays.np.lib.format.write_array = slow\n"
        "retriever.save(sys.argv[2])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(source), str(path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "writing\n"
    process.kill()
    process.wait()
    process.stdout.close()
    if is_new:
        with pytest.raises(FileNotFoundError):
            HMMRetriever.load(path)
        retriever.save(path)
    else:
        assert path.read_bytes() == before
    assert len(HMMRetriever.load(path).kneighbors(queries)[0]) == len(queries)


def rewritten(path, change):
    """Write a file of a retriever again, with changed header and arrays."""
    arrays = dict(mapped_arrays(path))
    header = json.loads(str(arrays["header"]))
    change(header, arrays)
    arrays["header"] = np.array(json.dumps(header))
    write_arrays(path, {name: np.array(array) for name, array in arrays.items()})


def set_entry(*path, value):
    def change(header, arrays):
        place = header
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def set_array(name, function):
    def change(header, arrays):
        arrays[name] = function(np.array(arrays[name]))

    return change


def one_less(x):
    return x[1:]


def too_large(x):
    return np.where(x == x.max(), 10**6, x).astype(x.dtype)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_entry("kind", value="other.Thing"), "got a other.Thing"),
        (set_entry("version", value=99), "version 99"),
        (set_entry("arrays", value=[]), "must hold the arrays"),
        (set_entry("params", "n_neighbors", value=0), "n_neighbors"),
        (set_entry("params", "metric", value="far"), "metric must be one of"),
        (set_entry("models", "kind", value="x"), "valid models"),
        (set_array("models/means", one_less), "valid models"),
        (set_array("models/transmats", lambda x: x.astype("f4")), "float32"),
        (set_array("index/keys", one_less), "keys must be uint64"),
        (set_array("index/order", too_large), "models that do not exist"),
        (set_array("index/starts", lambda x: x[:-1]), "damaged"),
        (set_array("index/starts", lambda x: x - 1), "do not hold all models"),
        (set_array("index/used", one_less), "used must be uint8"),
        (set_array("index/tiles", one_less), "tiles must be float32"),
        (set_array("index/spreads", one_less), "spreads must be float32"),
        (set_array("index/chains", one_less), "chains must be float32"),
        (set_array("index/chains", lambda x: x[:0]), "damaged"),
        (set_array("index/apart", one_less), "apart must be float32"),
        (set_entry("approximate", value={}), "damaged"),
    ],
)
def test_damaged_files(collection, tmp_path, change, message):
    path = tmp_path / "x.npz"
    retriever = HMMRetriever(2, metric="jaw", algorithm="approximate")
    retriever.fit(collection[0][:600]).save(path)
    rewritten(path, change)
    with pytest.raises(ValueError, match=message):
        HMMRetriever.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_array("points/order", too_large), "models that do not exist"),
        (set_array("points/centres", one_less), "centres must be float32"),
        (set_array("points/tiles", lambda x: x[:, :, 1:]), "tiles must be float32"),
        (set_array("points/units", one_less), "damaged"),
        (set_array("index/keys", one_less), "keys must be uint64"),
        (set_entry("units", value={}), "damaged"),
    ],
)
def test_damaged_files_of_points(collection, tmp_path, change, message):
    path = tmp_path / "x.npz"
    retriever = HMMRetriever(2, metric="mmd", algorithm="approximate")
    retriever.fit(collection[0][:100]).save(path)
    rewritten(path, change)
    with pytest.raises(ValueError, match=message):
        HMMRetriever.load(path)


@pytest.mark.parametrize("memory_map", [True, False])
def test_foreign_and_cut_files(collection, tmp_path, memory_map):
    path = tmp_path / "x.npz"
    models = collection[0]
    HMMRetriever(2).fit(models).save(path)
    content = path.read_bytes()
    for wrong in (b"", b"no archive", content[: len(content) // 2], content[:-30]):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="cut short, damaged"):
            HMMRetriever.load(path, memory_map=memory_map)
    models.save(path)
    with pytest.raises(ValueError, match=r"skawhmm\.HMMRetriever"):
        HMMRetriever.load(path, memory_map=memory_map)
    np.savez(path, x=np.arange(3))
    with pytest.raises(ValueError, match="without its header"):
        HMMRetriever.load(path, memory_map=memory_map)
    with pytest.raises(FileNotFoundError):
        HMMRetriever.load(tmp_path / "nothing.npz", memory_map=memory_map)


def test_a_changed_byte_is_noticed_if_all_is_read(collection, tmp_path):
    path = tmp_path / "x.npz"
    HMMRetriever(2).fit(collection[0]).save(path)
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo("models/means.npy").header_offset + 1000
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="CRC"):
        HMMRetriever.load(path, memory_map=False)


def test_objects_that_cannot_be_saved(collection, tmp_path):
    class Own(MAW):
        pass

    with pytest.raises(TypeError, match=r"joblib\.dump"):
        HMMRetriever(2, metric=Own()).fit(collection[0]).save(tmp_path / "x.npz")
    assert not list(tmp_path.iterdir())
    given = HMMRetriever(2, metric="precomputed").fit(np.zeros((3, 3)))
    with pytest.raises(AttributeError, match="save"):
        given.save(tmp_path / "x.npz")


@pytest.mark.parametrize("algorithm", ["pruned", "approximate"])
@pytest.mark.parametrize("kind", ["fitted", "loaded", "shards"])
def test_queries_that_do_not_fit_the_models(collection, tmp_path, algorithm, kind):
    models, queries = collection
    retriever = HMMRetriever(2, metric="jaw", algorithm=algorithm).fit(models[:50])
    if kind != "fitted":
        retriever.save(tmp_path / "x.npz")
        retriever = HMMRetriever.load(tmp_path / "x.npz")
    if kind == "shards":
        retriever = HMMShards([tmp_path / "x.npz"])
    narrow = HMMBatch(
        queries.transmats, queries.means[..., :3], queries.covars[..., :3]
    )
    counts = HMMBatch.from_rates([np.eye(3)] * 3, np.ones((3, 3, 4)))
    asked = [retriever.kneighbors]
    if algorithm == "pruned":
        asked.append(retriever.radius_neighbors)
    if kind != "shards":
        asked.append(lambda x: retriever.certified(x, np.zeros((len(x), 2), int)))
    for ask in asked:
        with pytest.raises(ValueError, match="3 features"):
            ask(narrow)
        with pytest.raises((TypeError, ValueError), match="poisson"):
            ask(counts)
    with pytest.raises(ValueError, match="n_neighbors = 51"):
        retriever.kneighbors(queries, 51)
