"""Utilities: checks, parallel tasks, files, tables, versions."""
