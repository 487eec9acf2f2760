"""
How do I explore a collection?
==============================

A map shows which sequences are alike, but not why. ``to_html`` writes the map as one
page for any browser; it needs no network. Hover over a point to read its label. Click
it to see its nearest neighbours, its sequence, and which of its states correspond to
which states of a neighbour.
"""

import html
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline

from skawhmm import Framewise, HMMMapDisplay, HMMTransformer
from skawhmm.datasets import make_phonemes

# %%
# The models keep their sequences, so that the page can draw them.
phonemes = ["aa", "ay", "iy", "oy", "uw", "m", "n", "s", "sh", "t"]
X, y, speakers = make_phonemes(phonemes=phonemes, deltas=0, random_state=0)
hmm = HMMTransformer(3, topology="left-to-right", keep_sequences=True, random_state=0)
models = make_pipeline(Framewise(), hmm).fit_transform(X)

# %%
# The map on paper.
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
# Here it is in a frame; in a notebook ``IPython.display.IFrame`` makes one. Click a
# point, then other neighbours in the list. States that correspond to each other have
# the same colour.
class Frame:
    def _repr_html_(self):
        text = html.escape(page.read_text(encoding="utf-8"))
        style = (
            "width: 100%; height: 46rem; border: 1px solid #8886; border-radius: 6px"
        )
        return f'<iframe srcdoc="{text}" title="Explorer" style="{style}"></iframe>'


Frame()
