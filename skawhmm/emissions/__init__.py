"""Families of states: one file per family, one contract for all."""
