"""
Can I use a support vector machine?
===================================

Yes: the distances become a positive semidefinite kernel, which scikit-learn's ``SVC``
accepts. It is compared with nearest neighbours on training sets of growing size.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from skawhmm import HMMTransformer, KNeighborsHMMClassifier, PairwiseHMMDistance
from skawhmm.datasets import make_hmm_sequences

X, y = make_hmm_sequences(150, n_classes=3, separation=1.5, random_state=0)

# %%
# Each model depends only on its own sequence, so all models are fitted once, before
# cross-validation.
models = HMMTransformer(n_components=3, random_state=0).fit_transform(X)
classifiers = {
    "support vectors": make_pipeline(
        PairwiseHMMDistance(output="psd_kernel"), SVC(kernel="precomputed", C=10)
    ),
    "5 neighbours": KNeighborsHMMClassifier(n_neighbors=5),
}

# %%
fig, ax = plt.subplots(layout="constrained")
styles = (("#0072B2", "-", "o"), ("#D55E00", "--", "s"))
for (name, classifier), style in zip(classifiers.items(), styles, strict=True):
    sizes, _, scores = learning_curve(
        classifier, models, y, train_sizes=np.linspace(0.2, 1, 4), cv=5
    )
    color, linestyle, marker = style
    mean, error = scores.mean(axis=1), scores.std(axis=1) / np.sqrt(5)
    ax.plot(sizes, mean, linestyle, color=color, marker=marker, label=name)
    ax.fill_between(sizes, mean - error, mean + error, color=color, alpha=0.15)
ax.set(xlabel="training sequences", ylabel="accuracy (mean and standard error)")
ax.legend(loc="lower right")
plt.show()
