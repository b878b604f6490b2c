"""What went wrong, how long to keep off it, and what the next decision must know of it.

Memories, none of which does anything by itself: how long a machine is left alone after an action on
it failed, how long a provider that throttles gets no new Creates, which Creates fail again and
again (`providers.create_streaks`), and the events that are folded into the carry of the next cycle
(offerings that are out, clusters that cannot bootstrap, how long drains take). Waits double with
every failure in a row, are spread by chance, and start over after a success.

| Create failed | its machine waits | beside that |
| --- | --- | --- |
| out_of_capacity | 30 s to 10 min | the offering cools, so the next cycle takes another |
| quota | 60 s to 15 min | the offering cools |
| bad_request | 5 min to 1 h | the offering cools: its other slots would fail alike |
| throttled | 5 s to 2 min | no Create at that provider for 2 s to 1 min |
| unavailable | 5 s to 5 min | - |
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final

from bigfleet.decision import ActionKind, Carry
from bigfleet.model import Machine
from bigfleet.model.columns import Offering
from bigfleet.observe.process import Clock
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.providers.create_failures import CreateFailure
from bigfleet.shard.providers.create_streaks import CreateStreaks, Trouble

F = CreateFailure


@dataclass(frozen=True, slots=True)
class Wait:
    """The first wait after a failure and the longest, in seconds."""

    first: float
    most: float


ACTION_WAIT: Final = Wait(5.0, 300.0)
THROTTLE_WAIT: Final = Wait(2.0, 60.0)
MACHINE_WAITS: Final = {
    F.OUT_OF_CAPACITY: Wait(30.0, 600.0),
    F.QUOTA: Wait(60.0, 900.0),
    F.BAD_REQUEST: Wait(300.0, 3600.0),
    F.THROTTLED: Wait(5.0, 120.0),
    F.UNAVAILABLE: ACTION_WAIT,
}
COOLS_OFFERING: Final = frozenset({F.OUT_OF_CAPACITY, F.QUOTA, F.BAD_REQUEST})

_SPREAD: Final = 0.2
_SWEEP_ABOVE: Final = 1024


class BackOffs:
    """Waits by key, doubling while failures follow each other."""

    def __init__(self, monotonic: Callable[[], float], chance: random.Random) -> None:
        self._monotonic = monotonic
        self._chance = chance
        self._waits: dict[Hashable, tuple[float, float, float]] = {}
        """Key -> until when, the wait before it was spread, when the doubling is forgotten."""
        self._sweep_at = _SWEEP_ABOVE

    def failed(self, key: Hashable, wait: Wait) -> float:
        """Keep off the key; for how long."""
        now = self._monotonic()
        known = self._waits.get(key)
        length = wait.first if known is None else min(2 * known[1], max(wait.most, wait.first))
        spread = length * (1 + _SPREAD * (2 * self._chance.random() - 1))
        self._waits[key] = (now + spread, length, now + spread + wait.most)
        self._sweep(now)
        return spread

    def succeeded(self, key: Hashable) -> None:
        """The next failure starts with the first wait."""
        self._waits.pop(key, None)

    def waiting(self, key: Hashable) -> bool:
        """Whether to keep off the key."""
        known = self._waits.get(key)
        return known is not None and self._monotonic() < known[0]

    def kept_off(self) -> list[Hashable]:
        """What to keep off now."""
        now = self._monotonic()
        return [key for key, (until, _, _) in self._waits.items() if now < until]

    def _sweep(self, now: float) -> None:
        if len(self._waits) > self._sweep_at:
            self._waits = {key: w for key, w in self._waits.items() if now < w[2]}
            self._sweep_at = max(_SWEEP_ABOVE, 2 * len(self._waits))


@dataclass(frozen=True, slots=True)
class StockOut:
    """Creates of an offering fail."""

    offering: Offering
    at_ns: int

    def into(self, carry: Carry) -> Carry:
        """Many Creates of one cycle fail together; that is one stock-out, not a row of them."""
        known = carry.stock_outs.get(self.offering)
        if known is not None and known.holds(self.at_ns):
            return carry
        return carry.with_stock_out(self.offering, self.at_ns)


@dataclass(frozen=True, slots=True)
class Stock:
    """A Create of an offering that was out succeeded."""

    offering: Offering
    at_ns: int

    def into(self, carry: Carry) -> Carry:
        """While it cools none is begun: a success then is older than the failure."""
        known = carry.stock_outs.get(self.offering)
        if known is None or known.holds(self.at_ns):
            return carry
        return carry.with_stock(self.offering)


@dataclass(frozen=True, slots=True)
class BootstrapFailed:
    """A cluster did not deliver bootstrap data."""

    cluster: str
    at_ns: int

    def into(self, carry: Carry) -> Carry:
        """As with stock-outs, what fails together counts once."""
        known = carry.bootstraps.get(self.cluster)
        if known is not None and known.holds(self.at_ns):
            return carry
        return carry.with_bootstrap_failure(self.cluster, self.at_ns)


@dataclass(frozen=True, slots=True)
class BootstrapEnded:
    """A cluster that had failed delivered."""

    cluster: str

    def into(self, carry: Carry) -> Carry:
        """It may be served again."""
        return carry.with_bootstrap(self.cluster)


@dataclass(frozen=True, slots=True)
class DrainEnded:
    """A machine was emptied and is Idle, so long after it was told to leave."""

    offering: Offering
    seconds: float

    def into(self, carry: Carry) -> Carry:
        """Victims are chosen by it."""
        return carry.with_drain(self.offering, self.seconds)


Event = StockOut | Stock | BootstrapFailed | BootstrapEnded | DrainEnded


def remembered(carry: Carry, events: Iterable[Event]) -> Carry:
    """The carry with what happened since it was made, in the order it happened."""
    for event in events:
        carry = event.into(carry)
    return carry


def offering_of(machine: Machine) -> Offering:
    return (machine.provider, machine.instance_type, machine.zone, machine.capacity_type)


class BackoffTable:
    """The memory of one shard."""

    def __init__(self, clock: Clock, chance: random.Random) -> None:
        self._clock = clock
        self._machines = BackOffs(clock.monotonic, chance)
        self._throttling = BackOffs(clock.monotonic, chance)
        self._failing = CreateStreaks(clock.monotonic)
        self._events: list[Event] = []
        self._out: set[Offering] = set()
        self._mute: set[str] = set()

    def keep_off(self, order: Order) -> bool:
        """Whether it is too early for this order."""
        return self._machines.waiting(order.machine) or (
            order.kind is ActionKind.PROVISION and self._throttling.waiting(order.provider)
        )

    def waiting(self) -> frozenset[str]:
        """Machines that are left alone now."""
        return frozenset(str(key) for key in self._machines.kept_off())

    def trouble(self) -> Trouble:
        """Which Creates fail, for those who explain a cycle."""
        return self._failing.trouble(str(key) for key in self._throttling.kept_off())

    def take_events(self) -> list[Event]:
        """What happened since the last call."""
        events, self._events = self._events, []
        return events

    def action_failed(self, machine_id: str) -> float:
        """Leave a machine alone; for how many seconds."""
        return self._machines.failed(machine_id, ACTION_WAIT)

    def action_succeeded(self, machine_id: str) -> None:
        """Its next failure is its first."""
        self._machines.succeeded(machine_id)

    def create_begun(self, machine: Machine) -> None:
        """A Create is about to be sent."""
        self._failing.begun(machine.id, offering_of(machine))

    def create_failed(self, machine: Machine, failure: CreateFailure, text: str) -> None:
        """A Create was refused, or ended in Failed."""
        offering = offering_of(machine)
        self._machines.failed(machine.id, MACHINE_WAITS[failure])
        self._failing.failed(machine.id, offering, failure, text)
        if failure is F.THROTTLED:
            self._throttling.failed(machine.provider, THROTTLE_WAIT)
        if failure in COOLS_OFFERING:
            self._out.add(offering)
            self._events.append(StockOut(offering, self._clock.now()))

    def created(self, machine: Machine) -> None:
        """A Create ended in Idle."""
        self._machines.succeeded(machine.id)
        self._throttling.succeeded(machine.provider)
        offering = offering_of(machine)
        self._failing.created(machine.id, offering)
        if offering in self._out:
            self._events.append(Stock(offering, self._clock.now()))

    def bootstrap_failed(self, cluster: str) -> None:
        """No session, no blob in time, or an error for an answer."""
        self._mute.add(cluster)
        self._events.append(BootstrapFailed(cluster, self._clock.now()))

    def bootstrapped(self, cluster: str) -> None:
        """A blob came."""
        if cluster in self._mute:
            self._mute.discard(cluster)
            self._events.append(BootstrapEnded(cluster))

    def drained(self, machine: Machine, seconds: float) -> None:
        """A machine left its cluster in so many seconds."""
        self._events.append(DrainEnded(offering_of(machine), seconds))
