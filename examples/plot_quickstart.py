"""
How do I classify sequences?
============================

Sequences of different lengths go into a pipeline; predicted labels come out.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline

from skawhmm import HMMTransformer, KNeighborsHMMClassifier
from skawhmm.datasets import make_hmm_sequences

# %%
# The data are a list of arrays of shape (n_timesteps, n_features), with one label each.
X, y = make_hmm_sequences(90, n_classes=3, separation=3, random_state=0)
print(len(X), X[0].shape, X[1].shape)

# %%
# Each sequence becomes a hidden Markov model; the nearest models vote on its label.
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
