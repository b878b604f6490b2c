"""What is known of one provider while it is being asked: cursors, what is open, what failed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bigfleet.provider import ProviderClient
from bigfleet.shard.providers.answers import Walk
from bigfleet.shard.providers.mass_loss import MassLoss


@dataclass(slots=True)
class Feed:
    """One provider."""

    client: ProviderClient
    salt: int
    """Makes equal records of two providers have different digests."""
    cursor: bytes = b""
    has_cursor: bool = True
    continues: bool | None = None
    """Whether a list that was cut goes on from the cursor it gave; None while that did not
    matter
    """
    question: int = 0
    unresolved: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Records that came while they could not be taken: they have to come again."""
    recheck: dict[str, None] = field(default_factory=dict)
    """The same where there is no cursor to go back to."""
    in_flight: set[str] = field(default_factory=set)
    walk: Walk | None = None
    losses: MassLoss = field(default_factory=MassLoss)
    strangers: set[int] = field(default_factory=set)
    """Digests of records that are not this shard's."""
    wanted: set[str] = field(default_factory=set)
    """Machines that stopped being foreign."""
    complained: dict[str, int] = field(default_factory=dict)
    """Digests of refused records that were logged already, by machine."""
    contradicted: set[str] = field(default_factory=set)
    """Known machines whose last record cannot be: what was known of them before stays."""
    full_due: float = 0.0
    """When the next full List is due, by the monotonic clock."""
    is_first_merged: bool = False
    failures: int = 0
    last_error: str = ""
    listed_at_ns: int = 0
    merged_at: float | None = None
    stirred: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a List may be due earlier than it was."""
    gets: dict[str, None] = field(default_factory=dict)
    get_wanted: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        """The provider's name."""
        return self.client.name

    def since(self) -> bytes:
        """From where the next delta has to start."""
        if not self.unresolved:
            return self.cursor
        return min(self.unresolved.values())[1]

    def want_full(self, at: float) -> None:
        """A full List is wanted at this time, if not earlier."""
        if at < self.full_due:
            self.full_due = at
            self.stirred.set()

    def want_get(self, machine_id: str) -> None:
        """This machine is to be looked at by itself."""
        self.gets[machine_id] = None
        self.get_wanted.set()
