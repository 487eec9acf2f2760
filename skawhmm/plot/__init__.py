"""Displays and the explorer: the only place that imports matplotlib."""
