"""Arrays that are read where they are."""

import numpy as np

from skawhmm.utils._mapped_arrays import ALIGNMENT, mapped_arrays, write_arrays


def test_arrays_are_aligned_and_read_where_they_are(tmp_path):
    arrays = {
        "one": np.arange(7.0),
        "folder/two": np.ones((3, 2), np.uint16),
        "text": np.array("ä"),
        "none": np.empty((0, 4)),
    }
    write_arrays(tmp_path / "x.npz", arrays)
    mapped = mapped_arrays(tmp_path / "x.npz")
    assert list(mapped) == list(arrays)
    with np.load(tmp_path / "x.npz") as plain:
        for name, array in arrays.items():
            assert np.array_equal(mapped[name], array)
            assert np.array_equal(plain[name], array)
            assert mapped[name].dtype == array.dtype
    assert mapped["one"].ctypes.data % ALIGNMENT == 0
    assert not mapped["one"].flags.writeable
