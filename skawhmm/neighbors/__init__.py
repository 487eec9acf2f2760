"""Nearest models: estimators, retrieval, exact search, scores."""
