"""Checks of parameters and numbers, parallel tasks, files, tables, versions."""
