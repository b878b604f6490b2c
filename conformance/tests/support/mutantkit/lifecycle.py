"""Mutants of states, hosts and acks (M036-M053)."""

import asyncio
import time

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from mutantkit.registry import broken
from reference.inventory import Slot
from reference.provider import (
    CONFIGURED,
    CONFIGURING,
    DRAINING,
    IDLE,
    POSITION,
    Call,
    Provider,
)


class WrongWay(Provider):
    """One mutation passes through a foreign state."""

    kind = ""
    state = 0

    def by_way_of(self, kind: str) -> int:
        return self.state if kind == self.kind else super().by_way_of(kind)


@broken("M036")
class ConfigureShowsDraining(WrongWay):
    kind, state = "configure", DRAINING


@broken("M037")
class DrainShowsConfiguring(WrongWay):
    kind, state = "drain", CONFIGURING


@broken("M038")
class CreateShowsConfiguring(WrongWay):
    kind, state = "create", CONFIGURING


@broken("M039")
class NoHostAtIdle(Provider):
    def ended(self, slot: Slot, kind: str) -> None:
        if kind == "create":
            slot.record.ClearField("host")


@broken("M040")
class Flickers(Provider):
    def shown(self, slot: Slot) -> pb.Machine:
        other = {IDLE: CONFIGURING, CONFIGURED: DRAINING}.get(slot.record.state)
        if other is None or time.monotonic() % 0.1 > 0.03:
            return slot.record
        record = pb.Machine()
        record.CopyFrom(slot.record)
        record.state = pb.MachineState.ValueType(other)
        return record


@broken("M041")
class DeleteKeepsHost(Provider):
    def vacate(self, slot: Slot) -> None:
        host = pb.HostRef()
        host.CopyFrom(slot.record.host)
        super().vacate(slot)
        slot.record.host.CopyFrom(host)


@broken("M042")
class ErrorLeft(Provider):
    def ended(self, slot: Slot, kind: str) -> None:
        slot.record.last_error = "Throttled: tried twice"


@broken("M043")
class DrainKeepsMetadata(Provider):
    def unbind(self, slot: Slot) -> None:
        slot.record.ClearField("cluster")


@broken("M044")
class DrainKeepsCluster(Provider):
    def unbind(self, slot: Slot) -> None:
        slot.record.shard_metadata.clear()


@broken("M045")
class AckShowsOldState(Provider):
    async def accept(self, call: Call) -> pb.TransitionAck:
        answer = await super().accept(call)
        answer.machine.state = pb.MachineState.ValueType(POSITION[call.kind][0])
        return answer


@broken("M046")
class AckWithoutMachine(Provider):
    def ack(self, slot: Slot, operation: str) -> pb.TransitionAck:
        return pb.TransitionAck(operation_id=operation)


@broken("M047")
class Blocks(Provider):
    async def accept(self, call: Call) -> pb.TransitionAck:
        answer = await super().accept(call)
        await asyncio.sleep(self.config.slow_s)
        return answer


@broken("M048")
class BindingShownLate(Provider):
    def bind(self, slot: Slot, request: pb.ConfigureRequest) -> None:
        self.__dict__.setdefault("waiting", {})[slot.record.id] = request

    def ended(self, slot: Slot, kind: str) -> None:
        if kind == "configure":
            super().bind(slot, self.__dict__["waiting"][slot.record.id])


@broken("M049")
class BindingClearedEarly(Provider):
    def starting(self, slot: Slot, kind: str) -> None:
        if kind == "drain":
            self.unbind(slot)


@broken("M050")
class HostReplaced(Provider):
    def starting(self, slot: Slot, kind: str) -> None:
        if kind == "create":
            slot.record.host.provider, slot.record.host.ref = "certify", "early"


@broken("M051")
class HostChangesAtConfigure(Provider):
    def ended(self, slot: Slot, kind: str) -> None:
        if kind == "configure":
            slot.record.host.ref = f"{slot.record.host.ref}-moved"


@broken("M052")
class TypeChanges(Provider):
    def ended(self, slot: Slot, kind: str) -> None:
        if kind == "create":
            slot.record.instance_type = "what-the-cloud-gave"


@broken("M053")
class CancelledBetween(Provider):
    def begin_work(self, slot: Slot, kind: str, operation: str, limit: float) -> None:
        self.__dict__["due"] = (slot, kind, operation, limit)

    async def accept(self, call: Call) -> pb.TransitionAck:
        answer = await super().accept(call)
        due = self.__dict__.pop("due")
        await asyncio.sleep(0.03)
        super().begin_work(*due)
        return answer
