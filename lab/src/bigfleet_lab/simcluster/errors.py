"""What can go wrong with a simulated cluster.

SimClusterError
├── WorkloadError      demand that cannot be made or changed that way
└── RunError           a run that cannot be started with these options
"""

from __future__ import annotations


class SimClusterError(Exception):
    """Something a simulated cluster cannot do."""


class WorkloadError(SimClusterError, ValueError):
    """Demand that cannot be made or changed that way."""


class RunError(SimClusterError, ValueError):
    """A run that cannot be started with these options."""
