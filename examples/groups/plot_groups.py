"""
Do two groups differ, and in which state?
=========================================

Twenty controls and twenty patients, one model per subject, some with three and some
with four states. The models have no common order of states, so they are compared by
distances first. Then their states are aligned to see where the difference lies.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMBatch, HMMTransformer, hmm_group_test
from skawhmm.groups import HMMAligner, state_effects
from skawhmm.plot import (
    EffectsDisplay,
    GroupTestDisplay,
    StateSummaryDisplay,
    TransitionGraphDisplay,
)

# %%
# All subjects move between three states. Patients stay longer in the third.
rng = np.random.default_rng(0)
group = np.repeat(["control", "patient"], 20)
stay = np.where(group == "patient", 0.85, 0.7) + rng.normal(0, 0.04, 40)
truth = HMMBatch(
    transmats=[
        [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.7 * (1 - s), 0.3 * (1 - s), s]]
        for s in stay
    ],
    means=rng.normal([[0, 0], [6, 0], [3, 6]], 0.4, (40, 3, 2)),
    covars=np.ones((40, 3, 2)),
)
recordings, _ = truth.sample(400, random_state=0)

# %%
# Every other subject gets a model with four states. Any fitted models would do;
# ``as_models(models, info=...)`` takes those of other libraries.
order = np.r_[0:40:2, 1:40:2]
models = HMMBatch.concatenate(
    [
        HMMTransformer(3, random_state=0).fit_transform(recordings[0::2]),
        HMMTransformer(4, random_state=0).fit_transform(recordings[1::2]),
    ]
)
group = group[order]
models

# %%
# The groups differ, in their transitions more than in their states. The figure shows
# the statistic of the transitions, and its values with subjects assigned at random.
result = hmm_group_test(models, group, random_state=0)
GroupTestDisplay.from_result(result, "transition")
plt.show()
result

# %%
# Which states and transitions differ? P-values are corrected for all rows.
aligner = HMMAligner("medoid", n_components=3).fit(models)
effects = state_effects(models, group, reference=aligner, random_state=0)
fig, ax = plt.subplots(layout="constrained")
EffectsDisplay.from_effects(effects, max_rows=8, ax=ax)
plt.show()
effects

# %%
# The transitions as a graph: patients stay longer in state 0, and leave it less often.
# (State 0 of the reference is the third state above; the order of states is arbitrary.)
TransitionGraphDisplay.from_effects(effects)
plt.show()

# %%
# The mean length of a visit to each state, one dot per subject.
StateSummaryDisplay.from_models(models, group, "dwell_time", reference=aligner)
plt.show()
