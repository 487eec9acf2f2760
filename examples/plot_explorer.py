"""
How do I explore a collection?
==============================

A map is a start; the question is what its points are. ``to_html`` writes the map as one
page for any browser, which needs no network: hover to read, click to see the nearest
neighbours, the sequence, and which state of the one corresponds to which of the other.
"""

import html
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline

from skawhmm import Framewise, HMMMapDisplay, HMMTransformer
from skawhmm.datasets import make_phonemes

# %%
# Models that keep their sequences, so that these can be drawn.
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
# The map in a browser: open the file, or give it to somebody.
page = display.to_html(
    Path(tempfile.mkdtemp()) / "phonemes.html",
    names=[f"speaker {speaker}" for speaker in speakers],
    title="Phonemes",
)
print(f"{page.stat().st_size / 1000:.0f} kB")


# %%
# Here it is in a frame; in a notebook ``IPython.display.IFrame`` makes one. Click a
# point, then other neighbours in the list: the neighbour is painted in the colours of
# the states that its own states correspond to.
class Frame:
    def _repr_html_(self):
        text = html.escape(page.read_text(encoding="utf-8"))
        style = (
            "width: 100%; height: 46rem; border: 1px solid #8886; border-radius: 6px"
        )
        return f'<iframe srcdoc="{text}" title="Explorer" style="{style}"></iframe>'


Frame()
