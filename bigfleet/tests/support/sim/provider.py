"""A provider as a model: the truth about machines that every invariant is compared with.

It keeps the contract (order of checks, fences per shard and machine, idempotency per kind, cursors
without tombstones) and lets everything a contract allows go wrong: no stock, throttling, creates
that end half done, hosts that die, restarts in the middle, lists that are short or carry garbage.
How calls reach it is told in `calls`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol

import grpc

from bigfleet.provider.transport import CallError
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from sim.network import NOWHERE
from sim.slots import FIXED, KIND_OF, WAYS, Kind, S, Slot
from sim.trace import Trace

Request = pb.CreateRequest | pb.ConfigureRequest | pb.DrainRequest | pb.DeleteRequest
Code = grpc.StatusCode
BOUND: Final = frozenset({S.CONFIGURING, S.CONFIGURED, S.DRAINING})
TRANSITION_SECONDS: Final = 300.0
"""No transition takes longer: it fails."""


class Watch(Protocol):
    """Who looks at what a provider does."""

    def accepted(self, provider: ModelProvider, slot: Slot, kind: Kind, request: Request) -> None:
        """A mutation is about to change a slot."""
        ...

    def refused(self, provider: ModelProvider, slot: Slot, kind: Kind, request: Request) -> None:
        """A mutation came in the wrong state."""
        ...

    def changed(self, provider: ModelProvider, slot: Slot) -> None:
        """A slot changed, by itself or not."""
        ...


@dataclass
class Habits:
    """How a provider behaves; the fault plan changes it."""

    seconds: dict[Kind, tuple[float, float]] = field(
        default_factory=lambda: {
            Kind.CREATE: (1.0, 20.0),
            Kind.CONFIGURE: (1.0, 15.0),
            Kind.DRAIN: (0.5, 10.0),
            Kind.DELETE: (0.5, 10.0),
        }
    )
    instant: float = 0.0
    """Share of transitions that end at once."""
    failing: dict[Kind, float] = field(default_factory=dict)
    """Share of transitions that end in Failed."""
    refused_create: str = ""
    """The class word with which every Create fails, as in `QuotaExceeded`."""
    out_of_stock: set[object] = field(default_factory=set)
    heal_seconds: float = 90.0
    listed: float = 1.0
    """Share of the machines that a full List shows."""
    garbage: str = ""
    """What is wrong with a record of each List: `price`, `state`, `host`, or nothing."""


class ModelProvider:
    """One provider, its slots and its marks."""

    def __init__(self, name: str, slots: Iterable[Slot], rng: Random, trace: Trace) -> None:
        self.name = name
        self.rng = rng
        self.trace = trace
        self.habits = Habits()
        self.watch: Watch | None = None
        self.up = True
        self.slots: dict[str, Slot] = {}
        """In the order of their last change."""
        self.operations = 0
        self._marks: dict[tuple[str, str], tuple[int, int]] = {}
        self._revision = 0
        for slot in slots:
            self._changed(slot)

    # -- the six calls ---------------------------------------------------------------------------

    def mutate(self, kind: Kind, request: Request) -> pb.TransitionAck:
        """One of the four mutations; one step, as a real provider's."""
        slot = self._admitted(kind, request)
        way = WAYS[kind]
        known = slot.operations.get(kind)
        if known is not None and slot.state in (way.via, way.end):
            return pb.TransitionAck(operation_id=known, machine=slot.record(self.name))
        if slot.state is not way.start:
            if self.watch is not None:
                self.watch.refused(self, slot, kind, request)
            text = f"{kind.lower()} is not possible in state {slot.state.title}"
            raise CallError(Code.INTERNAL, text)
        if self.watch is not None:
            self.watch.accepted(self, slot, kind, request)
        self._accept(slot, kind, request)
        return pb.TransitionAck(operation_id=slot.operations[kind], machine=slot.record(self.name))

    def get(self, request: pb.MachineRef) -> pb.Machine:
        """One machine."""
        if request.id not in self.slots:
            raise CallError(Code.NOT_FOUND, f"machine {request.id!r} is unknown")
        return self.slots[request.id].record(self.name)

    def listing(self, request: pb.ListFilter) -> pb.MachineList:
        """Machines in the order of their last change, from a cursor on."""
        since = self._since(request.since_revision)
        found = [slot for slot in self.slots.values() if slot.revision > since]
        if since == 0 and self.habits.listed < 1.0:
            found = [slot for slot in found if self._is_listed(slot)]
        if request.states:
            found = [slot for slot in found if int(slot.state) in request.states]
        head = self._revision
        if 0 < request.max_results < len(found):
            found = found[: request.max_results]
            head = found[-1].revision
        records = [slot.record(self.name) for slot in found]
        self._spoil(records)
        return pb.MachineList(machines=records, revision=f"v1.{self.name}.{head}".encode())

    def _since(self, cursor: bytes) -> int:
        prefix, _, number = cursor.decode("ascii", "replace").rpartition(".")
        if prefix != f"v1.{self.name}" or not number.isdecimal() or int(number) > self._revision:
            return 0
        return int(number)

    def _is_listed(self, slot: Slot) -> bool:
        # The same machines are missing every time, as when an account's page is.
        return sum(slot.id.encode()) % 100 < self.habits.listed * 100

    def _spoil(self, records: list[pb.Machine]) -> None:
        if not records or not self.habits.garbage:
            return
        record = records[self.rng.randrange(len(records))]
        if self.habits.garbage == "price":
            record.price_per_hour = float("nan")
        elif self.habits.garbage == "host":
            record.ClearField("host")
        else:
            record.state = pb.MachineState.ValueType(99)

    def _admitted(self, kind: Kind, request: Request) -> Slot:
        if not request.machine_id:
            raise CallError(Code.INVALID_ARGUMENT, "machine_id is empty")
        if kind is Kind.DELETE and self._is_fixed(request.machine_id):
            raise CallError(Code.UNIMPLEMENTED, "these hosts are not given back")
        mark = (request.shard_id, request.machine_id)
        token = (request.shard_epoch, request.sequence_number)
        if token <= self._marks.get(mark, (-1, -1)):
            self.trace.note(self.name, f"fenced {kind} {request.machine_id} {token}")
            raise CallError(Code.FAILED_PRECONDITION, f"token {token} is not newer than the mark")
        self._marks[mark] = token
        if request.machine_id not in self.slots:
            raise CallError(Code.NOT_FOUND, f"machine {request.machine_id!r} is unknown")
        return self.slots[request.machine_id]

    def _is_fixed(self, machine_id: str) -> bool:
        slot = self.slots.get(machine_id)
        return slot is not None and slot.offer.capacity_type in FIXED

    # -- transitions -----------------------------------------------------------------------------

    def _accept(self, slot: Slot, kind: Kind, request: Request) -> None:
        self.operations += 1
        slot.operations[kind] = f"{self.name}-{self.operations}"
        slot.state = WAYS[kind].via
        slot.owner = request.shard_id
        if isinstance(request, pb.ConfigureRequest):
            slot.cluster = request.cluster_id
            slot.metadata = dict(request.shard_metadata)
        self._changed(slot)
        self._begin(slot, kind)

    def _begin(self, slot: Slot, kind: Kind) -> None:
        """Start the work of a transition, or start it again."""
        slot.round += 1
        error = self._outcome(slot, kind)
        least, most = self.habits.seconds[kind]
        seconds = self.rng.uniform(least, most)
        if error.startswith("Timeout"):
            seconds = self.rng.uniform(most, TRANSITION_SECONDS)
        if not error and self.rng.random() < self.habits.instant:
            self._finish(slot, slot.round, kind, "")
            return
        number = slot.round
        self._later(seconds, lambda: self._finish(slot, number, kind, error))

    def _outcome(self, slot: Slot, kind: Kind) -> str:
        habits = self.habits
        if kind is Kind.CREATE:
            if slot.offer.pool in habits.out_of_stock:
                return f"OutOfCapacity: no {slot.offer.instance_type} in {slot.offer.zone}"
            if habits.refused_create:
                return f"{habits.refused_create}: the account refuses"
        if self.rng.random() < habits.failing.get(kind, 0.0):
            words = ("Timeout", "Unavailable", "Throttled", "NotReady", "InvalidRequest", "Bogus")
            return f"{self.rng.choice(words)}: {kind.lower()} did not end well"
        return ""

    def _finish(self, slot: Slot, number: int, kind: Kind, error: str) -> None:
        if slot.round != number or slot.id not in self.slots:
            return
        if error:
            if kind is Kind.CREATE and error.startswith("Timeout"):
                # Half done: there is a host, and no caller was told.
                slot.host = self._host(slot)
            self._fail(slot, error)
            return
        slot.state = WAYS[kind].end
        if kind is Kind.CREATE:
            slot.host = self._host(slot)
        elif kind is Kind.DRAIN:
            slot.cluster, slot.metadata = "", {}
        elif kind is Kind.DELETE:
            slot.host, slot.ends_ns = "", 0
            slot.operations = {Kind.DELETE: slot.operations[Kind.DELETE]}
        self._changed(slot)

    def _host(self, slot: Slot) -> str:
        return f"host-{slot.id}-{slot.round}"

    def _fail(self, slot: Slot, error: str) -> None:
        slot.state, slot.last_error = S.FAILED, error
        slot.round += 1
        number = slot.round
        early = error.startswith(("OutOfCapacity", "QuotaExceeded"))
        seconds = min(30.0, self.habits.heal_seconds) if early else self.habits.heal_seconds
        self._changed(slot)
        self._later(seconds, lambda: self._heal(slot, number))

    def _heal(self, slot: Slot, number: int) -> None:
        if slot.round != number or slot.id not in self.slots:
            return
        slot.round += 1
        fixed = slot.offer.capacity_type in FIXED
        slot.state = S.IDLE if fixed else S.SPECULATIVE
        slot.host = self._host(slot) if fixed else ""
        slot.cluster, slot.metadata, slot.last_error, slot.ends_ns = "", {}, "", 0
        slot.operations = {}
        self._changed(slot)

    def _changed(self, slot: Slot) -> None:
        self._revision += 1
        slot.revision = self._revision
        self.slots.pop(slot.id, None)
        self.slots[slot.id] = slot
        slot.changed_at = _now()
        told = f"{slot.id} {slot.state.title} {slot.cluster} {slot.last_error}"
        self.trace.note(self.name, told)
        if self.watch is not None:
            self.watch.changed(self, slot)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, action, context=NOWHERE)

    # -- what happens to it ----------------------------------------------------------------------

    def lose_host(self, slot: Slot, word: str = "HostLost") -> None:
        """A host dies."""
        if slot.state not in (S.SPECULATIVE, S.CREATING, S.FAILED):
            self._fail(slot, f"{word}: {slot.host} is gone")

    def announce_end(self, slot: Slot, at_ns: int, seconds: float) -> None:
        """A spot host will be taken away."""
        if slot.state in (S.SPECULATIVE, S.CREATING, S.FAILED) or slot.ends_ns:
            return
        slot.ends_ns = at_ns
        host = slot.host
        self._changed(slot)
        self._later(seconds, lambda: self.lose_host(slot) if slot.host == host else None)

    def reprice(self, slot: Slot, price: float) -> None:
        """A price moves."""
        slot.price = price
        self._changed(slot)

    def retire(self, slot: Slot) -> None:
        """A slot leaves the offerings for good."""
        del self.slots[slot.id]
        self.trace.note(self.name, f"{slot.id} retired")

    def stop(self) -> None:
        """The process is gone; what is acknowledged is in its store."""
        self.up = False
        self.trace.note(self.name, "stops")
        for slot in self.slots.values():
            if slot.state in KIND_OF:
                slot.round += 1

    def start(self) -> None:
        """It comes back and goes on with what was under way."""
        self.up = True
        self.trace.note(self.name, "starts")
        for slot in list(self.slots.values()):
            kind = KIND_OF.get(slot.state)
            if kind is Kind.CONFIGURE and self.rng.random() < 0.3:
                self._fail(slot, "Interrupted: configure was running when the provider stopped")
            elif kind is not None:
                self._begin(slot, kind)


def _now() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0
