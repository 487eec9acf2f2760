"""Fitting many models: our batch against a loop over hmmlearn.

Run with ``python benchmarks/bench_fit.py [--sequences N] [--memory]``. The first table
compares defaults with defaults. In the second, both sides start from our start values
and take as many steps as our stopping rule asks for. hmmlearn has no floor on variances
and gives short sequences singular states: its variances are raised to our floor before
the likelihoods of the second table are compared. "1 thread" is the ratio of processor
times, "2 threads" the ratio of wall times when our batch runs on two threads (a loop
over hmmlearn runs on one); the loop runs once, ours three times for the median. "as
good" is the fraction of sequences whose log likelihood is at least hmmlearn's, up to a
relative error of 1e-6; "gap" is the median relative difference.

The third table fits one model to many sequences, in the setting in which the authors of
HiddenMarkovModels.jl compare libraries: 50 sequences of 100 frames with one channel, 5
EM steps from given start values, one thread. dynamax and pomegranate are compared if
they are installed, by their public functions: `fit_em` of dynamax compiles its step
anew in each call, and its time contains that. Times are the least processor time of
several runs. We run one E step more, for the likelihood of the last model. "gap" is the
difference of log likelihoods per frame; that of pomegranate also has probabilities of
the ends of sequences.
"""

import argparse
import logging
import os
import resource
import time
from importlib.util import find_spec

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from hmmlearn.hmm import GaussianHMM  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402

from skawhmm import Trials  # noqa: E402
from skawhmm.emissions import Gaussian  # noqa: E402
from skawhmm.fitting._base import make_batch  # noqa: E402
from skawhmm.fitting._coordinates import channel_scales, make_coordinates  # noqa: E402
from skawhmm.fitting._em import FitOptions, model_at  # noqa: E402
from skawhmm.fitting._gaussian_fit import (  # noqa: E402  # noqa: E402
    finished_fits,
    make_group,
    pool_of,
    runs_from,
    start_models,
)
from skawhmm.fitting._transformer import fit_models  # noqa: E402

SIZES = [
    (100, 2, 2, "full"),
    (300, 12, 3, "diag"),
    (300, 12, 3, "full"),
    (800, 39, 3, "diag"),
    (20, 12, 3, "diag"),
]


def make_data(n_sequences, n_timesteps, n_features, n_components, seed=0):
    """Sequences from sticky chains whose states overlap a little."""
    rng = np.random.default_rng(seed)
    X = []
    for _ in range(n_sequences):
        transmat = 0.8 * np.eye(n_components)
        transmat += 0.2 * rng.dirichlet(np.ones(n_components), n_components)
        gap = 1.5 * np.sqrt(2 / n_features)
        means = gap * rng.normal(size=(n_components, n_features))
        scales = rng.uniform(0.5, 1.5, size=means.shape)
        path = np.zeros(n_timesteps, int)
        for t in range(1, n_timesteps):
            path[t] = rng.choice(n_components, p=transmat[path[t - 1]])
        noise = rng.normal(size=(n_timesteps, n_features))
        X.append(means[path] + scales[path] * noise)
    return X


def seconds(function, *arguments, n_runs=1):
    """Median processor time and wall time of some runs, and the result."""
    times = []
    for _ in range(n_runs):
        processor, wall = time.process_time(), time.perf_counter()
        result = function(*arguments)
        times.append((time.process_time() - processor, time.perf_counter() - wall))
    return np.median(times, axis=0), result


def score(model, x, floor=0.0):
    """hmmlearn's log likelihood, with rows of 0 replaced and variances floored."""
    empty = model.transmat_.sum(axis=1) == 0
    model.transmat_[empty] = np.eye(len(empty))[empty]
    if model.covariance_type == "diag" and floor > 0:
        variances = np.array([np.diag(covar) for covar in model.covars_])
        model.covars_ = np.maximum(variances, floor)
    return model.score(x)


def default_fits(X, options, n_jobs):
    """Our fits with their own start values."""
    return fit_models(X, options, n_jobs=n_jobs)


def default_loop(X, options):
    """hmmlearn's fits with its own defaults."""
    shape = options.n_components, options.covariance_type
    return [GaussianHMM(*shape, random_state=0).fit(x) for x in X]


def prepared(X, options):
    """The sequences as a group for the kernels, and start values."""
    pool, kind = pool_of(X), options.covariance_type
    place = pool.channels, pool.bounds
    scales = channel_scales(*place, kind)
    coordinates = make_coordinates(*place, scales, kind)
    group = make_group(np.arange(len(X)), pool, coordinates)
    starts, _ = start_models(group.points, group.data, options.n_components, options)
    return group, starts


