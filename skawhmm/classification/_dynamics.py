"""How much of a score is due to the order of frames."""

from collections import Counter
from dataclasses import dataclass
from numbers import Real
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import check_array, column_or_1d

from skawhmm._estimator import check_targets
from skawhmm.fitting._markov_chain import MarkovChainTransformer
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.neighbors._estimators import KNeighborsHMMClassifier
from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._checks import check_sequences
from skawhmm.sequences._forms import is_models
from skawhmm.sequences._symbols import holds_symbols, learned_symbols, symbol_sequences
from skawhmm.sequences._trials import Trials, recordings_of, unit_frames
from skawhmm.utils._checks import (
    WORK_CHECKS,
    check_integer,
    check_one_each,
    check_parameters,
    check_seed,
)
from skawhmm.utils._numbers import check_one_type, label_array
from skawhmm.utils._parallel import completed
from skawhmm.utils._seeds import array_key, item_rng

# A gain counts if it exceeds this and its interval of this confidence excludes 0.
LEAST_GAIN = 0.05
CONFIDENCE = 0.95

# Width of printed lines.
LINE_WIDTH = 72


@dataclass(frozen=True)
class DynamicsGain:
    """How much of a score is due to the order of frames; see `dynamics_gain`."""

    scores: NDArray[np.float64]
    permuted_scores: NDArray[np.float64]
    n_test: NDArray[np.int64]
    n_train: NDArray[np.int64]
    score_name: str

    @property
    def gains(self) -> NDArray[np.float64]:
        """Score minus the mean score of permuted sequences, one per fold."""
        return self.scores - self.permuted_scores.mean(axis=1)

    @property
    def gain(self) -> float:
        """Mean gain of the folds."""
        return float(self.gains.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the gain.

        Folds share training sequences, so their gains are correlated. The variance of
        their mean is that of Nadeau and Bengio (2003): the variance of the gains, times
        one over the number of folds plus the ratio of test to training sequences.
        """
        ratio = np.mean(self.n_test / self.n_train)
        return float(self.gains.std(ddof=1) * np.sqrt(1 / len(self.gains) + ratio))

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of confidence 0.95 of the gain."""
        quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(self.gains) - 1)
        margin = float(quantile * self.standard_error)
        return self.gain - margin, self.gain + margin

    @property
    def score(self) -> float:
        """Mean score of the unchanged sequences."""
        return float(self.scores.mean())

    @property
    def permuted_score(self) -> float:
        """Mean score of the permuted sequences."""
        return float(self.permuted_scores.mean())

    @property
    def table(self) -> dict[str, NDArray[Any]]:
        """Columns with one entry per fold, for `pandas.DataFrame`."""
        return {
            "fold": np.arange(1, len(self.scores) + 1),
            "n_test": self.n_test,
            "score": self.scores,
            "permuted": self.permuted_scores.mean(axis=1),
            "gain": self.gains,
        }

    @property
    def meaning(self) -> str:
        """What the numbers mean, in words."""
        low, high = self.interval
        amount = f"{self.gain:+.3f} (95 % interval {low:+.3f} to {high:+.3f})"
        clear = low > 0 or high < 0
        if max(-low, high) <= LEAST_GAIN or (clear and abs(self.gain) <= LEAST_GAIN):
            return (
                f"Order hardly matters here: it changes the {self.score_name} by "
                f"{amount}. Distances that only compare states are nearly as good."
            )
        if not clear:
            return (
                f"Whether order matters is not certain: it changes the "
                f"{self.score_name} by {amount}. More sequences would tell."
            )
        if self.gain < 0:
            return (
                f"Order misleads here: it changes the {self.score_name} by {amount}. "
                "Transitions are noise to this estimator; distances that only compare "
                "states are better."
            )
        return (
            f"Order matters: it changes the {self.score_name} by {amount}. Choose a "
            "distance that sees transitions."
        )

    def __str__(self) -> str:
        lines = ["fold  n_test  score  permuted    gain"]
        for fold, n_test, *values in zip(*self.table.values(), strict=True):
            score, permuted, gain = values
            lines.append(
                f"{fold:4d}  {n_test:6d}  {score:.3f}  {permuted:8.3f}  {gain:+.3f}"
            )
        means = f"{self.score:.3f}  {self.permuted_score:8.3f}  {self.gain:+.3f}"
        lines.append(f"mean  {'':6}  {means}")
        return "\n".join([*lines, *wrap(self.meaning, LINE_WIDTH)])


