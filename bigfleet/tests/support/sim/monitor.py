"""What must hold at every step, checked where it would go wrong.

    S1  a machine is bound to one cluster; no shard binds what is bound
    S2  one mutation at a time is in flight for a machine
    S3  every order starts in the state its kind needs; the book claims no binding that never was
    S4  no mutation with an older token takes effect
    S5  no Reclaim and no Delete at the cost of a cluster that has not reported to this process;
        no Reclaim and no Preempt before every provider was heard
    S6  reclaims per cluster and window stay within the cap
    S7  nothing is reclaimed while no roll-up asked for less and nothing went wrong, and no drain is
        ordered and called off again and again
    S8  victims of a preemption have a lower priority than what they are taken for
    S13 what is sent to a provider was ordered, and bootstrap data is the one for this machine

It listens; it never changes anything. Facts it needs about a shard come with the shard's handle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from bigfleet.decision import ActionKind
from bigfleet.decision.policy import VOLUNTARY_GRACE_SECONDS
from bigfleet.model import Machine, MachineState, Stamp
from bigfleet.shard.machines.orders import STARTS_IN, Order
from bigfleet.shard.providers.lister import FULL
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from sim.handle import ShardHandle
from sim.process import Process
from sim.provider import ModelProvider, Request
from sim.slots import FIXED, Kind, Slot
from sim.trace import Trace

S = MachineState
A = ActionKind
WINDOW: Final = 10.0
CAP: Final = 0.05
DECIDING: Final = 1.0
"""Seconds a decision may take: what has left since counted for it."""
KNOWN_AFTER: Final = 60.0
"""Seconds after which a shard has seen what a provider says, when nothing is in the way."""
FOR_ANOTHER_SHARD: Final = "another shard needs it"
FLAPPING: Final = 10
FLAPPING_SECONDS: Final = 60.0
"""A drain that is ordered and called off more often than this is not a decision."""
_ACQUIRING: Final = frozenset({A.BOOTSTRAP, A.PROVISION})
_ORDERED_BY: Final = {
    Kind.CREATE: frozenset({A.PROVISION}),
    Kind.CONFIGURE: frozenset({A.BOOTSTRAP}),
    Kind.DRAIN: frozenset({A.RECLAIM, A.PREEMPT}),
    Kind.DELETE: frozenset({A.DELETE}),
}


class Monitor:
    """The eyes of a run."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._marks: dict[tuple[str, str], tuple[int, int]] = {}
        self._bound_once: dict[str, set[str]] = {}
        self._in_flight: set[tuple[int, str]] = set()
        self._sent: dict[tuple[str, int, int], tuple[int, str]] = {}
        """By its token, which call a mutation came with."""
        self._ordered: dict[str, dict[ActionKind, str]] = {}
        """Machine -> kind of its latest orders -> cluster."""
        self._bootstraps: dict[tuple[int, str], str] = {}
        """For which cluster a process ordered a machine: a zombie may want it for another one."""
        self._zombies: set[int] = set()
        self._reclaims: dict[str, deque[tuple[float, int]]] = {}
        self._left: dict[str, deque[float]] = {}
        """Cluster -> when machines ceased to be Configured for it, of late."""
        self._keeps: dict[str, deque[float]] = {}
        self._excuses: dict[str, float] = {}
        """Cluster -> when last something happened that may leave it with too much."""
        self._lies_until = 0.0
        """Until every List that was made in good faith has come."""
        self.counts: dict[str, int] = {}
        self.ordered_count = 0
        """Orders that are not releases."""
        self.last_order_at = 0.0
        """When something was last ordered that is not a release, or might yet be."""
        self.calm_since: float | None = None
        """Since when nothing goes wrong; from then on no party has an excuse."""

    # -- what clusters and faults do -------------------------------------------------------------

    def excuse(self, cluster: str, now: float) -> None:
        """A cluster asks for less, or lost something that may come back."""
        self._excuses[cluster] = now

    def replaced(self, process: Process) -> None:
        """Another life of its shard begins; when it wakes up, both acquire what is missing."""
        self._zombies.add(id(process))

    def lied_to(self, until: float) -> None:
        """A provider leaves machines out of its Lists, or makes a mess of them."""
        self._lies_until = max(self._lies_until, until + FULL)

    # -- what shards decide ----------------------------------------------------------------------

    def ordered(self, shard: ShardHandle, orders: Sequence[Order], now: float) -> None:
        """A shard has taken orders; the book shows the machines as they were before."""
        for order in orders:
            machine = shard.book.get(order.machine)
            told = f"{order.kind.title} {order.machine} {order.cluster} {order.reason}"
            self._trace.note(shard.process.name, f"orders {told}")
            self.counts[order.kind.title] = self.counts.get(order.kind.title, 0) + 1
            if order.kind is not A.DELETE:
                self.last_order_at = now
                self.ordered_count += 1
            if machine is None or machine.state is not STARTS_IN[order.kind]:
                state = "unknown" if machine is None else machine.state.title
                self._trace.broken("S3", f"{told} although the machine is {state}")
                return
            self._note_order(shard.process, order)
            if (shard.partial() or now < self._lies_until) and order.kind in _ACQUIRING:
                # What it has not heard of yet makes some of this too much, later.
                self.excuse(order.cluster, now)
            if (robbed := _robbed_gang(order, machine)) is not None:
                # It may have to move, and leaves behind what it has.
                self.excuse(robbed.cluster, now)
            self._check_order(shard, order, machine, now, told)

    def _note_order(self, process: Process, order: Order) -> None:
        known = self._ordered.setdefault(order.machine, {})
        known[order.kind] = order.cluster
        if order.kind is A.BOOTSTRAP:
            self._bootstraps[id(process), order.machine] = order.cluster
        if order.kind is A.KEEP and id(process) not in self._zombies:
            # What a zombie calls off, the life that replaced it may still carry out.
            known.pop(A.RECLAIM, None)
            known.pop(A.PREEMPT, None)

    def _check_order(
        self, shard: ShardHandle, order: Order, machine: Machine, now: float, told: str
    ) -> None:
        if order.reason.startswith(FOR_ANOTHER_SHARD):
            self._check_given(order, machine, now, told)
            return
        takes = order.kind is A.PREEMPT or (order.kind is A.RECLAIM and not order.is_ending)
        if takes and shard.partial():
            self._trace.broken("S5", f"{told} before every provider was heard")
        # A host that is about to be taken away is drained for its pods' sake.
        if order.kind is A.RECLAIM and not machine.interruption_at_ns:
            if not shard.reported(order.cluster):
                self._trace.broken("S5", f"{told} before the cluster's first roll-up")
            if order.cluster not in self._excuses:
                self._trace.broken("S7", f"{told} although its cluster never asked for less")
        if order.kind is A.DELETE:
            if machine.capacity_type in FIXED:
                self._trace.broken("S5", f"{told}: fixed capacity is never given back")
            if machine.stamp is not None and not shard.reported(machine.stamp.cluster):
                self._trace.broken("S5", f"{told}: kept for a cluster that has not reported")
        voluntary = order.grace_seconds >= VOLUNTARY_GRACE_SECONDS
        if order.kind is A.PREEMPT and not voluntary and machine.stamp is not None:
            # It may have been claimed by a lower need of its cluster than it is stamped for.
            rows = shard.priorities(order.cluster)
            priority = min((machine.stamp.priority, *rows))
            if priority >= order.priority:
                self._trace.broken("S8", f"{told}: priority {priority} for {order.priority}")
        if order.kind is A.KEEP:
            self._check_flapping(order, now, told)
        if order.kind is A.RECLAIM:
            self._check_cap(shard, order, now, told)

    def _check_given(self, order: Order, machine: Machine, now: float, told: str) -> None:
        """Drained because a coordinator asked for it, on behalf of a higher need elsewhere."""
        self.excuse(order.cluster, now)
        if machine.stamp is None or machine.stamp.priority >= order.priority:
            self._trace.broken("S8", f"{told}: it serves {machine.stamp}")

    def _check_flapping(self, order: Order, now: float, told: str) -> None:
        window = self._keeps.setdefault(order.machine, deque())
        while window and window[0] <= now - FLAPPING_SECONDS:
            window.popleft()
        window.append(now)
        if len(window) > FLAPPING:
            self._trace.broken("S7", f"{told}: the {len(window)}th time in {FLAPPING_SECONDS:g} s")

    def _check_cap(self, shard: ShardHandle, order: Order, now: float, told: str) -> None:
        window = self._reclaims.setdefault(f"{shard.process.name} {order.cluster}", deque())
        while window and window[0][0] <= now - WINDOW:
            window.popleft()
        left = self._left.get(order.cluster, ())
        counted = shard.configured(order.cluster) + sum(at > now - DECIDING for at in left)
        window.append((now, counted))
        cap = max(1, *(int(CAP * configured) for _, configured in window))
        if len(window) > cap:
            self._trace.broken("S6", f"{told}: {len(window)} in {WINDOW:g} s, cap {cap}")

    def book_changed(
        self, shard: ShardHandle, before: Machine | None, after: Machine | None
    ) -> None:
        """A shard's view of a machine changed."""
        told = "gone" if after is None else f"{after.state.title} {after.cluster}"
        known = after or before
        if known is None:
            return
        self._trace.note(shard.process.name, f"knows {known.id} {told}")
        if after is None or after.state is not S.CONFIGURED:
            if before is not None and before.state is S.CONFIGURED:
                self._left.setdefault(before.cluster, deque(maxlen=100)).append(self._trace.now())
            return
        if before is None:
            # A machine that serves and was not known of: orders may follow from that.
            self.last_order_at = self._trace.now()
        if not after.cluster or after.cluster not in self._bound_once.get(after.id, ()):
            self._trace.broken("S3", f"{after.id} is Configured for {after.cluster!r}: never was")

    # -- what shards send ------------------------------------------------------------------------

    def sends(self, process: Process, kind: Kind, request: Request) -> None:
        """A mutation leaves a shard."""
        flight = (id(process), request.machine_id)
        told = f"{kind} {request.machine_id} by {process.name}"
        if flight in self._in_flight:
            self._trace.broken("S2", f"{told} while another call for it is open")
        self._in_flight.add(flight)
        self._sent[_token(request)] = flight
        known = self._ordered.get(request.machine_id, {})
        if not _ORDERED_BY[kind] & known.keys():
            self._trace.broken("S13", f"{told}: no shard ordered it")
        if isinstance(request, pb.ConfigureRequest):
            blob = f"join {request.cluster_id} {request.machine_id}".encode()
            if id(process) in self._zombies:
                self.excuse(request.cluster_id, self._trace.now())
            cluster = self._bootstraps.get(flight, known.get(A.BOOTSTRAP))
            if cluster != request.cluster_id:
                self._trace.broken("S13", f"{told}: ordered for {cluster}")
            if request.bootstrap_blob != blob:
                self._trace.broken("S13", f"{told}: bootstrap data {request.bootstrap_blob!r}")

    def answered(self, process: Process, machine_id: str) -> None:
        """The call is over for the shard, however it ended."""
        self._in_flight.discard((id(process), machine_id))

    # -- what providers do -----------------------------------------------------------------------

    def accepted(self, provider: ModelProvider, slot: Slot, kind: Kind, request: Request) -> None:
        """A mutation is about to change a slot."""
        told = f"{kind} {slot.id} by {request.shard_id} {request.shard_epoch}"
        self._trace.note(provider.name, f"accepts {told}")
        token = (request.shard_epoch, request.sequence_number)
        mark = (request.shard_id, slot.id)
        if token <= self._marks.get(mark, (-1, -1)):
            self._trace.broken("S4", f"{told}: token {token} took effect after {self._marks[mark]}")
        self._marks[mark] = token
        is_late = self._sent.get(_token(request)) not in self._in_flight
        if isinstance(request, pb.ConfigureRequest) and is_late:
            # No caller waits for it any more: what was bound instead of it is too much now.
            self.excuse(request.cluster_id, self._trace.now())
        if isinstance(request, pb.ConfigureRequest) and slot.cluster:
            self._trace.broken("S1", f"{told} for {request.cluster_id}: bound to {slot.cluster}")

    def refused(self, provider: ModelProvider, slot: Slot, kind: Kind, request: Request) -> None:
        """A mutation came in the wrong state."""
        told = f"{kind} {slot.id} in {slot.state.title} since {slot.changed_at:.3f}"
        self._trace.note(provider.name, f"refuses {told}")
        now = self._trace.now()
        long_known = now - slot.changed_at > KNOWN_AFTER
        if self.calm_since is not None and now - self.calm_since > KNOWN_AFTER and long_known:
            self._trace.broken("S3", f"{told}: the shard could know that it is")

    def changed(self, provider: ModelProvider, slot: Slot) -> None:
        """A slot changed."""
        if slot.cluster:
            self._bound_once.setdefault(slot.id, set()).add(slot.cluster)
            if slot.state is S.FAILED:
                self.excuse(slot.cluster, slot.changed_at)


def _robbed_gang(order: Order, machine: Machine) -> Stamp | None:
    """The gang that has the machine, or waits for it, when it goes to a need before that gang."""
    old, new = machine.stamp, order.stamp
    if old is None or new is None or not old.group or new.key == old.key:
        return None
    return old if new.priority >= old.priority else None


def _token(request: Request) -> tuple[str, int, int]:
    return (request.shard_id, request.shard_epoch, request.sequence_number)