def started_fits(group, starts, options):
    """Our fits from given start values."""
    return finished_fits(runs_from(group, starts, options), group, options)


def started_loop(group, starts, options, n_steps):
    """hmmlearn's fits from the same start values, as many steps as ours."""
    models = []
    for i, x in enumerate(frames_of(group)):
        model = GaussianHMM(
            options.n_components,
            options.covariance_type,
            n_iter=n_steps[i],
            tol=-np.inf,
            init_params="",
            covars_prior=0,
            covars_weight=0,
            min_covar=0,
        )
        start = model_at(starts, i)
        model.startprob_, model.transmat_ = start.startprob, start.transmat
        model.means_, model.covars_ = start.states
        models.append(model.fit(x))
    return models


def frames_of(group):
    """The sequences of a group in the coordinates of the fit."""
    n_features = len(group.points)
    flat = np.split(group.data.frames, n_features * group.data.bounds[1:-1])
    return [part.reshape(n_features, -1).T for part in flat]


def print_header(title):
    print(f"\n{title}")
    print(
        f"{'(T, d, M, type)':22} {'hmmlearn':>9} {'ours':>8} {'1 thread':>9} "
        f"{'2 threads':>10} {'hmmlearn':>10} {'ours':>10} {'as good':>8} {'gap':>8}"
    )
    print(f"{'':22} {'ms':>9} {'ms':>8} {'':20} {'mean log likelihood':>21}")


def print_row(size, n, times, values, others):
    (loop, wall), (ours, _), (_, both) = times
    gaps = (values - others) / np.abs(others)
    print(
        f"{size!s:22} {1e3 * loop / n:9.2f} {1e3 * ours / n:8.3f} {loop / ours:9.1f} "
        f"{wall / both:10.1f} {np.mean(others):10.2f} {np.mean(values):10.2f} "
        f"{np.mean(gaps >= -1e-6):8.1%} {np.median(np.abs(gaps)):8.1e}"
    )


def print_defaults(size, n):
    X = make_data(n, *size[:3])
    options = FitOptions(size[2], Gaussian(size[3]))
    fit_models(X[:2], options)
    theirs, judges = seconds(default_loop, X, options)
    ours, fits = seconds(default_fits, X, options, 1, n_runs=3)
    both, _ = seconds(default_fits, X, options, 2, n_runs=3)
    values = np.array([fit.log_likelihood for fit in fits])
    others = np.array([score(judge, x) for judge, x in zip(judges, X, strict=True)])
    print_row(size, n, (theirs, ours, both), values, others)


