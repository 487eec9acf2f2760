"""Tests of groups that fit all models again under each permutation.

Labels of fitted models can be exchanged only if all models come from equal amounts of
data: a condition with few trials has noisier models. Labels of trials can be exchanged
before models are fitted. Under each permutation, the models of all units and conditions
are fitted to the trials that have their label then, by the same steps as the observed
ones: with the same seed, trials in the order given, and everything learned from all
trials together (a pooled model, the states that effects refer to) independent of
labels. The test is therefore exact, however many trials a condition has and however
noisy the fits are.
"""

import sys
from dataclasses import replace
from time import process_time
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from skawhmm._estimator import is_mixture
from skawhmm.fitting._transformer import HMMTransformer
from skawhmm.groups._alignment import aligned_models
from skawhmm.groups._effects import (
    COMPARED,
    comparable_measures,
    effect_statistics,
    longest_sequences,
    tabulated_effects,
)
from skawhmm.groups._measures import measured
from skawhmm.groups._permutations import f_ratios, n_arrangements, pvalues
from skawhmm.groups._results import PermutationTest, corrected_pvalues
from skawhmm.groups._support import left_out_reasons
from skawhmm.groups._trial_design import TrialDesign, check_trial_design
from skawhmm.models._batch import HMMBatch
from skawhmm.sequences._checked import CheckedSequences
from skawhmm.sequences._checks import check_sequences
from skawhmm.sequences._symbols import holds_symbols, symbol_sequences
from skawhmm.sequences._trials import (
    Trials,
    split_units,
    units_of,
)
from skawhmm.utils._parallel import completed
from skawhmm.utils._parameters import check_unused
from skawhmm.utils._seeds import item_rng

# Number of models per task: enough to fit them together, few enough to show progress.
MODELS_PER_TASK = 512

# Random streams of one call.
OVERALL, PAIRS = 0, 2

# Confidence of the intervals of effects.
CONFIDENCE = 0.95


class Refitting(NamedTuple):
    """Functions that turn trials with labels into statistics."""

    hmm: Any
    recordings: CheckedSequences
    design: Any
    metric: Any
    power: int
    reference: HMMBatch

    @property
    def names(self):
        """What is tested."""
        parts = ("marginal", "transition") if is_mixture(self.metric) else ()
        return ("distance", *parts)

    def models(self, labels):
        """Return the models of all units and conditions under each labelling."""
        recordings = list(self.recordings)
        units = [
            Trials([recordings[i] for i in own[row[own] == g].tolist()])
            for row in labels
            for own in self.design.members
            for g in range(len(self.design.names))
        ]
        return self.hmm.transform(CheckedSequences(units, self.recordings.names))

    def ratios(self, models, n_labels):
        """Return F ratios of distance and components, and fractions that order them."""
        design = self.design.models
        size = len(design.codes)
        one, two = np.triu_indices(size, 1)
        firsts = size * np.arange(n_labels)[:, None]
        index = (firsts + one).ravel(), (firsts + two).ravel()
        prepared = self.metric.prepare(models)
        if is_mixture(self.metric):
            parts = self.metric.components(prepared, *index)
            alpha = self.metric.alpha
            mixed = (1 - alpha) * parts[:, 0] + alpha * parts[:, 1]
            values = np.column_stack([mixed, parts])
        else:
            values = np.reshape(self.metric.distances(prepared, *index), (-1, 1))
        if not np.isfinite(values).all():
            raise ValueError("metric must give finite distances, got inf.")
        matrices = np.zeros((n_labels, values.shape[1], size, size))
        powers = values.reshape(n_labels, len(one), -1) ** self.power
        matrices[..., one, two] = matrices[..., two, one] = powers.swapaxes(1, 2)
        return self._explained(-0.5 * matrices)

    def _explained(self, matrices):
        effect, blocks, _ = self.design.models.bases()
        rest = np.eye(len(effect)) - blocks @ blocks.T
        totals = np.trace(rest @ matrices @ rest, axis1=2, axis2=3)
        forms = np.einsum("ie,lkij,je->lke", effect, matrices, effect, optimize=True)
        n_effects = effect.shape[1]
        n_left = len(effect) - n_effects - blocks.shape[1]
        if n_left > 0:
            return np.stack(f_ratios(forms, totals, n_effects, n_left), axis=2)
        # With one unit there is no residual: the statistic is the difference itself.
        return np.repeat(forms.sum(axis=2)[..., None], 2, axis=2)

    def effects(self, models, n_labels):
        """Return the statistics of states and transitions under each labelling."""
        design = self.design.models
        size = len(design.codes)
        aligned = aligned_models(models, self.reference, np.inf).models
        measures = measured(aligned, list(COMPARED))
        found = []
        for n in range(n_labels):
            rows = slice(size * n, size * (n + 1))
            longest = longest_sequences(aligned[rows], design)
            found.append(effect_statistics(measures.rows(rows), design, longest))
        return np.array(found)


