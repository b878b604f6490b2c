"""Mutants of failure, time-outs, readiness, loss and healing (M080-M091, M118, M119, M122,
M129-M134)."""

import asyncio

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from mutantkit.operations import AlsoLegalFrom
from mutantkit.registry import broken
from reference.inventory import Slot
from reference.provider import FAILED, POSITION, Call, Provider
from reference.reads import RefusedError
from reference.substrate import REGISTERED_S, Substrate


@broken("M080")
class FailedIsConfigured(AlsoLegalFrom):
    kind, state = "configure", FAILED


@broken("M081")
class FailedHidden(Provider):
    def candidates(self, since: int) -> list[Slot]:
        return [slot for slot in super().candidates(since) if slot.record.state != FAILED]


@broken("M082")
class NoTimeout(Provider):
    def begin_work(self, slot: Slot, kind: str, operation: str, limit: float) -> None:
        super().begin_work(slot, kind, operation, 3600.0)


@broken("M083")
class LateSuccessApplied(Provider):
    def late(self, slot: Slot, kind: str, operation: str) -> None:
        slot.record.ClearField("last_error")
        self.finish(slot, kind, slot.record.host.ref)


class NeverAsks(Substrate):
    """A substrate in which joining is being Ready."""

    async def ready(self, cluster: str) -> None:
        return


@broken("M084")
class ReadinessNotAsked(Provider):
    substrate_type = NeverAsks


class RegisteredIsEnough(Substrate):
    """A substrate in which a registered node counts."""

    async def ready(self, cluster: str) -> None:
        if cluster == "fault-join-late":
            await asyncio.sleep(REGISTERED_S)
        else:
            await super().ready(cluster)


@broken("M085")
class RegisteredIsReady(Provider):
    substrate_type = RegisteredIsEnough


@broken("M086")
class ErrorReverts(Provider):
    def broken(self, slot: Slot, kind: str, reason: str) -> None:
        slot.record.state = pb.MachineState.ValueType(POSITION[kind][0])
        slot.running = ""
        if kind == "configure":
            self.unbind(slot)
        self.changed(slot)


@broken("M087")
class EmptyLastError(Provider):
    def fail(self, slot: Slot, reason: str) -> None:
        super().fail(slot, "")


@broken("M088")
class FailedDrainStartsOver(Provider):
    def broken(self, slot: Slot, kind: str, reason: str) -> None:
        if kind != "drain":
            super().broken(slot, kind, reason)
            return
        self.spawn(self.again(slot))

    async def again(self, slot: Slot) -> None:
        await asyncio.sleep(0.05)
        await self.run(slot, "drain", slot.operations["drain"], 60.0)


@broken("M089")
class LossNeverNoticed(Provider):
    def look(self, slot: Slot) -> None:
        return


@broken("M090")
class HealedKeepsHost(Provider):
    def heal(self, slot: Slot) -> None:
        self.unbind(slot)
        slot.operations = {}
        slot.record.state = pb.MACHINE_STATE_SPECULATIVE
        self.changed(slot)


@broken("M091")
class HealingForgetsMarks(Provider):
    def heal(self, slot: Slot) -> None:
        super().heal(slot)
        for key in [key for key in self.fences if key[1] == slot.record.id]:
            del self.fences[key]


@broken("M118")
class FailedDrainEndsIdle(Provider):
    def broken(self, slot: Slot, kind: str, reason: str) -> None:
        if kind == "drain":
            self.finish(slot, kind, slot.record.host.ref)
        else:
            super().broken(slot, kind, reason)


class Wordless(Substrate):
    """A substrate that does not name a stock-out."""

    def stockout(self) -> str:
        return "there is none left of that type"


@broken("M119")
class StockOutUnnamed(Provider):
    substrate_type = Wordless


@broken("M122")
class FailureClearsTheBinding(Provider):
    def fail(self, slot: Slot, reason: str) -> None:
        if slot.record.state != pb.MACHINE_STATE_DRAINING:
            self.unbind(slot)
        super().fail(slot, reason)


@broken("M129")
class FailedIsCreated(AlsoLegalFrom):
    kind, state = "create", FAILED


@broken("M130")
class FailedIsDrained(AlsoLegalFrom):
    kind, state = "drain", FAILED


@broken("M131")
class FailedIsDeleted(AlsoLegalFrom):
    kind, state = "delete", FAILED


@broken("M132")
class LostIsDeleted(Provider):
    def position(self, call: Call) -> pb.TransitionAck | None:
        record = call.known.record
        if call.kind == "delete" and record.last_error.startswith("HostLost:"):
            return None
        return super().position(call)


@broken("M133")
class FailedDrainRepeats(Provider):
    def repeat(self, call: Call) -> pb.TransitionAck | None:
        slot = call.known
        if call.kind == "drain" and slot.record.state == FAILED and slot.record.cluster:
            operation = slot.operations.get("drain")
            return self.ack(slot, operation) if operation else None
        return super().repeat(call)


@broken("M134")
class RefusalRewritesReason(Provider):
    def position(self, call: Call) -> pb.TransitionAck | None:
        try:
            return super().position(call)
        except RefusedError as refusal:
            if call.known.record.state == FAILED:
                self.fail(call.known, f"InvalidRequest: {refusal}")
            raise
