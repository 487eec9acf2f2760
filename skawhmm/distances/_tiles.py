"""Tiles of a matrix of distances: the blocks of pairs that are computed at once."""

from collections.abc import Sequence
from math import isqrt

# Largest memory of the costs and plans of one tile of pairs, in bytes.
TILE_BYTES = 32_000_000

# Largest number of models per side of a tile: tiles are short, so that progress shows
# and little is lost by an interruption.
MAX_TILE = 128

# Small matrices are cut into about this many tiles per side to keep workers busy, but
# not into tiles so small that handing them out takes longer than computing them.
TILES_A_SIDE = 12
MIN_TILE = 16


def tile_edge(shape, n_components, limit):
    """Return the number of models per side of a tile."""
    edge = int((TILE_BYTES / (5 * 8 * n_components**2)) ** 0.5)
    return max(min(edge, limit, max(-(-max(shape) // TILES_A_SIDE), MIN_TILE)), 1)


class Tiles(Sequence):
    """Row and column slices that cover a matrix, made when they are asked for.

    Parameters
    ----------
    shape : tuple of int
        Number of rows and of columns of the matrix.

    edge : int
        Number of rows and columns of a tile.

    mirrored : bool
        Whether the matrix is symmetric: only half of it is then covered.

    numbers : sequence of int, default=None
        Which tiles, numbered row by row; by default all.
    """

    def __init__(self, shape, edge, mirrored, numbers=None):
        self.shape = shape
        self.edge = edge
        self.mirrored = mirrored
        self._n_rows = -(-shape[0] // edge)
        self._n_columns = -(-shape[1] // edge)
        n_tiles = self._n_rows * self._n_columns
        if mirrored:
            n_tiles = self._n_rows * (self._n_rows + 1) // 2
        self.numbers = range(n_tiles) if numbers is None else numbers

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, place):
        number = int(self.numbers[place])
        if self.mirrored:
            # Counted from the end, row n has n + 1 tiles, which end at the last column.
            last = self._n_rows - 1
            number = self._n_rows * (self._n_rows + 1) // 2 - 1 - number
            row = (isqrt(8 * number + 1) - 1) // 2
            row, column = last - row, last - (number - row * (row + 1) // 2)
        else:
            row, column = divmod(number, self._n_columns)
        top, left = row * self.edge, column * self.edge
        return (
            slice(top, min(top + self.edge, self.shape[0])),
            slice(left, min(left + self.edge, self.shape[1])),
        )
