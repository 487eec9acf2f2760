"""How much code a call passes through: modules and functions entered, and frames.

Run with ``python benchmarks/bench_calls.py``. Functions of this package are counted
once, however often they are called. The depth is the number of frames of this package
between the caller and the deepest function of it, comprehensions and wrappers included.

Numbers compare only within one version of Python, which is printed with them: before
3.12 comprehensions of lists, sets and dicts are functions of their own.
"""

import platform
import sys
from pathlib import Path

from sklearn.pipeline import make_pipeline

import skawhmm
from skawhmm import (
    HMMTransformer,
    KNeighborsHMMClassifier,
    PairwiseHMMDistance,
    make_classifier,
)
from skawhmm.datasets import make_hmm_sequences

HOME = str(Path(skawhmm.__file__).parent)
PAIRS = "all_pairs"


def counted(call):
    """Return numbers of modules, functions and checks, and two depths of a call."""
    seen, stack, found = set(), [], {"checks": 0, "deepest": 0, "pairs": 0}

    def watch(frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(HOME):
            return
        if event == "call":
            stack.append(code.co_name)
            seen.add((code.co_filename, code.co_qualname))
            found["deepest"] = max(found["deepest"], len(stack))
            found["checks"] += code.co_name == "check_values"
            if code.co_name == PAIRS:
                found["pairs"] = max(found["pairs"], len(stack))
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    modules = {path for path, _ in seen}
    return len(modules), len(seen), found["checks"], found["pairs"], found["deepest"]


def main():
    """Print one row per call."""
    X, y = make_hmm_sequences(24, n_classes=2, random_state=0)
    pipe = make_pipeline(HMMTransformer(random_state=0), KNeighborsHMMClassifier(3))
    models = HMMTransformer(random_state=0).fit_transform(X)
    fitted = KNeighborsHMMClassifier(3).fit(models, y)
    calls = {
        "Pipeline.fit": lambda: pipe.fit(X, y),
        "Pipeline.predict": lambda: pipe.predict(X),
        "KNeighborsHMMClassifier.predict": lambda: fitted.predict(models),
        "make_classifier().fit": lambda: make_classifier().fit(X, y),
        "PairwiseHMMDistance.fit_transform": (
            lambda: PairwiseHMMDistance().fit_transform(models)
        ),
    }
    head = ("call", "modules", "functions", "checks of a sequence", "depth of pairs")
    print(f"Python {platform.python_version()}\n")
    print("| " + " | ".join((*head, "depth")) + " |")
    print("| --- |" + " --: |" * 5)
    for name, call in calls.items():
        print("| " + " | ".join([name, *map(str, counted(call))]) + " |")


if __name__ == "__main__":
    main()
