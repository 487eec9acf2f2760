"""States of several kinds: elk tracks, mixed tables, and the speed of families.

Run with ``python benchmarks/bench_families.py [--elk FILE]``. ``FILE`` is a ``.npz``
with the daily steps and turning angles of four elk (`X`, `lengths`, `y`), as the R
package moveHMM prepares them. The vignette of moveHMM publishes models whose
transitions depend on the distance to water. Here transitions are constant, so its log
likelihoods belong to other models; they are printed next to ours. Its stored
models were fitted in 2015 by a likelihood that counts the first step of all animals but
the first twice (corrected in moveHMM in 2017).
"""

import argparse

import numpy as np
from common import make_models, timed

from skawhmm import HMMBatch, HMMTransformer, Trials, pairwise_hmm_distances
from skawhmm.emissions import (
    Bernoulli,
    ByChannel,
    Categorical,
    Gamma,
    Gaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
    VonMises,
)

# Of the vignette: log likelihood, means and standard deviations of steps, mean angles
# and concentrations, by state.
PUBLISHED = {
    2: (-1892.95, [0.355, 3.364], [0.378, 4.329], [-3.00, 0.13], [0.60, 0.23]),
    3: (
        -1807.26,
        [0.148, 0.671, 4.881],
        [0.147, 0.532, 4.608],
        [-2.68, 3.06, -0.03],
        [0.36, 0.76, 0.40],
    ),
}
ELK = ByChannel([("step", Gamma(zero_mass=True), [0]), ("turn", VonMises(), [1])])
MIXED = [
    ("step", Gamma(), [0]),
    ("turn", VonMises(), [1]),
    ("level", Gaussian(), [2]),
    ("mode", Categorical([0, 1, 2]), [3]),
    ("flag", Bernoulli(), [4]),
]


def elk(file):
    """Print models of all tracks next to the published ones, and one model per elk."""
    data = np.load(file)
    tracks = np.split(data["X"], np.cumsum(data["lengths"])[:-1])
    for n, (published, *states) in PUBLISHED.items():
        hmm = HMMTransformer(
            n, emission=ELK, n_init=100, max_iter=1000, tol=1e-9, random_state=1
        )
        model = hmm.fit_transform([Trials(tracks)])
        order = np.argsort(model.emission.block("step").means[0, :, 0])
        found = model.info["log_likelihood"][0]
        print(f"{n} states, log likelihood {found:.2f}; published {published:.2f}")
        names = "step.means", "step.sds", "turn.locations", "turn.concentrations"
        for name, theirs in zip(names, states, strict=True):
            own = model.emission.parameters[name][0, order, 0]
            print(f"  {name:20} {own.round(2)}  published {np.array(theirs)}")
    hmm = HMMTransformer(2, emission=ELK, n_init=20, random_state=0)
    models = hmm.fit_transform(tracks)
    print("distances of the elk", *data["y"])
    print(pairwise_hmm_distances(models, metric="jaw").round(2))
    for n, name in enumerate(data["y"]):
        order = np.argsort(models.emission.block("step").means[n, :, 0])
        parts = models.emission.parameters.items()
        words = [f"{key} {array[n, order, 0].round(2)}" for key, array in parts]
        print(f"  {name}: weights {models.weights[n, order].round(2)}, ", *words)


def table(rng, n_timesteps):
    """Return a sequence with five kinds of channels, and its path of two states."""
    path = np.cumsum(rng.random(n_timesteps) < 0.05) % 2
    columns = [
        rng.gamma(np.where(path, 4.0, 1.0), np.where(path, 0.5, 2.0)),
        rng.vonmises(np.where(path, np.pi, 2.0), 1.5),
        rng.normal(0.4 * path),
        np.where(rng.random(n_timesteps) < 0.6, 2 * path, 1),
        rng.random(n_timesteps) < np.where(path, 0.6, 0.4),
    ]
    return np.column_stack(columns), path


