"""
What drives a decision?
=======================

The recommended classifier looks at a sequence in several ways and reports which of them
it used. Here one class holds each level longer than the other. Only one of three
channels is informative, which the classifier has to find out.
"""

import matplotlib.pyplot as plt
import numpy as np

from skawhmm import make_classifier
from skawhmm.plot import ExplanationDisplay

# %%
# Levels change at random, every 3 frames in one class and every 10 in the other; two
# more channels are noise.
rng = np.random.default_rng(0)
y = np.array(["fast", "slow"] * 40)
X = []
for label in y:
    changes = rng.random(120) < (1 / 3 if label == "fast" else 1 / 10)
    levels = 3.0 * (np.cumsum(changes) % 2)
    noise = rng.normal(size=(120, 3))
    X.append(noise + np.column_stack([np.zeros(120), levels, np.zeros(120)]))

classifier = make_classifier(random_state=0).fit(X[:50], y[:50])
print(f"accuracy on new sequences: {classifier.score(X[50:], y[50:]):.2f}")
for view, weight in classifier.view_weights_.items():
    print(f"{view:10} weight {weight:.2f}, alone {classifier.view_scores_[view]:.2f}")

# %%
# The level itself is not informative. What counts are slopes ("deltas" and "lags"), and
# channel ``x1``. A channel includes its slopes; ``by="signal"`` lists them separately.
test = [x for x, label in zip(X[50:], y[50:], strict=True) if label == "fast"]
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ExplanationDisplay.from_estimator(classifier, test, label="fast", ax=axes[0])
ExplanationDisplay.from_estimator(
    classifier, test, by="channel", label="fast", ax=axes[1]
)
axes[0].set_title("views and blocks")
axes[1].set_title("channels, and the position in the sequence")
plt.show()
