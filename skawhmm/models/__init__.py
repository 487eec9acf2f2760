"""The stack of models, inference by it, its files, exchange with hmmlearn."""
