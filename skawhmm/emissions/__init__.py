"""What states emit: Gaussian vectors, symbols, counts, or a family of your own."""

from skawhmm.emissions._base import Emission
from skawhmm.emissions._categorical import Categorical
from skawhmm.emissions._gaussian import Gaussian
from skawhmm.emissions._poisson import Poisson
from skawhmm.emissions._simple import SimpleEmission

__all__ = ["Categorical", "Emission", "Gaussian", "Poisson", "SimpleEmission"]
