"""Reads of the reference provider: Get, List, cursors and pages."""

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from reference.inventory import Inventory, Slot
from reference.store import Store

Code = grpc.StatusCode


class RefusedError(Exception):
    """A call is refused with a code."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class Reads:
    """What is shown; a mutant lies in one of these."""

    inventory: Inventory
    store: Store

    async def get(self, id: str) -> pb.Machine:
        """One record."""
        if not id:
            raise RefusedError(Code.INVALID_ARGUMENT, "id is empty")
        slot = self.inventory.slots.get(id)
        if slot is None:
            raise RefusedError(Code.NOT_FOUND, f"no machine {id[:64]!r}")
        return self.shown(slot)

    def shown(self, slot: Slot) -> pb.Machine:
        """The record as reads show it."""
        return slot.record

    def shown_bytes(self, slot: Slot) -> bytes:
        """The same for List."""
        return slot.bytes()

    async def listing(self, request: pb.ListFilter) -> bytes:
        """An encoded MachineList: the state filter first, then the cap."""
        self.check_filter(request)
        since = self.read_cursor(bytes(request.since_revision))
        wanted = self.states(request)
        chosen = [
            slot for slot in self.candidates(since) if not wanted or slot.record.state in wanted
        ]
        cap = self.cap(request.max_results)
        cut = bool(cap) and len(chosen) > cap
        head = self.inventory.head
        if cut:
            chosen = chosen[:cap]
            head = self.page_revision(chosen)
        revision = self.cursor(head)
        parts = [self.shown_bytes(slot) for slot in chosen]
        return b"".join(parts) + pb.MachineList(revision=revision).SerializeToString()

    def check_filter(self, request: pb.ListFilter) -> None:
        """States outside the enum and negative caps are bad arguments."""
        if request.max_results < 0 or any(
            state not in pb.MachineState.values() for state in request.states
        ):
            raise RefusedError(Code.INVALID_ARGUMENT, "the filter makes no sense")

    def states(self, request: pb.ListFilter) -> set[int]:
        """The states asked for."""
        return set(request.states)

    def cap(self, most: int) -> int:
        """The cap asked for."""
        return most

    def candidates(self, since: int) -> list[Slot]:
        """Every slot changed after a revision."""
        return list(self.inventory.changed_since(since))

    def page_revision(self, page: list[Slot]) -> int:
        """Where the next page goes on."""
        return page[-1].revision

    def cursor(self, revision: int) -> bytes:
        """A revision as a cursor."""
        return f"v1.{self.store.store_id}.{revision}".encode()

    def read_cursor(self, cursor: bytes) -> int:
        """The revision of a cursor, or 0 for everything."""
        prefix = f"v1.{self.store.store_id}.".encode()
        digits = cursor.removeprefix(prefix)
        if not cursor.startswith(prefix) or not digits.isdigit():
            return 0
        revision = int(digits)
        if revision > self.inventory.head or str(revision).encode() != digits:
            return 0
        return revision
