"""Transformers from models or sequences to numbers."""
