"""
What does a map of speech sounds look like?
===========================================

Every utterance of a phoneme becomes a model of its cepstral coefficients; the distances
between models are drawn as a map. Speakers are men, women and children in turn.
"""

import matplotlib.pyplot as plt

from skawhmm import HMMMapDisplay, HMMTransformer
from skawhmm.datasets import make_phonemes

# %%
# Synthetic utterances; recorded ones are read by ``load_timit``.
phonemes = ["aa", "iy", "uw", "eh", "m", "n", "s", "sh", "f", "z"]
X, y, speakers = make_phonemes(
    n_speakers=6, n_repetitions=2, phonemes=phonemes, random_state=0
)
print(len(X), "utterances of", min(map(len, X)), "to", max(map(len, X)), "frames")

# %%
# Short sequences: the model of all frames is adapted to each of them.
hmm = HMMTransformer(n_components=3, prior="pooled", random_state=0)
models = hmm.fit_transform(X)
fig, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
HMMMapDisplay.from_models(models, y, n_neighbors=1, ax=ax)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), title="phoneme")
plt.show()