def accuracy(n_tables=40, n_timesteps=300):
    """Print how many frames get their state, by mixed and by Gaussian states."""
    rng = np.random.default_rng(0)
    X, paths = zip(*(table(rng, n_timesteps) for _ in range(n_tables)), strict=True)
    for name, emission in (("mixed", ByChannel(MIXED)), ("Gaussian", "gaussian")):
        hmm = HMMTransformer(2, emission=emission, n_init=5, random_state=0)
        models = hmm.fit_transform([*X])
        hits = [_hits(models[n], x, paths[n]) for n, x in enumerate(X)]
        error = np.std(hits, ddof=1) / np.sqrt(n_tables)
        print(f"frames in their state, {name}: {np.mean(hits):.3f} +- {error:.3f}")


def _hits(model, x, path):
    """Return the fraction of frames in their state, under the better naming."""
    agreement = np.mean(np.ravel(model.decode([x])[0]) == path)
    return max(agreement, 1 - agreement)


def em_steps(n_sequences=40, n_timesteps=500, n_steps=20):
    """Print the time of EM steps of each family next to the Gaussian one."""
    rng = np.random.default_rng(0)
    shape = n_sequences, n_timesteps, 3
    positive = rng.gamma(2.0, 1.0, shape)
    counts = rng.poisson(positive).astype(float)
    kinds = {
        "gaussian": (Gaussian(), positive),
        "gamma": (Gamma(), positive),
        "vonmises": (VonMises(), positive - np.pi / 2 - positive // np.pi * np.pi),
        "studentt": (StudentT(), positive),
        "poisson": (Poisson(), counts),
        "negative_binomial": (NegativeBinomial(), counts),
        "bernoulli": (Bernoulli(), (positive > 1).astype(float)),
        "categorical": (Categorical([0, 1, 2]), np.minimum(counts[..., 0], 2)),
    }
    usual = None
    for name, (family, values) in kinds.items():
        X = [*(values.astype(int) if name == "categorical" else values)]
        seconds = []
        for n_iter in (0, n_steps):
            hmm = HMMTransformer(
                3, emission=family, max_iter=n_iter, tol=0, random_state=0
            )
            seconds.append(timed(hmm.fit_transform, X, repeats=3)[0])
        own = (seconds[1] - seconds[0]) / n_steps
        usual = own if usual is None else usual
        print(f"EM step, {name:18} {1e3 * own:6.2f} ms, {own / usual:5.2f} x Gaussian")


def pairs(n_models=150, n_components=5):
    """Print the time per pair of MAW with six mixed and six Gaussian channels."""
    rng = np.random.default_rng(0)
    gaussian = make_models(n_models, n_components, 6)
    blocks = [*MIXED, ("calls", NegativeBinomial(), [5])]
    shape = n_models, n_components, 1
    arrays = {
        "transmats": gaussian.transmats,
        "step.means": rng.uniform(1, 3, shape),
        "step.sds": rng.uniform(0.5, 2, shape),
        "step.zero_probs": np.zeros(shape),
        "turn.locations": rng.uniform(-3, 3, shape),
        "turn.concentrations": rng.uniform(0, 5, shape),
        "level.means": rng.normal(size=shape),
        "level.covars": rng.uniform(0.5, 2, shape),
        "mode.emissionprobs": rng.dirichlet(np.ones(3), shape[:2]),
        "flag.probabilities": rng.random(shape),
        "calls.means": rng.uniform(1, 5, shape),
        "calls.shapes": rng.uniform(1, 5, shape),
    }
    mixed = HMMBatch.from_arrays(arrays, emission=ByChannel(blocks, scale=None))
    seconds = [
        timed(pairwise_hmm_distances, models, repeats=5)[0]
        for models in (gaussian, mixed)
    ]
    each = 1e6 * np.array(seconds) / (n_models * (n_models - 1) / 2)
    print(f"MAW per pair, six channels: Gaussian {each[0]:.1f} us, ", end="")
    print(f"mixed {each[1]:.1f} us, ratio {each[1] / each[0]:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elk", help="file with the tracks of the elk")
    given = parser.parse_args()
    if given.elk:
        elk(given.elk)
    accuracy()
    em_steps()
    pairs()
