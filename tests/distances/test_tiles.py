"""Tiles that cover a matrix, however large, without a list of them."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skawhmm.distances._pairwise as pairwise
from skawhmm import HMMBatch, pairwise_hmm_distances
from skawhmm.distances._tiles import Tiles, tile_edge

SIZES = st.integers(1, 40)


@given(SIZES, SIZES, st.integers(1, 45), st.booleans())
def test_tiles_cover_a_matrix_once(n_rows, n_columns, edge, mirrored):
    shape = (n_rows, n_rows) if mirrored else (n_rows, n_columns)
    covered = np.zeros(shape, int)
    tiles = Tiles(shape, edge, mirrored)
    places = [(row.start, column.start) for row, column in tiles]
    assert places == sorted(set(places))
    assert len(places) == len(tiles)
    for row, column in tiles:
        covered[row, column] += 1
        if mirrored and row != column:
            covered[column, row] += 1
    assert (covered == 1).all()


@given(SIZES, st.integers(1, 9), st.booleans(), st.sets(st.integers(0, 8)))
def test_selected_tiles_keep_their_numbers(size, edge, mirrored, chosen):
    tiles = Tiles((size, size), edge, mirrored)
    numbers = [k for k in chosen if k < len(tiles)]
    some = Tiles((size, size), edge, mirrored, np.array(numbers, np.intp))
    assert list(some) == [tiles[k] for k in numbers]


@pytest.mark.parametrize("mirrored", [False, True])
def test_tiles_of_a_million_models_take_no_memory(mirrored):
    shape = 10**6, 10**6
    tracemalloc.start()
    tiles = Tiles(shape, tile_edge(shape, 3, 128), mirrored)
    last = tiles[len(tiles) - 1]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert last == (slice(10**6 - 64, 10**6),) * 2
    assert peak < 100_000


def test_memory_is_asked_for_before_anything_is_made(monkeypatch):
    def no_room(*_):
        raise MemoryError

    ones = np.ones((100_000, 1, 1))
    models = HMMBatch(ones, ones, ones)
    monkeypatch.setattr(pairwise.np, "empty", no_room)
    tracemalloc.start()
    with pytest.raises(MemoryError, match=r"100000 models need 80\.0 GB"):
        pairwise_hmm_distances(models)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
