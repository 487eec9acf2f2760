"""Averages and clusters of models."""
