"""HMMBatch, inference with it, its files, and exchange with hmmlearn."""
