import numpy as np

from skawhmm.datasets import _formants as tables


def test_formant_tables_are_ordered():
    for pitch, *formants in tables.VOWELS.values():
        men, women, children = np.transpose(formants)
        assert np.all(np.diff(men) > 0)
        assert np.all(men < women)
        assert np.all(women < children)
        assert pitch[0] < pitch[1] < pitch[2]
    others = (tables.SONORANTS, tables.NASALS, tables.FRICATIVES, tables.PLOSIVES)
    for table in others:
        for formants, bandwidths, *levels in table.values():
            assert np.all(np.diff(formants) > 0)
            assert len(bandwidths) == 3
            assert all(len(level) == 5 for level in levels)
    assert len(tables.PHONEMES) == len(set(tables.PHONEMES)) == 34
