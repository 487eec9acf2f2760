"""Families of states, which emit numbers, angles, counts or symbols."""

from skawhmm.emissions._base import Emission
from skawhmm.emissions._bernoulli import Bernoulli
from skawhmm.emissions._by_channel import ByChannel
from skawhmm.emissions._categorical import Categorical
from skawhmm.emissions._gamma import Gamma
from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._negative_binomial import NegativeBinomial
from skawhmm.emissions._poisson import Poisson
from skawhmm.emissions._simple import SimpleEmission
from skawhmm.emissions._student import StudentT
from skawhmm.emissions._vonmises import VonMises

__all__ = [
    "Bernoulli",
    "ByChannel",
    "Categorical",
    "Emission",
    "Gamma",
    "Gaussian",
    "NegativeBinomial",
    "Poisson",
    "SimpleEmission",
    "StudentT",
    "VonMises",
]
