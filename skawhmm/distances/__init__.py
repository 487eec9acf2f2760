"""Distances between models: one file per distance; all pairs; matrix files."""
