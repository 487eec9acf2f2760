"""Write files to full or read-only disks: ``python tests/writers.py full FOLDER``.

The arguments are what is wrong with the disk ("full", "read_only", or "not_yet" to
write what is there before) and a folder on it. It prints how each writer ended and
whether the folder is unchanged. It runs in a separate process, since the disk is
made for it alone, and a crash would end pytest.
"""

import os
import sys
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np

from skawhmm import MAW, HMMBatch, pairwise_hmm_distances
from skawhmm.plot import HMMMapDisplay

mpl.use("agg")


def batch(n_models):
    rng = np.random.default_rng(0)
    chain, variances = np.full((n_models, 2, 2), 0.5), np.ones((n_models, 2, 2))
    return HMMBatch(chain, rng.normal(size=(n_models, 2, 2)), variances)


FEW, MANY = batch(4), batch(2000)
DISPLAY = HMMMapDisplay.from_models(batch(60), method="mds")


def models(folder):
    MANY.save(folder / "models.npz")


def page(folder):
    DISPLAY.to_html(folder / "map.html")


def new_models(folder):
    MANY.save(folder / "new.npz")


def new_page(folder):
    DISPLAY.to_html(folder / "new.html")


def matrix(folder):
    pairwise_hmm_distances(MANY[:300], out=folder / "matrix.npy")


def old_matrix(folder):
    pairwise_hmm_distances(FEW, out=folder / "old.npy")


class Fine(MAW):
    """MAW in small tiles, whose journal is long."""

    max_tile = 4


def journal(folder):
    """Write a matrix with space for the matrix, but not for its whole journal."""
    wanted = pairwise_hmm_distances(MANY[:100], metric=Fine())
    out = folder / "large.npy"
    fill(folder, 1 + -(-(wanted.nbytes + 128) // os.statvfs(folder).f_frsize))
    try:
        pairwise_hmm_distances(MANY[:100], metric=Fine(), out=out)
    finally:
        fill(folder, 20)
        found = pairwise_hmm_distances(MANY[:100], metric=Fine(), out=out)
        np.testing.assert_array_equal(found, wanted)
        out.unlink()
        Path(f"{out}.journal").unlink()


def written_before(folder):
    """Write small files with the names of the files to come."""
    FEW.save(folder / "models.npz")
    (folder / "map.html").write_text("an earlier page", encoding="utf-8")
    pairwise_hmm_distances(FEW, out=folder / "old.npy")


def contents(folder):
    files = [path for path in folder.iterdir() if path.is_file()]
    return {path.name: path.read_bytes() for path in files if path.name != "filler"}


def ended(work, folder):
    try:
        work(folder)
    except OSError as error:
        return f"{type(error).__name__}: {error}"
    return "finished"


def fill(folder, n_free):
    """Write a file that leaves space for a few pages only."""
    (folder / "filler").unlink(missing_ok=True)
    with open(folder / "filler", "wb") as file:
        room = os.statvfs(folder)
        file.write(bytes((room.f_bavail - n_free) * room.f_frsize))


def main(fault, folder):
    folder = Path(folder)
    if fault != "read_only":
        written_before(folder)
    if fault == "not_yet":
        return
    writers = [models, page, new_models, new_page, matrix, old_matrix]
    if fault == "full":
        fill(folder, 20)
        writers.append(journal)
    before = contents(folder)
    for work in writers:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            end = ended(work, folder)
        after = contents(folder)
        # The journal tells the next call how to resume the matrix.
        after.pop("matrix.npy.journal", None)
        state = "kept" if after == before else f"changed {sorted(after)}"
        words = " ".join(str(one.message) for one in told)
        print(work.__name__, state, end, words, sep="\t", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
