"""What can go wrong with a store.

StoreError
├── StoreSettingsError       the store's address cannot be parsed
├── StoreLockedError         another process has the file, or leads
├── StoreNotEmptyError       there are rows that a restore may not write over
├── StoreUnavailableError    no answer in time; a commit may or may not have been written
├── StoreFullError           no room left; nothing was written
├── ConflictError            another replica wrote; nothing was written
├── DeposedError             another replica leads; nothing was written
├── CorruptStoreError        what is stored cannot be read
└── SnapshotError            a snapshot cannot be made or read
    └── SnapshotMissingError   there is none yet
"""

from __future__ import annotations


class StoreError(Exception):
    """A store cannot do what was asked."""


class StoreSettingsError(StoreError, ValueError):
    """The store's address cannot be parsed."""


class StoreLockedError(StoreError):
    """Another process uses the same store as its own."""


class StoreNotEmptyError(StoreError):
    """There are rows already, and a restore was not told to write over them."""


class StoreUnavailableError(StoreError):
    """No answer, or none in time. What a commit did is unknown."""


class StoreFullError(StoreError):
    """There is no room for more. Nothing was written."""


class StoreConflictError(StoreError):
    """The rows are at another revision than the writer expected. Nothing was written."""


class DeposedError(StoreError):
    """The leadership is over. Nothing was written."""


class CorruptStoreError(StoreError):
    """What is stored cannot be read."""


class SnapshotError(StoreError):
    """A snapshot cannot be made or read."""


class SnapshotMissingError(SnapshotError):
    """There is no snapshot yet."""
