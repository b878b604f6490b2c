"""What keeps a shard from starting with what it remembers.

    ReconcileError
    ├── EpochError            the epoch file cannot be read as a number, or has no next one
    ├── OwnershipError        the ownership file cannot be read
    └── DoneInstructionsError the file of instructions done cannot be read

A damaged journal is none of these: what it held is a hint, and the shard starts without it.
"""

from __future__ import annotations


class ReconcileError(Exception):
    """Something a shard needs to know about itself is unusable."""


class EpochError(ReconcileError):
    """No epoch can be made from the file."""


class OwnershipError(ReconcileError):
    """It is not known which machines are this shard's."""


class DoneInstructionsError(ReconcileError):
    """The file of instructions done cannot be read."""
