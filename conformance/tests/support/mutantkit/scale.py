"""Mutants that only size, time and numbers show (M104-M112)."""

import asyncio
import itertools

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from mutantkit.registry import broken
from reference.inventory import Slot
from reference.provider import MOST_UNKNOWN_MARKS, Provider, Request
from reference.reads import RefusedError

LARGE = 1000


@broken("M104")
class NoZoneBeyond(Provider):
    def load(self) -> None:
        super().load()
        for slot in itertools.islice(self.inventory.slots.values(), LARGE, None):
            slot.record.ClearField("zone")
            slot.encoded = b""


class Counting(Provider):
    """Counts something."""

    count = 0

    def every(self, number: int) -> bool:
        """True every so often."""
        self.count += 1
        return self.count % number == 0


@broken("M105")
class SomeDrainsLeaveMetadata(Counting):
    def unbind(self, slot: Slot) -> None:
        if self.every(16):
            slot.record.ClearField("cluster")
        else:
            super().unbind(slot)


@broken("M106")
class SomeDeletesDropTheRecord(Counting):
    def finish(self, slot: Slot, kind: str, host: str) -> None:
        super().finish(slot, kind, host)
        if kind == "delete" and self.every(10):
            del self.inventory.slots[slot.record.id]


@broken("M107")
class SomeGetsAreSlow(Counting):
    async def get(self, id: str) -> pb.Machine:
        if self.every(20):
            await asyncio.sleep(0.3)
        return await super().get(id)


@broken("M108")
class ListIsSlow(Provider):
    async def listing(self, request: pb.ListFilter) -> bytes:
        if len(self.inventory.slots) > LARGE:
            await asyncio.sleep(4.0)
        return await super().listing(request)


@broken("M109")
class EightCreatesAtOnce(Provider):
    creating = 0

    async def mutate(
        self, kind: str, request: Request, identity: str | None = None
    ) -> pb.TransitionAck:
        if kind != "create":
            return await super().mutate(kind, request, identity)
        self.creating += 1
        try:
            if self.creating > 8:
                raise RefusedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many at once")
            await asyncio.sleep(0.05)
            return await super().mutate(kind, request, identity)
        finally:
            self.creating -= 1


@broken("M110")
class ListEnds(Provider):
    def candidates(self, since: int) -> list[Slot]:
        return super().candidates(since)[:65_536]


@broken("M111")
class KeepsEveryToken(Provider):
    def move_mark(self, key: tuple[str, str], token: tuple[int, int]) -> None:
        super().move_mark(key, token)
        self.store.put_fence(f"{key[0]}#{token}", key[1], token)


@broken("M112")
class DropsRealMarks(Provider):
    def move_mark(self, key: tuple[str, str], token: tuple[int, int]) -> None:
        super().move_mark(key, token)
        known = self.__dict__.setdefault("known", {})
        known.pop(key, None)
        known[key] = True
        if len(known) > MOST_UNKNOWN_MARKS:
            oldest = next(iter(known))
            del known[oldest]
            self.fences.pop(oldest, None)
            self.store.drop_fence(*oldest)
