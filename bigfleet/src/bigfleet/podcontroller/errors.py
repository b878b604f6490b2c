"""What the pod controller refuses.

PodControllerError(Exception)
├── DefaultsError     the file of PriorityClass defaults cannot be used
└── UnsupportedClaimError  the devices of a ResourceClaim cannot be counted, or
    └── MissingClaimError    the claim is not there (in claims)
"""

from __future__ import annotations


class PodControllerError(Exception):
    """The pod controller cannot go on."""


class DefaultsError(PodControllerError):
    """The file of PriorityClass defaults cannot be used."""


class UnsupportedClaimError(PodControllerError):
    """The devices of a ResourceClaim cannot be counted; the words are for the owner of the Pod."""
