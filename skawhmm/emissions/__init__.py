"""Families of states: one file per family, one contract for all."""

__all__: list[str] = []
