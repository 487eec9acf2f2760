"""Links to the documentation of other projects.

Sphinx would download lists of all names from their sites. These lists hold the names
used here, so that the pages can be built without a network.
"""

import zlib
from pathlib import Path

# Address of the pages, place of a name in them, and the names by what they are.
PROJECTS = {
    "sklearn": (
        "https://scikit-learn.org/stable/",
        "modules/generated/{}.html#{}",
        {
            "class": (
                "sklearn.base.BaseEstimator",
                "sklearn.calibration.CalibratedClassifierCV",
                "sklearn.cluster.DBSCAN",
                "sklearn.cluster.HDBSCAN",
                "sklearn.decomposition.PCA",
                "sklearn.linear_model.LogisticRegression",
                "sklearn.linear_model.RidgeCV",
                "sklearn.metrics.ConfusionMatrixDisplay",
                "sklearn.model_selection.GridSearchCV",
                "sklearn.model_selection.GroupKFold",
                "sklearn.neighbors.KNeighborsClassifier",
                "sklearn.neighbors.KNeighborsRegressor",
                "sklearn.pipeline.Pipeline",
                "sklearn.preprocessing.FunctionTransformer",
                "sklearn.preprocessing.StandardScaler",
                "sklearn.svm.SVC",
            ),
            "function": (
                "sklearn.metrics.adjusted_rand_score",
                "sklearn.metrics.average_precision_score",
                "sklearn.metrics.roc_auc_score",
                "sklearn.model_selection.cross_val_predict",
                "sklearn.model_selection.cross_val_score",
                "sklearn.model_selection.learning_curve",
                "sklearn.model_selection.train_test_split",
                "sklearn.pipeline.make_pipeline",
                "sklearn.show_versions",
            ),
        },
    ),
    "numpy": (
        "https://numpy.org/doc/stable/",
        "reference/generated/{}.html#{}",
        {
            "class": ("numpy.ndarray",),
            "function": ("numpy.linspace", "numpy.load", "numpy.savez", "numpy.stack"),
        },
    ),
    "pandas": (
        "https://pandas.pydata.org/docs/",
        "reference/api/{}.html#{}",
        {"class": ("pandas.DataFrame",)},
    ),
}
HEADER = "# Sphinx inventory version 2\n# Project: {}\n# Version:\n"
HEADER += "# The remainder of this file is compressed using zlib.\n"


def written_inventories(folder):
    """Write one inventory per project to a folder; return Sphinx's mapping to them."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for project, (address, place, names) in PROJECTS.items():
        lines = [
            f"{name} py:{role} 1 {place.format(name, name)} -\n"
            for role, members in names.items()
            for name in members
        ]
        path = folder / f"{project}.inv"
        body = zlib.compress("".join(lines).encode())
        path.write_bytes(HEADER.format(project).encode() + body)
        mapping[project] = (address, str(path))
    return mapping
