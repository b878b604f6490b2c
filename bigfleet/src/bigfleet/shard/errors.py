"""Errors of a shard as a whole; parts have their own.

ShardError
├── DataFileError        a file of the data directory that cannot be read
├── DirectoryError       the data directory is another shard's
└── DrainRefusedError    a drain that was requested is not under way
    └── NotActingError   because nothing is done at all: a pause, a dry-run, a fence
"""

from __future__ import annotations


class ShardError(Exception):
    """A shard cannot start, go on or do what it is asked to."""


class DataFileError(ShardError):
    """A file of the data directory that cannot be read."""


class DrainRefusedError(ShardError):
    """A machine that should be drained is not; another try may succeed."""


class NotActingError(DrainRefusedError):
    """Nothing is done to such machines until a person changes that."""


class DirectoryError(ShardError):
    """The data directory is another shard's."""