def dynamics_gain(
    X: Any,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    estimator: Any = None,
    *,
    n_permutations: int = 5,
    cv: Any = 5,
    scoring: Any = "balanced_accuracy",
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> DynamicsGain:
    """Return how much of a score is due to the order of frames.

    An estimator is cross-validated on the sequences, and again after permuting the
    frames of each sequence in time. Permuted sequences have the same frames and no
    dynamics. The gain is the difference of the two scores, in the same folds. It is the
    first thing to know about a data set: without a gain, comparing states is enough,
    and transitions are noise.

    Parameters
    ----------
    X : list of array-like of shape (n_timesteps, n_features)
        Sequences, in any form that :class:`HMMTransformer` takes, or a list of texts or
        of sequences of strings. Integers are treated as numbers by the default
        estimator; `estimator` may treat them as symbols. Sequences of one frame stay
        unchanged.

    y : array-like of shape (n_sequences,)
        Labels.

    groups : array-like of shape (n_sequences,), default=None
        Groups that folds keep together, such as subjects or speakers.

    estimator : estimator, default=None
        Estimator to score; it is cloned. If it ignores the order of frames, the gain is
        0. By default the nearest neighbour: between models of three states by JAW or,
        for symbols, between visible chains by the distributions of pairs of symbols.

    n_permutations : int, default=5
        Number of times that all sequences are permuted; more make the permuted score
        less noisy.

    cv : int, splitter or iterable, default=5
        Folds, at least two. A number means stratified folds, which keep `groups`
        together if there are any.

    scoring : str, callable or None, default="balanced_accuracy"
        Score to compare, as in scikit-learn.

    n_jobs : int, default=None
        Number of joblib workers, threads by default. It never changes the result.

    random_state : int, RandomState instance, Generator or None, default=0
        Seed of the permutations, and of the models of the default estimator.

    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    result : DynamicsGain
        Its attributes are ``gain``, its ``standard_error`` and its ``interval`` of
        confidence 0.95; ``score`` and ``permuted_score``, the mean scores with and
        without order; ``table``, a dict with the columns ``fold``, ``n_test``,
        ``score``, ``permuted`` and ``gain``; ``scores`` of shape (n_folds,) and
        ``permuted_scores`` of shape (n_folds, n_permutations); and ``meaning``, a
        sentence. Printed, it shows the table and the sentence.

    See Also
    --------
    DynamicsGainDisplay : The result as a picture.

    Notes
    -----
    Order is said to matter, or to mislead, if the gain exceeds 0.05 in size and its
    interval excludes 0. On sequences whose frames have no order this happens in less
    than 5 % of the cases. Order hardly matters if the interval lies within 0.05 of 0,
    or if the gain does and its interval excludes 0. Everything else is called
    uncertain. The standard error takes into account that folds share training
    sequences.

    The gain depends on the estimator as much as on the data: an estimator that makes
    little use of order has a small gain on any data.

    References
    ----------
    Nadeau, C. and Bengio, Y. (2003). Inference for the generalization error. Machine
    Learning 52, 239-281.

    Examples
    --------
    Two classes with the same states but different transitions:

    >>> from skawhmm import dynamics_gain
    >>> from skawhmm.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(40, differ_in="transitions", random_state=0)
    >>> result = dynamics_gain(X, y, n_permutations=2)
    >>> print(result)
    fold  n_test  score  permuted    gain
       1       8  1.000     0.750  +0.250
       2       8  1.000     0.688  +0.312
       3       8  1.000     0.562  +0.438
       4       8  1.000     0.562  +0.438
       5       8  1.000     0.625  +0.375
    mean          1.000     0.637  +0.362
    Order matters: it changes the balanced accuracy by +0.362 (95 % interval
    +0.211 to +0.514). Choose a distance that sees transitions.
    """
    sequences, is_text = checked_frames(X)
    y = check_targets(y, "dynamics_gain")
    check_one_type("y", y, "sequence")
    y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    y = column_or_1d(y)
    check_one_each(sequences, y)
    values = np.unique(y)
    if len(values) == 1:
        raise ValueError(
            "y must hold at least 2 different values, got only "
            f"{values.tolist()[0]!r}: there is nothing to distinguish."
        )
    if groups is not None:
        check_one_type("groups", groups, "sequence")
        groups = label_array("groups", groups, len(sequences), of="sequence")
    check_estimator(estimator)
    n_permutations = check_integer("n_permutations", n_permutations, 1)
    check_parameters({"n_jobs": n_jobs, "verbose": verbose}, WORK_CHECKS)
    seed = check_seed(random_state)
    prepare, estimator = default_steps(sequences, is_text, seed, n_jobs, estimator)
    try:
        scorer = check_scoring(estimator, scoring=scoring)
    except ValueError as error:
        raise ValueError(
            "scoring must be the name of a score of scikit-learn, a callable or None, "
            f"got {scoring!r}."
        ) from error
    folds = checked_folds(cv, y, groups, estimator)
    scores = np.empty((1 + n_permutations, len(folds)))
    tasks = [(k,) for k in range(len(folds))]
    for n in range(1 + n_permutations):
        data = prepare(permuted(sequences, seed, n) if n else sequences)
        shared = estimator, data, y, scorer, folds
        label = f"permutation {n}" if n else "unchanged sequences"
        scores[n] = list(
            completed(
                fold_score, shared, tasks, n_jobs=n_jobs, verbose=verbose, label=label
            )
        )
    n_train, n_test = np.array([[len(part) for part in fold] for fold in folds]).T
    name = score_name(scoring)
    return DynamicsGain(scores[0], scores[1:].T, n_test, n_train, name)


def checked_frames(X):
    """Return sequences, at least one with two frames, and whether they hold strings."""
    if is_models(X):
        raise TypeError(
            "X must hold sequences, whose frames can be permuted, got an HMMBatch."
        )
    is_text = holds_symbols(X)
    if is_text:
        sequences = symbol_sequences(X)
    else:
        sequences = CheckedSequences(check_sequences(X, caller="dynamics_gain"))
    if max(map(len, recordings_of(sequences)[0])) < 2:
        raise ValueError(
            "X must hold sequences of at least 2 frames, which have an order, got only "
            "sequences of 1 frame."
        )
    return sequences, is_text


def default_steps(sequences, is_text, seed, n_jobs, estimator):
    """Return the transformer that prepares all sequences, and the estimator."""
    if estimator is not None:
        return lambda given: given, estimator
    # The model of a sequence does not depend on the others, so all folds can share it.
    if is_text:
        symbols = learned_symbols(recordings_of(sequences)[0])
        hmm = MarkovChainTransformer(symbols)
        return hmm.fit_transform, KNeighborsHMMClassifier(1, metric="mmd")
    hmm = HMMTransformer(random_state=seed, n_jobs=n_jobs)
    return hmm.fit_transform, KNeighborsHMMClassifier(1, metric="jaw")


def check_estimator(estimator):
    """Raise unless an estimator can be cloned and fitted, or is None."""
    members = ("fit", "predict", "get_params")
    able = all(hasattr(estimator, member) for member in members)
    if estimator is not None and (isinstance(estimator, type) or not able):
        raise TypeError(
            "estimator must be None or an estimator with fit and predict, got "
            f"{estimator!r}."
        )


def checked_folds(cv, y, groups, estimator):
    """Return the folds, at least two, as a list of index arrays."""
    if isinstance(cv, Real | str):
        cv = check_integer("cv", cv, 2)
        if groups is not None:
            cv = StratifiedGroupKFold(cv)
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    try:
        folds = list(splitter.split(np.zeros(len(y)), y, groups))
    except ValueError as error:
        raise ValueError(
            f"cv must make folds of the {len(y)} sequences, got {cv!r}: {error}"
        ) from error
    if len(folds) < 2:
        raise ValueError(
            f"cv must make at least 2 folds, for a standard error, got {len(folds)}."
        )
    return folds


def permuted(sequences, seed, number):
    """Return sequences whose frames are permuted in time; trials keep their lengths."""
    drawn, copies = [], Counter[int]()
    for unit, x in zip(sequences, unit_frames(sequences), strict=True):
        key = array_key(x)
        copies[key] += 1
        rng = item_rng(seed, number, key, copies[key])
        frames = x[rng.permutation(len(x))]
        if isinstance(unit, Trials):
            ends = np.cumsum([len(trial) for trial in unit])[:-1]
            frames = Trials(np.split(frames, ends))
        drawn.append(frames)
    return type(sequences)(drawn)


def fold_score(shared, k):
    """Return the score of one fold."""
    estimator, data, y, scorer, folds = shared
    train, test = folds[k]
    fitted = clone(estimator).fit(rows(data, train), y[train])
    return scorer(fitted, rows(data, test), y[test])


def rows(data, index):
    """Return some of the sequences or models."""
    return data[index] if is_models(data) else type(data)([data[i] for i in index])


def score_name(scoring):
    """Return the name of a score in a sentence."""
    return scoring.replace("_", " ") if isinstance(scoring, str) else "score"
