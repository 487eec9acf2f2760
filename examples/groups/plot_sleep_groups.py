"""
Does sleep apnoea change how people move between sleep stages?
==============================================================

Eighty nights of healthy people and of patients with apnoea. Five experts scored every
night, one stage per 30 seconds. The five scorings of a night are not five nights: they
are averaged and permuted together (``units``). The experts are compared within nights
(``strata``).

The nights are read from ``order_dreem_hypnograms.npz`` in the data folder (hypnograms
of the Dreem open data sets, MIT licence). If it is not there, nights are drawn from
chains that differ in a similar way.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

from skawhmm import HMMBatch, hmm_group_test
from skawhmm.datasets import data_home
from skawhmm.groups import state_effects
from skawhmm.plot import EffectsDisplay, TransitionGraphDisplay

STAGES = ["wake", "N1", "N2", "N3", "REM"]
source = data_home() / "order_dreem_hypnograms.npz"


def drawn_nights():
    """Return nights of two cohorts, as five experts with habits see them."""
    chain = np.array(
        [
            [0.85, 0.12, 0.03, 0.00, 0.00],
            [0.12, 0.45, 0.38, 0.00, 0.05],
            [0.02, 0.03, 0.90, 0.04, 0.01],
            [0.01, 0.02, 0.12, 0.85, 0.00],
            [0.02, 0.03, 0.02, 0.00, 0.93],
        ]
    )
    nights, scorers = np.repeat(np.arange(40), 5), np.tile(range(5), 40)
    healthy = nights >= 20
    transmats = np.tile(chain, (len(nights), 1, 1))
    transmats[:, 1, 1] += 0.2 * healthy + 0.06 * scorers
    transmats[:, 0, 0] += np.random.default_rng(0).uniform(0, 0.2, 40)[nights]
    transmats /= transmats.sum(axis=2, keepdims=True)
    model = HMMBatch.from_emissionprobs(transmats, [np.eye(5)] * len(nights))
    sequences = [x.astype(int) for x in model.sample(900, random_state=0)[0]]
    names = np.char.add("scorer_", (scorers + 1).astype(str))
    return sequences, nights, names, np.where(healthy, "healthy", "apnoea")


# %%
if source.exists():
    with np.load(source) as file:
        nights, scorers, cohorts = file["group"], file["y"], file["cohort"]
        sequences = np.split(file["X"], np.cumsum(file["lengths"])[:-1])
else:
    sequences, nights, scorers, cohorts = drawn_nights()

# %%
# Stages are observed, so a model is a plain Markov chain with one state per stage, and
# its transitions are counted. A stage that does not occur in a night has weight 0.
counts = np.zeros((len(sequences), 5, 5))
for count, stages in zip(counts, sequences, strict=True):
    np.add.at(count, (stages[:-1], stages[1:]), 1)
visits = counts.sum(axis=2)
transmats = np.where(visits[..., None] > 0, counts, np.eye(5))
models = HMMBatch.from_emissionprobs(
    transmats / transmats.sum(axis=2, keepdims=True),
    [np.eye(5)] * len(sequences),
    symbols=STAGES,
    weights=visits / visits.sum(axis=1, keepdims=True),
    info={"night": nights, "scorer": scorers, "cohort": cohorts},
)

# %%
# Cohorts differ between nights. A warning says if they also differ in spread.
hmm_group_test(models, "cohort", units="night", random_state=0)

# %%
# Experts differ within nights. The table also has all pairs of experts; these are its
# first rows.
by_scorer = hmm_group_test(
    models, "scorer", strata="night", n_permutations=999, random_state=0
)
by_scorer.to_frame().head(7)

# %%
# Which transitions differ between cohorts? States are the same in all models, so there
# is nothing to align.
effects = state_effects(models, "cohort", units="night", reference=None, random_state=0)
for measure, state, following, difference, pvalue in zip(
    *(effects.columns[name] for name in ("measure", "state", "next_state")),
    effects.columns["difference"],
    effects.columns["pvalue"],
    strict=True,
):
    if pvalue <= 0.05:
        place = STAGES[state] + (f" -> {STAGES[following]}" if following >= 0 else "")
        print(f"{measure:10}  {place:12}  {difference:+.3f}  p = {pvalue:.4f}")

# %%
# The same as a forest plot and as a graph.
fig, ax = plt.subplots(layout="constrained")
EffectsDisplay.from_effects(effects, state_names=STAGES, max_rows=12, ax=ax)
plt.show()

# %%
TransitionGraphDisplay.from_effects(effects, state_names=STAGES)
plt.show()
