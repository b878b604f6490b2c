"""What can go wrong with a simulated cluster.

SimClusterError
├── LineClosedError    the line to the shard has ended; it says how
├── WorkloadError      demand that cannot be made or changed that way
└── RunError           a run that cannot be started with these options
"""

from __future__ import annotations


class SimClusterError(Exception):
    """Something a simulated cluster cannot do."""


class LineClosedError(SimClusterError):
    """The line has ended. `code` is the name of the gRPC status, as in `ABORTED`."""

    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(f"{code}: {text}" if text else code)
        self.code = code
        self.text = text


class WorkloadError(SimClusterError, ValueError):
    """Demand that cannot be made or changed that way."""


class RunError(SimClusterError, ValueError):
    """A run that cannot be started with these options."""
