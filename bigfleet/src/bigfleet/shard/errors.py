"""Errors of a shard as a whole; parts have their own."""

from __future__ import annotations


class ShardError(Exception):
    """A shard cannot start or go on."""


class DataFileError(ShardError):
    """A file of the data directory that nobody can read."""
