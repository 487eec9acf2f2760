"""Monitoring of running processes: windows compared with a reference."""

from skawhmm.monitoring._monitor import HMMMonitor

__all__ = [
    "HMMMonitor",
]
