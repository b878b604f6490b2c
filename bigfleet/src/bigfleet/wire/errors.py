"""What can be wrong at the edge of the wire.

    WireError
    ├── TlsFilesError       certificate, key or CA bundle missing or unusable
    ├── FencingError        an identity no provider could fence by
    └── UnknownStateError   a machine state outside the enum: the whole answer is unusable

A machine record that breaks a rule is refused with `bigfleet.model.MachineError`.
"""

from __future__ import annotations


class WireError(ValueError):
    """Something that cannot go over the wire, or came from it and cannot be used."""


class TlsFilesError(WireError):
    """Certificate, key or CA bundle are missing or cannot be used."""


class FencingError(WireError):
    """A shard identity or epoch no token can be made of."""


class UnknownStateError(WireError):
    """A machine state with a number this release does not know."""
