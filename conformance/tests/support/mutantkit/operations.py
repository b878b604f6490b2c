"""Mutants of operation ids, repeats, positions and codes (M016-M035, M126)."""

import asyncio
from typing import ClassVar

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from mutantkit.registry import broken
from reference.inventory import Slot
from reference.provider import (
    CONFIGURED,
    CONFIGURING,
    POSITION,
    SPECULATIVE,
    Call,
    Provider,
)
from reference.reads import RefusedError

Code = grpc.StatusCode


@broken("M016")
class NewIdOnEveryRepeat(Provider):
    def repeat(self, call: Call) -> pb.TransitionAck | None:
        answer = super().repeat(call)
        if answer is not None:
            answer.operation_id = self.new_operation(call.known, call.kind)
        return answer


@broken("M017")
class ConstantId(Provider):
    def new_operation(self, slot: Slot, kind: str) -> str:
        return "operation"


@broken("M018")
class EmptyId(Provider):
    def new_operation(self, slot: Slot, kind: str) -> str:
        return ""


@broken("M019")
class StaleId(Provider):
    def new_operation(self, slot: Slot, kind: str) -> str:
        return slot.operations.get(kind) or super().new_operation(slot, kind)


@broken("M020")
class DrainSharesCreatesId(Provider):
    def new_operation(self, slot: Slot, kind: str) -> str:
        if kind == "drain":
            return slot.operations["create"]
        return super().new_operation(slot, kind)


@broken("M021")
class GapBeforeAccept(Provider):
    async def accept(self, call: Call) -> pb.TransitionAck:
        await asyncio.sleep(0.01)
        return await super().accept(call)


@broken("M022")
class RepeatStartsAgain(Provider):
    def repeat(self, call: Call) -> pb.TransitionAck | None:
        slot = call.known
        if slot.record.state != POSITION[call.kind][2] or call.kind not in slot.operations:
            return super().repeat(call)
        operation = slot.operations[call.kind]
        slot.running = f"{call.kind}|{operation}"
        slot.record.state = self.by_way_of(call.kind)  # type: ignore[assignment]
        self.changed(slot)
        self.begin_work(slot, call.kind, operation, 60.0)
        return self.ack(slot, operation)


@broken("M023")
class RepeatShowsFirstSnapshot(Provider):
    def ack(self, slot: Slot, operation: str) -> pb.TransitionAck:
        return self.snapshots.setdefault(operation, super().ack(slot, operation))

    @property
    def snapshots(self) -> dict[str, pb.TransitionAck]:
        return self.__dict__.setdefault("_snapshots", {})  # type: ignore[no-any-return]


@broken("M024")
class RepeatRewritesBinding(Provider):
    def repeat(self, call: Call) -> pb.TransitionAck | None:
        answer = super().repeat(call)
        if answer is None or not isinstance(call.request, pb.ConfigureRequest):
            return answer
        self.bind(call.known, call.request)
        self.changed(call.known)
        return self.ack(call.known, answer.operation_id)


@broken("M025")
class RepeatWorksTwice(Provider):
    def repeat(self, call: Call) -> pb.TransitionAck | None:
        answer = super().repeat(call)
        if answer is not None and call.known.record.state == POSITION[call.kind][1]:
            self.spawn(self.again(call.known, call.kind))
        return answer

    async def again(self, slot: Slot, kind: str) -> None:
        await asyncio.sleep(self.config.slow_s + 0.1)
        if kind == "create":
            slot.record.host.ref = f"{slot.record.host.ref}-again"
            slot.record.state = pb.MACHINE_STATE_IDLE
            self.changed(slot)


@broken("M026")
class DrainDuringConfiguring(Provider):
    def position(self, call: Call) -> pb.TransitionAck | None:
        if call.kind == "drain" and call.known.record.state == CONFIGURING:
            return None
        return super().position(call)


@broken("M027")
class PositionSaysFenced(Provider):
    def position(self, call: Call) -> pb.TransitionAck | None:
        try:
            return super().position(call)
        except RefusedError as refusal:
            raise RefusedError(Code.FAILED_PRECONDITION, str(refusal)) from None


@broken("M028")
class UnknownIsInternal(Provider):
    def find(self, call: Call) -> pb.TransitionAck | None:
        try:
            return super().find(call)
        except RefusedError as refusal:
            raise RefusedError(Code.INTERNAL, str(refusal)) from None

    async def get(self, id: str) -> pb.Machine:
        try:
            return await super().get(id)
        except RefusedError as refusal:
            code = Code.INTERNAL if id else refusal.code
            raise RefusedError(code, str(refusal)) from None


@broken("M029")
class EmptyIsNotFound(Provider):
    def validate(self, call: Call) -> pb.TransitionAck | None:
        if not call.request.machine_id:
            raise RefusedError(Code.NOT_FOUND, "no such machine")
        return super().validate(call)


@broken("M030")
class EmptyDeleteIsFenced(Provider):
    def validate(self, call: Call) -> pb.TransitionAck | None:
        if call.kind == "delete" and not call.request.machine_id:
            raise RefusedError(Code.FAILED_PRECONDITION, "nothing to delete")
        return super().validate(call)


@broken("M031")
class UnknownStatesShowEverything(Provider):
    def check_filter(self, request: pb.ListFilter) -> None:
        return None

    def states(self, request: pb.ListFilter) -> set[int]:
        return super().states(request) & set(pb.MachineState.values())


@broken("M032")
class DeleteUnimplemented(Provider):
    def offered(self, call: Call) -> pb.TransitionAck | None:
        if call.kind == "delete":
            raise RefusedError(Code.UNIMPLEMENTED, "not offered")
        return None


class AlsoLegalFrom(Provider):
    """One more state from which one mutation starts."""

    kind = ""
    state = 0

    def position(self, call: Call) -> pb.TransitionAck | None:
        if call.kind == self.kind and call.known.record.state == self.state:
            return None
        return super().position(call)


@broken("M033")
class CreateFromConfigured(AlsoLegalFrom):
    kind, state = "create", CONFIGURED


@broken("M034")
class DeleteFromConfigured(AlsoLegalFrom):
    kind, state = "delete", CONFIGURED


@broken("M035")
class ConfigureFromSpeculative(AlsoLegalFrom):
    kind, state = "configure", SPECULATIVE


@broken("M126")
class DeleteIdNotFresh(Provider):
    deletes: ClassVar[dict[str, str]] = {}

    def new_operation(self, slot: Slot, kind: str) -> str:
        operation = super().new_operation(slot, kind)
        return self.deletes.setdefault(slot.record.id, operation) if kind == "delete" else operation
