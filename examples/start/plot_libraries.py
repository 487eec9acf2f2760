"""
Do three libraries find the same model?
=======================================

Four recordings, each fitted by hmmlearn, dynamax and pomegranate. Their models have
other classes, keep variances in other forms and number the states in another order.
``as_models`` reads all of them, and distances show whether they agree.
"""

import json

import matplotlib.pyplot as plt
import numpy as np
from hmmlearn.hmm import GaussianHMM

from skawhmm import HMMBatch, as_models, pairwise_hmm_distances
from skawhmm.plot import DistanceMatrixDisplay

# %%
# Two levels, near to each other or far apart, and slow or fast changes between them.
slow, fast = [[0.95, 0.05], [0.05, 0.95]], [[0.7, 0.3], [0.3, 0.7]]
names = ["near, slow", "far, slow", "near, fast", "far, fast"]
truth = HMMBatch(
    transmats=[slow, slow, fast, fast],
    means=[[[-1.0], [1.0]], [[-1.5], [1.5]], [[-1.0], [1.0]], [[-1.5], [1.5]]],
    covars=np.full((4, 2, 1), 0.25),
)
recordings = truth.sample(300, random_state=0)[0]
from_hmmlearn = [GaussianHMM(2, random_state=0).fit(x) for x in recordings]

# %%
# dynamax and pomegranate need not be installed to run this page: here is what they
# found, rounded. With the libraries, ``as_models`` takes what ``fit_em`` of dynamax
# returns, and the fitted ``DenseHMM`` of pomegranate. dynamax keeps standard
# deviations, in groups:
from_dynamax = """
[{"initial": {"probs": [0.9167, 0.0833]},
  "transitions": {"transition_matrix": [[0.9495, 0.0505], [0.0586, 0.9414]]},
  "emissions": {"means": [[-1.0059], [1.0016]], "scale_diags": [[0.4676], [0.4868]]}},
 {"initial": {"probs": [0.0833, 0.9167]},
  "transitions": {"transition_matrix": [[0.9097, 0.0903], [0.06, 0.94]]},
  "emissions": {"means": [[-1.5214], [1.4833]], "scale_diags": [[0.4654], [0.5166]]}},
 {"initial": {"probs": [0.9167, 0.0833]},
  "transitions": {"transition_matrix": [[0.7207, 0.2793], [0.3585, 0.6415]]},
  "emissions": {"means": [[-0.9682], [1.0421]], "scale_diags": [[0.5265], [0.4637]]}},
 {"initial": {"probs": [0.0833, 0.9167]},
  "transitions": {"transition_matrix": [[0.6348, 0.3652], [0.3089, 0.6911]]},
  "emissions": {"means": [[1.5039], [-1.5819]], "scale_diags": [[0.4352], [0.4766]]}}]
"""

# %%
# pomegranate's models, in the text that ``HMMBatch.to_json`` writes:
from_pomegranate = """
{"kind": "skawhmm.HMMBatch", "version": 1, "emission": "gaussian", "models": [
 {"transmats": [[0.942, 0.058], [0.0499, 0.9501]], "startprobs": [0.0, 1.0],
  "means": [[1.0014], [-1.006]], "covars": [[0.2412], [0.2217]]},
 {"transmats": [[0.9411, 0.0589], [0.0886, 0.9114]], "startprobs": [1.0, 0.0],
  "means": [[1.4839], [-1.5198]], "covars": [[0.2699], [0.2236]]},
 {"transmats": [[0.6452, 0.3548], [0.2822, 0.7178]], "startprobs": [0.0, 1.0],
  "means": [[1.0306], [-0.9778]], "covars": [[0.228], [0.2733]]},
 {"transmats": [[0.635, 0.365], [0.3087, 0.6913]], "startprobs": [0.0, 1.0],
  "means": [[1.5039], [-1.5819]], "covars": [[0.1924], [0.2304]]}]}
"""

# %%
# One list for all of them. The order of states does not matter to the distance.
models = as_models([*from_hmmlearn, *json.loads(from_dynamax), from_pomegranate])
recording = np.tile(names, 3)
distances = pairwise_hmm_distances(models, alpha=0.5)
fig, ax = plt.subplots(figsize=(6.4, 5), layout="constrained")
DistanceMatrixDisplay.from_distances(distances, recording, ax=ax)
ax.set_title("12 models: 3 libraries, 4 recordings")
plt.show()

# %%
# The light blocks are the recordings: whichever library fitted a model, its nearest
# models are those of the same recording.
same = recording[:, None] == recording
others = ~np.eye(len(models), dtype=bool)
print(f"largest distance within a recording:  {distances[same & others].max():.2f}")
print(f"smallest distance between recordings: {distances[~same].min():.2f}")

# %%
# A model goes back to a library by ``to_hmmlearn`` or ``to_dynamax``. Here hmmlearn
# scores a recording under pomegranate's model.
theirs = models[8].to_hmmlearn()
print(f"hmmlearn with its own model:    {from_hmmlearn[0].score(recordings[0]):.1f}")
print(f"hmmlearn with pomegranate's:    {theirs.score(recordings[0]):.1f}")