def _statistics(refitting, labels):
    """Return F ratios and effect statistics of some labellings."""
    models = refitting.models(labels)
    n_labels = len(labels)
    return refitting.ratios(models, n_labels), refitting.effects(models, n_labels)


def fitted_transformer(hmm, sequences, seed):
    """Return a transformer that has learned from all sequences, whatever their labels.

    Parameters
    ----------
    hmm : transformer or None
        What is cloned; None means an `HMMTransformer`.

    sequences : CheckedSequences
        All sequences.

    seed : int
        Seed of the default transformer.

    Returns
    -------
    hmm : transformer
        The fitted clone. It runs inside tasks, and shows no progress.
    """
    hmm = HMMTransformer(random_state=seed % 2**32) if hmm is None else clone(hmm)
    known = hmm.get_params(deep=False)
    quiet = {"verbose": 0, "n_jobs": 1}
    hmm.set_params(**{name: quiet[name] for name in quiet if name in known})
    return hmm.fit(sequences)


class CheckedTrials(NamedTuple):
    """Trials with their conditions.

    `design` is None if each unit has one condition; `groups` and `units` have one entry
    per trial.
    """

    recordings: CheckedSequences
    groups: np.ndarray
    units: np.ndarray
    design: TrialDesign | None

    def unit_models(self, hmm, seed):
        """Return one model per unit."""
        numbers = np.unique(self.units, return_inverse=True)[1]
        units = CheckedSequences(
            units_of(self.recordings, numbers), self.recordings.names
        )
        return fitted_transformer(hmm, self.recordings, seed).transform(units)

    @property
    def unit_groups(self):
        """The condition of each unit, if units have one condition each."""
        return self.groups[np.unique(self.units, return_index=True)[1]]


def check_trials(X, groups, units, *, within):
    """Return trials with their conditions, or raise.

    Parameters
    ----------
    X : list of array-like, or of Trials
        Recordings, or units.

    groups, units : array-like of shape (n_trials,)
        The condition and the unit of each trial; units may be None.

    within : bool
        Whether conditions must vary within units.

    Returns
    -------
    trials : CheckedTrials
        The trials.
    """
    recordings, known = checked_recordings(X)
    if known is not None:
        check_unused("units", units, None, "if X holds Trials, which are units")
        units = known
    design = check_trial_design(recordings, groups, units, within)
    numbers = np.zeros(len(recordings), int) if units is None else np.asarray(units)
    return CheckedTrials(recordings, np.asarray(groups), numbers, design)


def checked_recordings(X):
    """Return recordings and, if some are given as `Trials`, the unit of each."""
    X, units = split_units(list(X) if isinstance(X, Trials) else X)
    if holds_symbols(X):
        recordings = CheckedSequences([x[:, None] for x in symbol_sequences(X)])
    else:
        with units.naming():
            recordings = CheckedSequences(check_sequences(X, caller="hmm_group_test"))
    if not units.several:
        return recordings, None
    return recordings, np.repeat(np.arange(len(units.several)), np.diff(units.firsts))


def checked_units(X):
    """Return one entry per unit, a recording or `Trials`."""
    recordings, numbers = checked_recordings(X)
    if numbers is None:
        return recordings
    return CheckedSequences(units_of(recordings, numbers), recordings.names)


