"""How much code a call passes through: modules, functions, calls and frames.

Run with ``python benchmarks/bench_calls.py``. Functions of this package are counted
once, however often they are called; calls are counted each time. Comprehensions and
generator expressions are syntax and have a column of their own: from Python 3.12 on,
most of them are not functions, so their number compares only within one version of
Python, which is printed.

The depth is the largest number of nested frames of this package; that of the pair
kernel is the number of frames between the caller and the first kernel that compares
pairs of models, the frame of the call itself and comprehensions included. The profiler
does not see compiled functions, so they are wrapped before.
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
SYNTAX = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}
# Compiled modules that compare pairs of models.
PAIR_KERNELS = ("skawhmm.distances.", "skawhmm.emissions._gaussian_costs_kernels")


class Watch:
    """Records which functions of this package are entered, and how deeply."""

    def __init__(self):
        self.forget()

    def forget(self):
        """Begin a new record."""
        self.seen, self.stack = set(), []
        self.calls, self.checks, self.deepest, self.depth = 0, 0, 0, None

    def __call__(self, frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(HOME):
            return
        if event == "call":
            self.stack.append(code.co_name)
            self.calls += 1
            self.deepest = max(self.deepest, len(self.stack))
            self.seen.add((code.co_filename, code.co_qualname))
            self.checks += code.co_name == "check_values"
        elif event == "return" and self.stack:
            self.stack.pop()

    def noted(self, kernel):
        """Return a kernel that records the depth at which it is called first."""

        def wrapped(*args, **kwargs):
            if self.depth is None:
                self.depth = len(self.stack)
            return kernel(*args, **kwargs)

        return wrapped

    def wrap_kernels(self):
        """Replace the pair kernels that Python modules of the package have imported."""
        for name, module in list(sys.modules.items()):
            path = str(getattr(module, "__file__", None))
            if not name.startswith("skawhmm") or not path.endswith(".py"):
                continue
            for key, value in list(vars(module).items()):
                is_compiled = type(value).__name__ == "cython_function_or_method"
                if is_compiled and str(value.__module__).startswith(PAIR_KERNELS):
                    setattr(module, key, self.noted(value))

    def counted(self, call):
        """Return what was counted, in the order of the columns."""
        self.forget()
        sys.setprofile(self)
        try:
            call()
        finally:
            sys.setprofile(None)
        modules = {path for path, _ in self.seen}
        functions = [name for _, name in self.seen if name.split(".")[-1] not in SYNTAX]
        n_syntax = len(self.seen) - len(functions)
        depth = "-" if self.depth is None else self.depth
        counts = len(modules), len(functions), n_syntax, self.calls, self.checks
        return *counts, self.deepest, depth


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
    head = ["call", "modules", "functions", "comprehensions", "calls"]
    head += ["checks of a sequence", "depth", "depth of pair kernel"]
    print(f"Python {platform.python_version()}\n")
    print("| " + " | ".join(head) + " |")
    print("| --- |" + " --: |" * (len(head) - 1))
    watch = Watch()
    watch.wrap_kernels()
    for name, call in calls.items():
        print("| " + " | ".join([name, *map(str, watch.counted(call))]) + " |")


if __name__ == "__main__":
    main()
