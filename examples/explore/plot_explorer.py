"""
How do I explore a collection?
==============================

A map shows which sequences are similar, but not why. ``to_html`` writes the map as one
page for any browser; it needs no network. Hover over a point to read its label. Click
it to see its nearest neighbours, its sequence, its transitions, and which of its states
correspond to which states of a neighbour.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline

from skawhmm import Framewise, HMMTransformer
from skawhmm.datasets import make_phonemes
from skawhmm.plot import HMMMapDisplay

# %%
# The models keep their sequences, so that the page can draw them. Points can be
# coloured by their labels and by the ``info`` columns of the models.
phonemes = ["aa", "ay", "iy", "oy", "uw", "m", "n", "s", "sh", "t"]
X, y, speakers = make_phonemes(phonemes=phonemes, deltas=0, random_state=0)
hmm = HMMTransformer(3, topology="left-to-right", keep_sequences=True, random_state=0)
models = make_pipeline(Framewise(), hmm).fit_transform(X)

# %%
# The map as a static figure.
fig, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
display = HMMMapDisplay.from_models(models, y, ax=ax)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), title="phoneme")
plt.show()

# %%
# The map in a browser: open the file, or send it to someone.
page = display.to_html(
    Path(tempfile.mkdtemp()) / "phonemes.html",
    names=[f"speaker {speaker}" for speaker in speakers],
    title="Phonemes",
)
print(f"{page.stat().st_size / 1000:.0f} kB")

# %%
# ``explore`` opens the page in a browser, or shows it in a notebook, as here. Click a
# point, then other neighbours in the list, or any other point while you hold Shift.
# States that correspond to each other have the same colour. Choose the colouring, and
# save the map as SVG or PNG.
display.explore(
    names=[f"speaker {speaker}" for speaker in speakers],
    title="Phonemes",
    open_browser=False,
)
