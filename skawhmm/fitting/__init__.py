"""Sequences to models: hidden Markov models by EM, and chains of visible states."""

from skawhmm.fitting._markov_chain import MarkovChainTransformer
from skawhmm.fitting._transformer import HMMTransformer

__all__ = ["HMMTransformer", "MarkovChainTransformer"]
