"""All machines, in the order of their last change, with their bytes ready to send.

Every change of a record gets the next revision. The inventory holds only what is durable: the
ledger publishes a record here once it is committed. A dict keeps insertion order, so "what changed
after revision r" is read from its end, and a full List is one join of bytes. Where a capped List
begins, and what its cursors say, is in `walk`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from bigfleet_providerkit.machines.record import Record, encode, framed, varint
from bigfleet_providerkit.machines.state import CapacityType, State
from bigfleet_providerkit.machines.walk import (
    Walk,
    first_of,
    read_cursor,
    since_cursor,
    walk_cursor,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A record, the revision of its last change, and its bytes inside a MachineList."""

    record: Record
    revision: int
    framed: bytes


class Inventory:
    """The machines that can be seen."""

    def __init__(self, store_id: str, head: int = 0) -> None:
        self.store_id = store_id
        self.head = head
        self.counts: Counter[tuple[State, CapacityType]] = Counter()
        self._entries: dict[str, Entry] = {}
        self._by_host: dict[str, str] = {}
        self._walks = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, machine: object) -> bool:
        return machine in self._entries

    def __iter__(self) -> Iterator[Record]:
        return (entry.record for entry in self._entries.values())

    def get(self, machine: str) -> Record | None:
        """The record of a machine, if there is one."""
        entry = self._entries.get(machine)
        return entry.record if entry else None

    def encoded(self, machine: str) -> bytes | None:
        """The bytes of one Machine message."""
        entry = self._entries.get(machine)
        if entry is None:
            return None
        start = 1
        while entry.framed[start] & 0x80:
            start += 1
        return entry.framed[start + 1 :]

    def snapshot(self) -> dict[str, Record]:
        """All records, for a reader on another thread."""
        return {machine: entry.record for machine, entry in self._entries.items()}

    def revision(self, machine: str) -> int:
        """The revision of a machine's last change, 0 for an unknown one."""
        entry = self._entries.get(machine)
        return entry.revision if entry else 0

    def publish(self, record: Record, revision: int) -> None:
        """Show a committed record; it becomes the last one changed."""
        old = self._entries.pop(record.id, None)
        if old is not None:
            self._forget(old.record)
        if record.host:
            self._by_host[record.host] = record.id
        self.counts[record.state, record.capacity_type] += 1
        self._entries[record.id] = Entry(record, revision, framed(encode(record)))
        self.head = max(self.head, revision)

    def remove(self, machine: str) -> None:
        """A retired slot leaves; readers notice with their next full List."""
        old = self._entries.pop(machine, None)
        if old is not None:
            self._forget(old.record)

    def machine_on(self, host: str) -> str | None:
        """The machine whose host this is."""
        return self._by_host.get(host)

    def _forget(self, old: Record) -> None:
        self.counts[old.state, old.capacity_type] -= 1
        if old.host:
            self._by_host.pop(old.host, None)

    def listing(self, states: Collection[int], most: int, cursor: bytes) -> bytes:
        """The bytes of a MachineList: filter first, then the cap, oldest change first."""
        place = read_cursor(cursor, self.store_id, self.head)
        if isinstance(place, Walk):
            return self._page_of_walk(place, self._left_of(place, states), most)
        entries = _in_states(self._changed_after(place.revision), states)
        if not most or len(entries) <= most:
            return _message(entries, since_cursor(self.store_id, self.head))
        if place.revision < 0:
            first = first_of(self._walks, len(entries))
            self._walks += 1
            start = entries[first - 1].revision if first else 0
            order = entries[first:] + entries[:first]
            return self._page_of_walk(Walk(start, start, self.head), order, most)
        page = entries[:most]
        return _message(page, since_cursor(self.store_id, page[-1].revision))

    def _page_of_walk(self, walk: Walk, left: list[Entry], most: int) -> bytes:
        if not most or len(left) <= most:
            return _message(left, since_cursor(self.store_id, walk.head))
        page = left[:most]
        return _message(page, walk_cursor(self.store_id, replace(walk, last=page[-1].revision)))

    def _left_of(self, walk: Walk, states: Collection[int]) -> list[Entry]:
        entries = _in_states(self._entries.values(), states)
        return [
            entry
            for after, until in walk.spans
            for entry in entries
            if after < entry.revision <= until
        ]

    def _changed_after(self, since: int) -> list[Entry]:
        if since < 0:
            return list(self._entries.values())
        changed = []
        for entry in reversed(self._entries.values()):
            if entry.revision <= since:
                break
            changed.append(entry)
        changed.reverse()
        return changed


def _in_states(entries: Iterable[Entry], states: Collection[int]) -> list[Entry]:
    if not states:
        return list(entries)
    return [entry for entry in entries if entry.record.state in states]


def _message(entries: list[Entry], cursor: bytes) -> bytes:
    """The bytes of a MachineList."""
    body = b"".join([entry.framed for entry in entries])
    return b"".join((body, b"\x12", varint(len(cursor)), cursor))
