"""Running processes: windows compared with a reference as frames come."""

from skawhmm.monitoring._monitor import HMMMonitor

__all__ = [
    "HMMMonitor",
]
