"""Changes of machines, told to the clusters they concern.

A machine concerns the cluster it is bound to, or else the one it is stamped for. A change is told
to that cluster, and to the one it concerned before: as failed, or as withdrawn, also after a drain,
since of the frames in between some may have been superseded. A machine that failed and lost its
binding is shown as failed until its provider has healed it. What a cluster without a session misses
it is told by the replay, which reads each machine when its turn comes; farewells, which no replay
would show, are kept for it. One that was on its way when the shard died is not: a machine that a
cluster names as its own and is not is taken back whenever it is named. States on the way to a
cluster are told a moment later, if they last; of an order that still waits its turn, or for its
provider's answer, that is patient for longer.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Protocol

from bigfleet.model import Machine, MachineState
from bigfleet.model.lifecycle import INBOUND
from bigfleet.shard.operators.frames import gone, node_key, node_state, not_yours
from bigfleet_api.v1alpha1 import shard_pb2 as pb

S = MachineState
OnChange = Callable[[Machine | None, Machine | None], None]

_FAREWELLS: Final = 8192
"""Kept per cluster; the oldest go first."""
_UNBOUND: Final = frozenset({S.SPECULATIVE, S.CREATING, S.IDLE, S.DELETING})
MOMENT_SECONDS: Final = 0.25
"""A little more than the least gap between cycles: one is Idle that long between two orders."""
PATIENCE_SECONDS: Final = 5.0
"""How long the provider may take to answer before a cluster is told what was ordered."""
_SHOWN: Final = (
    "state", "cluster", "host", "instance_type", "zone", "labels", "resources", "allocatable",
    "last_error", "leaving",
)  # fmt: skip


class NodeSource(Protocol):
    """What is read of the shard's machines."""

    on_change: list[OnChange]

    def get(self, machine_id: str) -> Machine | None:
        """A machine as it is known now."""

    def bound(self, cluster: str) -> list[str]:
        """The machines bound to a cluster or stamped for it."""

    def busy(self, machine_id: str) -> bool:
        """Whether an action on a machine is queued or running."""


class Lines(Protocol):
    """The open sessions, as far as machines are told of."""

    def connected(self, cluster: str) -> bool:
        """Whether a cluster can be told something now."""

    def send(self, cluster: str, message: pb.ShardMessage, key: str = "") -> bool:
        """Queue a frame for a cluster; whether a session took it."""

    def feed(self, cluster: str, machine_id: str) -> None:
        """Tell a cluster of a machine when there is room, as it is then."""


def concerns(machine: Machine | None) -> str:
    """The cluster a machine is bound to or, where it is bound to none, meant for."""
    if machine is None:
        return ""
    # A provider may leave the last cluster on a record of an unbound machine.
    if machine.cluster and machine.state not in _UNBOUND:
        return machine.cluster
    return machine.stamp.cluster if machine.stamp else ""


