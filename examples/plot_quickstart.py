"""
How do I classify sequences?
============================

Sequences of unequal length go into a pipeline; labels come out.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline

from skawhmm import HMMTransformer, KNeighborsHMMClassifier
from skawhmm.datasets import make_hmm_sequences

# %%
# A list of arrays of shape (n_timesteps, n_features), and a label for each.
X, y = make_hmm_sequences(90, n_classes=3, separation=3, random_state=0)
print(len(X), X[0].shape, X[1].shape)

# %%
# One hidden Markov model a sequence, then a vote of the nearest models.
pipe = Pipeline(
    [
        ("hmm", HMMTransformer(n_components=3, random_state=0)),
        ("knn", KNeighborsHMMClassifier(n_neighbors=5)),
    ]
)
predicted = cross_val_predict(pipe, X, y, cv=5)

# %%
ConfusionMatrixDisplay.from_predictions(y, predicted, cmap="Blues")
plt.show()
