"""The refusals of the simulation, one small tree.

SimulateError(ValueError)
├── ScenarioError     a scenario file that cannot be used; one line: file, place, value, remedy
├── DelayError        a range of delays that is none
└── WorkloadError     a benchmark workload that is not known, or too small to be made
"""

from __future__ import annotations


class SimulateError(ValueError):
    """Something that cannot be simulated."""


class ScenarioError(SimulateError):
    """A scenario file that cannot be used."""


class DelayError(SimulateError):
    """A range of delays that is none."""


class WorkloadError(SimulateError):
    """A workload that is not known, or too small to be made."""
