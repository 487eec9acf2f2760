"""Models fitted by pomegranate: judged by the log probability of pomegranate itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skawhmm import as_models

torch = pytest.importorskip("torch", reason="make exchange installs pomegranate")
hmm = pytest.importorskip("pomegranate.hmm")
distributions = pytest.importorskip("pomegranate.distributions")
pytestmark = pytest.mark.filterwarnings("ignore")
EDGES = np.array([[0.9, 0.05], [0.1, 0.85]])
ENDS = np.array([0.05, 0.05])


@pytest.fixture(autouse=True)
def double_precision():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def tensor(values):
    return torch.tensor(np.asarray(values, float))


def normal(covariance_type, mean):
    covs = np.eye(2) if covariance_type == "full" else np.ones(2)
    means, covs = tensor([mean, mean]), tensor(covs)
    return distributions.Normal(means, covs, covariance_type=covariance_type)


def states(kind):
    if kind in {"full", "diag"}:
        return [normal(kind, 0.0), normal(kind, 2.0)]
    if kind == "poisson":
        return [distributions.Poisson(tensor([m, m])) for m in (1.0, 4.0)]
    if kind == "bernoulli":
        return [distributions.Bernoulli(tensor([p, p])) for p in (0.2, 0.7)]
    rows = ([[0.6, 0.3, 0.1]], [[0.2, 0.3, 0.5]])
    return [distributions.Categorical(tensor(row)) for row in rows]


def dense(kind, edges=EDGES, ends=ENDS):
    starts = tensor([0.5, 0.5])
    given = {"edges": tensor(edges), "starts": starts, "ends": tensor(ends)}
    return hmm.DenseHMM(states(kind), max_iter=4, **given)


def data_of(kind, frames, counts, symbols):
    """Return the frames of a kind for pomegranate, and for us."""
    if kind == "poisson":
        return tensor(counts), counts
    if kind == "bernoulli":
        marks = (frames > 1).astype(int)
        return tensor(marks), ["".join(map(str, row)) for row in marks]
    if kind == "categorical":
        return torch.tensor(symbols[:, None]), symbols
    return tensor(frames), frames


def without_end(model):
    """Return the model of pomegranate given that sequences go on.

    Its last factor is 1, so that its score is the density of the frames alone.
    """
    moves = torch.exp(model.edges)
    return hmm.DenseHMM(
        [*model.distributions],
        edges=moves / moves.sum(dim=1, keepdim=True),
        starts=torch.exp(model.starts),
        ends=torch.ones(len(moves)),
    )


@pytest.mark.parametrize(
    "kind", ["full", "diag", "poisson", "categorical", "bernoulli"]
)
def test_fitted_models_keep_their_likelihood(kind, frames, counts, symbols):
    theirs_data, our_data = data_of(kind, frames, counts, symbols)
    model = dense(kind)
    model.fit(theirs_data[None])
    ours = as_models(model)
    with torch.no_grad():
        theirs = float(without_end(model).log_probability(theirs_data[None])[0])
    assert_allclose(ours.score([our_data])[0, 0], theirs, rtol=1e-9)


def test_equal_ends_change_scores_by_a_constant(frames):
    model = dense("full")
    with torch.no_grad():
        theirs = float(model.log_probability(tensor(frames)[None])[0])
    ours = as_models(model).score([frames])[0, 0]
    # A sequence goes on 159 times and ends once.
    constant = 159 * np.log(0.95) + np.log(0.05)
    assert_allclose(ours + constant, theirs, rtol=1e-9)


def test_models_as_pomegranate_fits_them_by_default(frames):
    torch.set_default_dtype(torch.float32)
    x = torch.tensor(frames.astype(np.float32))[None]
    kinds = [distributions.Normal(covariance_type="diag") for _ in range(2)]
    model = hmm.DenseHMM(kinds, max_iter=5, random_state=0).fit(x)
    ours = as_models(model)
    assert_allclose(ours.transmats.sum(axis=2), 1, rtol=1e-12)
    means = np.sort(ours.means[0, :, 0])
    assert_allclose(means, [0, 3], atol=0.5)
    with torch.no_grad():
        theirs = float(without_end(model).log_probability(x)[0])
    assert_allclose(ours.score([frames])[0, 0], theirs, rtol=1e-4)


def test_sparse_models_keep_their_likelihood(frames):
    a, b = states("full")
    model = hmm.SparseHMM(
        [a, b],
        edges=[(a, a, 0.9), (a, b, 0.1), (b, a, 0.2), (b, b, 0.8)],
        starts=tensor([0.5, 0.5]),
        ends=tensor([1.0, 1.0]),
    )
    ours = as_models(model)
    assert_allclose(ours.transmats[0], [[0.9, 0.1], [0.2, 0.8]])
    with torch.no_grad():
        theirs = float(model.log_probability(tensor(frames)[None])[0])
    # SparseHMM keeps its edges in single precision.
    assert_allclose(ours.score([frames])[0, 0], theirs, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: hmm.DenseHMM([distributions.Normal(), distributions.Normal()]),
            TypeError,
            r"models\[0\] must be a fitted model, got a DenseHMM that is not fitted",
        ),
        (
            lambda: dense("full", edges=[[0.9, 0.3], [0.1, 0.85]]),
            ValueError,
            r"transmats must sum to one, got 1\.2.* in model 0, state 0",
        ),
        (
            lambda: hmm.DenseHMM(
                [normal("full", 0.0), distributions.Exponential(tensor([1.0, 1.0]))],
                edges=tensor(EDGES),
                starts=tensor([0.5, 0.5]),
                ends=tensor(ENDS),
            ),
            TypeError,
            r"known kind.*got Exponential in state 1",
        ),
        (
            lambda: hmm.DenseHMM(
                [normal("full", 0.0), distributions.Poisson(tensor([1.0, 1.0]))],
                edges=tensor(EDGES),
                starts=tensor([0.5, 0.5]),
                ends=tensor(ENDS),
            ),
            TypeError,
            "one kind, got Normal in state 0 and Poisson in state 1",
        ),
        (
            lambda: distributions.Poisson(tensor([1.0])),
            TypeError,
            r"\['DenseHMM', 'SparseHMM'\] of pomegranate, got Poisson",
        ),
    ],
)
def test_errors_of_models_that_cannot_be_read(make, error, words):
    with pytest.raises(error, match=words):
        as_models([make()])