def refitted_tests(trials, hmm, metric, power, n_permutations, seed, workers):
    """Return the fields of the result of a test that permutes trials.

    Parameters
    ----------
    trials : CheckedTrials
        Trials whose conditions vary within units.

    hmm : transformer or None
        Transformer that fits the models.

    metric : Distance
        Distance between models.

    power : int
        Power of the distances in the statistic.

    n_permutations : int
        Number of permutations; if there are no more arrangements, all are used.

    seed : int
        Seed of the permutations.

    workers : dict
        `n_jobs` and `verbose`.

    Returns
    -------
    fields : dict
        All fields of `GroupTestResult` but `kind`.
    """
    design, recordings = trials.design, trials.recordings
    fitted = fitted_transformer(hmm, recordings, seed)
    # The states of one model of all trials do not depend on labels.
    reference = fitted.transform(CheckedSequences([Trials(recordings)]))
    refitting = Refitting(fitted, recordings, design, metric, power, reference)
    tests, effects, models = permuted_trials(
        refitting, n_permutations, (seed, OVERALL), workers
    )
    pairwise = {}
    for pair in design.models.pairs if len(design.names) > 2 else ():
        part, chosen = design.chosen(pair)
        subset = refitting._replace(design=part, recordings=recordings.taken(chosen))
        found, _, _ = permuted_trials(
            subset, n_permutations, (seed, PAIRS, *map(int, pair)), workers
        )
        pairwise[tuple(map(str, part.names))] = MappingProxyType(found)
    n_units = len(design.unit_names)
    missing = {"dispersion": "models are fitted again under each permutation"}
    if not is_mixture(metric):
        missing |= dict.fromkeys(("marginal", "transition"), "not in this metric")
    return {
        "tests": MappingProxyType(tests),
        "dispersion": None,
        "pairwise": MappingProxyType(pairwise),
        "pairwise_pvalues": MappingProxyType(corrected_pvalues(pairwise)),
        "groups": MappingProxyType(dict.fromkeys(map(str, design.names), n_units)),
        "amounts": MappingProxyType({}),
        "missing": MappingProxyType(missing),
        "models": models,
        "effects": effects,
    }


def permuted_trials(refitting, n_permutations, seed, workers):
    """Return tests by permuted trials, effects of states, and the observed models."""
    design = refitting.design
    labels = _labels(design, n_permutations, seed)
    begin = process_time()
    models = refitting.models(design.codes[None])
    observed = refitting.ratios(models, 1)[0]
    if workers["verbose"]:
        _tell_cost(len(labels), len(models), process_time() - begin)
    step = max(1, MODELS_PER_TASK // len(models))
    tasks = [(labels[k : k + step],) for k in range(0, len(labels), step)]
    amounts = [len(task[0]) for task in tasks]
    label = "permutations with refits"
    parts = list(
        completed(
            _statistics, refitting, tasks, **workers, label=label, amounts=amounts
        )
    )
    null, spread = (np.concatenate(part) for part in zip(*parts, strict=True))
    chances = pvalues(observed[:, 1], null[..., 1])
    tests = {
        name: PermutationTest(
            float(observed[k, 0]),
            float(chances[k]),
            float(observed[k, 1]) if len(design.unit_names) > 1 else np.nan,
            null[:, k, 0],
        )
        for k, name in enumerate(refitting.names)
    }
    return tests, _effects(refitting, models, np.abs(spread)), models


def _effects(refitting, models, null):
    """Return the observed effects with p-values by refits."""
    design = refitting.design.models
    aligned = aligned_models(models, refitting.reference, np.inf).models
    every = measured(aligned, list(COMPARED))
    longest = longest_sequences(aligned, design)
    if not left_out_reasons(every, design, longest).count(""):
        return None
    compared, left_out = comparable_measures(every, design, longest)
    kept = [every.labels.index(label) for label in compared.labels]
    observed = effect_statistics(every, design, longest)[:, kept]
    largest = null.max(axis=(1, 2))
    statistics = observed, null[..., kept], largest
    effects = tabulated_effects(aligned, compared, design, statistics, CONFIDENCE)
    return replace(effects, left_out=MappingProxyType(left_out))


def _labels(design, n_permutations, seed):
    """Return permuted labels: all arrangements, or a number of random ones."""
    if n_arrangements(design.cells) <= n_permutations + 1:
        return design.arrangements()[1:]
    return np.array([design.drawn(item_rng(*seed, k)) for k in range(n_permutations)])


def _tell_cost(n_labels, n_models, seconds):
    """Print how long all refits will take, from the time of the observed models."""
    sys.stderr.write(
        f"{n_labels} permutations of {n_models} models: {n_labels * n_models} fits, "
        f"about {n_labels * seconds:.0f} s of one processor.\n"
    )
