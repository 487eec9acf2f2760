"""Versions of Python and the installed packages, for bug reports."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    "skawhmm",
    "numpy",
    "scipy",
    "scikit-learn",
    "joblib",
    "cloudpickle",
    "POT",
    "hmmlearn",
    "tqdm",
    "matplotlib",
    "pandas",
    "dask",
    "distributed",
    "skops",
)


def show_versions() -> None:
    """Print the versions of Python, the system and the packages in use.

    See Also
    --------
    sklearn.show_versions : The same for scikit-learn, with its threading libraries.

    Examples
    --------
    >>> from skawhmm import show_versions
    >>> show_versions()
    System
    ...
    Packages
         skawhmm: ...
    ...
    """
    system = {
        "python": sys.version.replace("\n", " "),
        "executable": sys.executable,
        "machine": platform.platform(),
        "processors": os.cpu_count(),
    }
    packages = {name: _version(name) for name in PACKAGES}
    lines = []
    for title, rows in (("System", system), ("Packages", packages)):
        lines += [title, *(f"{name:>12}: {value}" for name, value in rows.items()), ""]
    sys.stdout.write("\n".join(lines))


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
