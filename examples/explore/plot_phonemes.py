"""
What does a map of speech sounds look like?
===========================================

Every utterance of a phoneme becomes a model of its cepstral coefficients. The distances
between the models are drawn as a map. The speakers are men, women and children.
"""

import matplotlib.pyplot as plt

from skawhmm import HMMTransformer
from skawhmm.datasets import make_phonemes
from skawhmm.plot import HMMMapDisplay

# %%
# The utterances are synthetic; ``load_timit`` reads recorded ones.
phonemes = ["aa", "iy", "uw", "eh", "m", "n", "s", "sh", "f", "z"]
X, y, speakers = make_phonemes(
    n_speakers=6, n_repetitions=2, phonemes=phonemes, random_state=0
)
print(len(X), "utterances of", min(map(len, X)), "to", max(map(len, X)), "frames")

# %%
# The sequences are short, so one model is fitted to all frames and adapted to each
# sequence.
hmm = HMMTransformer(n_components=3, prior="pooled", random_state=0)
models = hmm.fit_transform(X)
fig, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
HMMMapDisplay.from_models(models, y, n_neighbors=1, ax=ax)
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), title="phoneme")
plt.show()
