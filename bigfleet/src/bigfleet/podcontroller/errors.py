"""What the pod controller refuses.

PodControllerError(Exception)
└── DefaultsError     the file of PriorityClass defaults cannot be used
"""

from __future__ import annotations


class PodControllerError(Exception):
    """The pod controller cannot go on."""


class DefaultsError(PodControllerError):
    """The file of PriorityClass defaults cannot be used."""