def print_same_start(size, n):
    X = make_data(n, *size[:3])
    options = FitOptions(size[2], Gaussian(size[3]))
    group, starts = prepared(X, options)
    halves = [prepared(part, options) for part in (X[: n // 2], X[n // 2 :])]
    started_fits(*prepared(X[:2], options), options)
    ours, fits = seconds(started_fits, group, starts, options, n_runs=3)
    tasks = [delayed(started_fits)(*half, options) for half in halves]
    both, _ = seconds(Parallel(n_jobs=2, prefer="threads"), tasks, n_runs=3)
    n_steps = [max(fit.n_iter, 1) for fit in fits]
    theirs, judges = seconds(started_loop, group, starts, options, n_steps)
    excess = group.coordinates.excess(np.diff(group.data.bounds), group.seen)
    values = np.array([fit.log_likelihood for fit in fits]) + excess
    floor = options.template.reg_covar
    others = np.array(
        [
            score(judge, x, floor)
            for judge, x in zip(judges, frames_of(group), strict=True)
        ]
    )
    print_row(size, n, (theirs, ours, both), values, others)


def unit_problem(n_states):
    """One unit in its coordinates and a start, and the options of 5 EM steps."""
    X = make_data(1, 5000, 1, n_states)[0].reshape(50, 100, 1)
    options = FitOptions(n_states, max_iter=5, tol=-np.inf)
    group, starts = prepared([Trials(X)], options)
    return group, starts, options


def hmmlearn_unit(frames, start, n_steps):
    """Log likelihood after hmmlearn's EM steps, and a function that takes them."""

    def fitted():
        model = GaussianHMM(
            len(start.startprob),
            "diag",
            n_iter=n_steps,
            tol=-np.inf,
            init_params="",
            covars_prior=0,
            covars_weight=0,
            min_covar=0,
        )
        model.startprob_, model.transmat_ = start.startprob, start.transmat
        model.means_, model.covars_ = start.states
        return model.fit(frames.reshape(-1, 1), [frames.shape[1]] * len(frames))

    judge = fitted()
    lengths = [frames.shape[1]] * len(frames)
    return fitted, judge.score(frames.reshape(-1, 1), lengths)


def dynamax_unit(frames, start, n_steps):
    """The same for dynamax, whose priors are taken away as far as they can be."""
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import DiagonalGaussianHMM

    jax.config.update("jax_enable_x64", True)
    means, covars = start.states
    hmm = DiagonalGaussianHMM(
        len(means),
        1,
        initial_probs_concentration=1.0,
        transition_matrix_concentration=1.0,
        emission_prior_mean_concentration=1e-9,
        emission_prior_concentration=1e-9,
        emission_prior_scale=1e-9,
    )
    params, props = hmm.initialize(
        initial_probs=jnp.array(start.startprob),
        transition_matrix=jnp.array(start.transmat),
        emission_means=jnp.array(means),
        emission_scale_diags=jnp.array(np.sqrt(covars)),
    )
    data = jnp.array(frames)

    def fitted():
        found, _ = hmm.fit_em(params, props, data, num_iters=n_steps, verbose=False)
        return jax.block_until_ready(found)

    value = sum(float(hmm.marginal_log_prob(fitted(), x)) for x in data)
    return fitted, value


def pomegranate_unit(frames, start, n_steps):
    """The same for pomegranate, in single precision as it is by default."""
    import torch
    from pomegranate.distributions import Normal
    from pomegranate.hmm import DenseHMM

    torch.set_num_threads(1)
    data = torch.tensor(frames, dtype=torch.float32)

    def fitted():
        means, covars = start.states
        states = [
            Normal([float(m[0])], [float(c[0])], covariance_type="diag")
            for m, c in zip(means, covars, strict=True)
        ]
        model = DenseHMM(
            states,
            edges=start.transmat.astype(np.float32),
            starts=start.startprob.astype(np.float32),
            max_iter=n_steps,
            tol=0.0,
        )
        return model.fit(data)

    return fitted, float(fitted().log_probability(data).sum())


PEERS = {
    "hmmlearn": hmmlearn_unit,
    "dynamax": dynamax_unit,
    "pomegranate": pomegranate_unit,
}


def least_seconds(function, n_runs=5):
    """Return the least processor time of some runs."""
    return min(seconds(function)[0][0] for _ in range(n_runs))


def print_unit(n_states, peers):
    """Print times of one model of 50 sequences, and log likelihoods per frame."""
    group, starts, options = unit_problem(n_states)
    ours = least_seconds(lambda: runs_from(group, starts, options), 20)
    value = runs_from(group, starts, options).log_likelihood[0]
    row = f"{n_states:6d} {1e3 * ours:9.2f}"
    frames, start = group.data.frames.reshape(50, 100, 1), model_at(starts, 0)
    for name in peers:
        fitted, other = PEERS[name](frames, start, options.max_iter)
        theirs = least_seconds(fitted)
        gap = (other - value) / frames.size
        row += f" | {1e3 * theirs:11.1f} {theirs / ours:7.1f} {gap:9.1e}"
    print(row)


def print_units():
    peers = [name for name in PEERS if find_spec(name)]
    print("\nOne model of 50 sequences of 100 frames, one channel, 5 steps, one thread")
    print(f"{'states':>6} {'ours ms':>9}", end="")
    for name in peers:
        print(f" | {name[:8] + ' ms':>11} {'ratio':>7} {'gap':>9}", end="")
    print()
    for n_states in (2, 4, 6, 8, 10):
        print_unit(n_states, peers)


def print_memory():
    X = make_data(200, 300, 12, 3) * 100
    options = FitOptions(n_components=3)
    fit_models(X[:2], options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    models = make_batch(fit_models(X, options, n_jobs=-1), options.template)
    duration = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    names = ("transmats", "means", "covars", "weights", "startprobs")
    stored = sum(getattr(models, name).nbytes for name in names)
    print(
        f"\n{len(X)} sequences of (300, 12), M = 3, diag: {duration:.1f} s with all "
        f"cores, {(after - before) / 1024:.0f} MB above the data, of which the models "
        f"hold {stored / 2**20:.0f} MB"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=500)
    parser.add_argument("--memory", action="store_true")
    arguments = parser.parse_args()
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    print_header("Defaults against defaults")
    for size in SIZES:
        print_defaults(size, arguments.sequences)
    print_header("Same start, same number of steps")
    for size in SIZES:
        print_same_start(size, arguments.sequences)
    print_units()
    if arguments.memory:
        print_memory()


if __name__ == "__main__":
    main()
