"""Checks of parameters, parallel tasks, versions."""