class NodeUpdates:
    """Tells clusters of their machines."""

    def __init__(
        self,
        machines: NodeSource,
        node_name: Callable[[str], str],
        lines: Lines,
        moment_seconds: float = MOMENT_SECONDS,
        is_given_away: Callable[[str], bool] = lambda machine_id: False,
    ) -> None:
        """`is_given_away` says of a machine that is not there whether it is another shard's."""
        self._machines = machines
        self._node_name = node_name
        self._lines = lines
        self._moment = moment_seconds
        self._is_given_away = is_given_away
        self._failed: dict[str, str] = {}
        """Machines without a binding that a cluster sees as failed, and which cluster."""
        self._farewells: dict[str, OrderedDict[str, pb.NodeStateUpdate]] = {}
        self._soon: dict[str, dict[str, float]] = {}
        """Per cluster: machines it is told of in a moment, and since when they wait."""
        machines.on_change.append(self.changed)

    def changed(self, before: Machine | None, after: Machine | None) -> None:
        """A machine is not what it was."""
        was, now = concerns(before), concerns(after)
        self._end_failure(before, after, now)
        if before is not None and was and was != now:
            self._part(was, before, after)
        if after is not None and now:
            self._tell(now, was, before, after)

    def replay(self, cluster: str) -> list[str]:
        """The machines a cluster is told of when its session begins."""
        farewells = self._farewells.get(cluster) or ()
        failed = [machine for machine, whose in self._failed.items() if whose == cluster]
        return list(dict.fromkeys([*farewells, *failed, *self._machines.bound(cluster)]))

    def frame_now(self, cluster: str, machine_id: str) -> pb.ShardMessage | None:
        """What a cluster is told of a machine at this moment, if anything."""
        machine = self._machines.get(machine_id)
        farewell = self._take_farewell(cluster, machine_id)
        if machine is not None and self._is_shown(cluster, machine):
            return self._frame(machine, cluster)
        return None if farewell is None else pb.ShardMessage(node_state_update=farewell)

    def undelivered(self, cluster: str, frames: Iterable[pb.ShardMessage]) -> None:
        """A session ended with these frames unsent; farewells among them are still owed."""
        for frame in frames:
            update = frame.node_state_update
            if not update.withdrawn or update.machine_id in self._farewells.get(cluster, ()):
                # One that is kept already came after the session had ended.
                continue
            if not self._is_shown(cluster, self._machines.get(update.machine_id)):
                self._keep_farewell(cluster, update)

    def take_back(self, cluster: str, machine_ids: Iterable[str]) -> list[str]:
        """A cluster takes these for its own: those it is told it does not have.

        It is told no more than that: any id can be named, also of machines that were never the
        cluster's. Of a machine that is not there, nothing is said unless it was given away: it may
        come with the next List.
        """
        withdrawn = [
            machine_id for machine_id in machine_ids if self._is_foreign(cluster, machine_id)
        ]
        for machine_id in withdrawn:
            self._farewell(cluster, not_yours(machine_id, cluster))
        return withdrawn

    def forget(self, cluster: str) -> None:
        """A cluster is gone for good."""
        self._farewells.pop(cluster, None)
        for machine in [m for m, whose in self._failed.items() if whose == cluster]:
            del self._failed[machine]

    def _is_foreign(self, cluster: str, machine_id: str) -> bool:
        machine = self._machines.get(machine_id)
        if machine is None:
            return self._is_given_away(machine_id)
        return not self._is_shown(cluster, machine)

    def _is_shown(self, cluster: str, machine: Machine | None) -> bool:
        if machine is None:
            return False
        return cluster in (concerns(machine), self._failed.get(machine.id))

    def _frame(self, machine: Machine, cluster: str) -> pb.ShardMessage:
        name = self._node_name(machine.id) if machine.cluster == cluster else ""
        return pb.ShardMessage(node_state_update=node_state(machine, cluster, name))

    def _tell(self, cluster: str, was: str, before: Machine | None, after: Machine) -> None:
        if was != cluster:
            self._take_farewell(cluster, after.id)
        if not self._lines.connected(cluster):
            return
        if before is None:
            # All machines of a shard are seen for the first time at once.
            self._lines.feed(cluster, after.id)
        elif was != cluster or _shows(before, after):
            if after.state in INBOUND and self._later(cluster, after.id):
                return
            self._soon.get(cluster, {}).pop(after.id, None)
            self._lines.send(cluster, self._frame(after, cluster), node_key(after.id))

    def _later(self, cluster: str, machine_id: str) -> bool:
        """Tell of a machine in a moment, as it is then; False where nothing keeps the time.

        States that a machine only passes through are often over before anybody could look.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if cluster not in self._soon:
            self._soon[cluster] = {}
            loop.call_later(self._moment, self._tell_of, cluster)
        self._soon[cluster].setdefault(machine_id, loop.time())
        return True

    def _tell_of(self, cluster: str) -> None:
        loop, busy = asyncio.get_running_loop(), self._machines.busy
        patient = loop.time() - PATIENCE_SECONDS
        waiting = self._soon.pop(cluster)
        held = {m: since for m, since in waiting.items() if since > patient and busy(m)}
        if held:
            self._soon[cluster] = held
            loop.call_later(self._moment, self._tell_of, cluster)
        for machine_id in [m for m in waiting if m not in held]:
            frame = self.frame_now(cluster, machine_id)
            if frame is not None:
                self._lines.send(cluster, frame, node_key(machine_id))

    def _part(self, cluster: str, before: Machine, after: Machine | None) -> None:
        if after is None:
            self._farewell(cluster, gone(before, cluster))
        elif after.state is S.FAILED:
            self._failed[after.id] = cluster
            self._lines.send(cluster, self._frame(after, cluster), node_key(after.id))
        else:
            self._farewell(cluster, _withdrawal(after, cluster))

    def _end_failure(self, before: Machine | None, after: Machine | None, now: str) -> None:
        if before is None or (after is not None and after.state is S.FAILED):
            return
        cluster = self._failed.pop(before.id, "")
        if not cluster or cluster == now:
            return
        if after is None:
            self._farewell(cluster, gone(before, cluster))
        else:
            self._farewell(cluster, node_state(after, cluster, withdrawn=True))

    def _farewell(self, cluster: str, frame: pb.NodeStateUpdate) -> None:
        message = pb.ShardMessage(node_state_update=frame)
        if not self._lines.send(cluster, message, node_key(frame.machine_id)):
            self._keep_farewell(cluster, frame)

    def _keep_farewell(self, cluster: str, frame: pb.NodeStateUpdate) -> None:
        kept = self._farewells.setdefault(cluster, OrderedDict())
        kept[frame.machine_id] = frame
        if len(kept) > _FAREWELLS:
            kept.popitem(last=False)

    def _take_farewell(self, cluster: str, machine_id: str) -> pb.NodeStateUpdate | None:
        kept = self._farewells.get(cluster)
        return None if kept is None else kept.pop(machine_id, None)


def _withdrawal(machine: Machine, cluster: str) -> pb.NodeStateUpdate:
    # What happens between the machine and another cluster does not concern this one.
    shown = replace(machine, state=S.IDLE) if concerns(machine) else machine
    return node_state(shown, cluster, withdrawn=True)


def _shows(before: Machine, after: Machine) -> bool:
    """Whether a frame would look different; a change to the same tells that its node has a name."""
    changed = any(getattr(before, name) != getattr(after, name) for name in _SHOWN)
    return changed or before == after
