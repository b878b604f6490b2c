"""Mutants of List, cursors and pages (M068-M079, M123-M125)."""

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from mutantkit.registry import broken
from reference.inventory import Slot
from reference.provider import Provider


@broken("M068")
class CapIgnored(Provider):
    def cap(self, most: int) -> int:
        return 0


@broken("M069")
class FilterIgnored(Provider):
    def states(self, request: pb.ListFilter) -> set[int]:
        return set()


@broken("M070")
class OnlyFirstState(Provider):
    def states(self, request: pb.ListFilter) -> set[int]:
        return set(request.states[:1])


@broken("M071")
class Duplicates(Provider):
    def candidates(self, since: int) -> list[Slot]:
        found = super().candidates(since)
        return found + found[-1:]


@broken("M072")
class CursorInclusive(Provider):
    def read_cursor(self, cursor: bytes) -> int:
        return max(0, super().read_cursor(cursor) - 1)


@broken("M073")
class JunkGivesNothing(Provider):
    def read_cursor(self, cursor: bytes) -> int:
        found = super().read_cursor(cursor)
        return self.inventory.head if cursor and found == 0 else found


@broken("M074")
class ChangeKeepsRevision(Provider):
    def touch(self, slot: Slot) -> None:
        self.inventory.head += 1
        slot.encoded = b""


@broken("M075")
class ReadingMovesRevision(Provider):
    async def listing(self, request: pb.ListFilter) -> bytes:
        answer = await super().listing(request)
        self.touch(next(iter(self.inventory.slots.values())))
        return answer


@broken("M076")
class ConstantRevision(Provider):
    def cursor(self, revision: int) -> bytes:
        return b"v1.always"


@broken("M077")
class ContinuationJumps(Provider):
    def page_revision(self, page: list[Slot]) -> int:
        return self.inventory.head


@broken("M078")
class DeltaCarriesMore(Provider):
    def candidates(self, since: int) -> list[Slot]:
        found = super().candidates(since)
        if since:
            found.append(next(iter(self.inventory.slots.values())))
        return found


@broken("M079")
class LargeCapsIgnored(Provider):
    def cap(self, most: int) -> int:
        return 0 if most > 256 else most


@broken("M123")
class CapBeforeFilter(Provider):
    async def listing(self, request: pb.ListFilter) -> bytes:
        self.check_filter(request)
        unfiltered = pb.ListFilter(
            max_results=request.max_results, since_revision=request.since_revision
        )
        answer = pb.MachineList.FromString(await super().listing(unfiltered))
        wanted = self.states(request)
        kept = [m for m in answer.machines if not wanted or m.state in wanted]
        return pb.MachineList(machines=kept, revision=answer.revision).SerializeToString()


@broken("M124")
class FilterIgnoredInDelta(Provider):
    def states(self, request: pb.ListFilter) -> set[int]:
        return set() if self.read_cursor(bytes(request.since_revision)) else set(request.states)


@broken("M125")
class NegativeCapCutsTheEndOff(Provider):
    def check_filter(self, request: pb.ListFilter) -> None:
        super().check_filter(pb.ListFilter(states=request.states))
