"""Checks of parameters, tasks in parallel, versions."""
