"""Refusals and unreadable rows.

StateError
├── RefusalError          a rule says no; nothing changes
│   ├── InvalidError      the command makes no sense whatever the state
│   ├── UnknownError      it names something that is not there
│   └── TakenError        it wants what belongs to another
└── CorruptRowError       a stored row that cannot be read

Each refusal has the name of the gRPC status it is answered with.
"""

from __future__ import annotations

from typing import ClassVar


class StateError(Exception):
    """Something about the state."""


class RefusalError(StateError):
    """A rule says no. Nothing changes."""

    code: ClassVar[str] = "FAILED_PRECONDITION"


class InvalidCommandError(RefusalError, ValueError):
    """The command makes no sense."""

    code = "INVALID_ARGUMENT"


class UnknownEntryError(RefusalError):
    """The command names something that is not there."""

    code = "NOT_FOUND"


class AlreadyAssignedError(RefusalError):
    """The command wants what belongs to another."""

    code = "ALREADY_EXISTS"


class CorruptRowError(StateError):
    """A stored row that cannot be read."""
