"""A machine of this cluster as its UpcomingNode: names, phases, and what a frame leaves standing.

The newest frame wins; what it does not say it has not taken back. A machine that is Idle after it
was a node is drained, also when the frame in between was superseded, and its object then goes.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from bigfleet.kube.fleet import GROUP_ANNOTATION, PROFILE_LABEL, UpcomingNode
from bigfleet.model import MachineState
from bigfleet_api.v1alpha1 import shard_pb2 as pb

S = MachineState
MACHINE_ID: Final = "bigfleet.lucy.sh/machine-id"
_PREFIX: Final = "un-"
_LONGEST: Final = 253
_HASH_DIGITS: Final = 10
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_OTHER: Final = re.compile(r"[^a-z0-9-]+")
_NS: Final = 1_000_000_000
Document = dict[str, Any]


class Phase(StrEnum):
    """Where an UpcomingNode stands."""

    PROVISIONING = "Provisioning"
    LAUNCHED = "Launched"
    REGISTERED = "Registered"
    READY = "Ready"
    DRAINING = "Draining"
    DRAINED = "Drained"
    FAILED = "Failed"


_PHASES: Final = {
    int(S.IDLE): Phase.LAUNCHED,
    int(S.CONFIGURING): Phase.REGISTERED,
    int(S.CONFIGURED): Phase.READY,
    int(S.DRAINING): Phase.DRAINING,
    int(S.FAILED): Phase.FAILED,
}
_WAS_NODE: Final = frozenset({Phase.READY, Phase.DRAINING, Phase.DRAINED})


@dataclass(frozen=True, slots=True)
class MachineNodeState:
    """A machine as its UpcomingNode shows it."""

    machine_id: str
    phase: Phase
    node_name: str = ""
    provider_id: str = ""
    last_error: str = ""
    started: str = ""
    labels: dict[str, str] = field(default_factory=dict, hash=False)
    resources: dict[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[tuple[str, str, str], ...] = ()
    """Key, value and effect."""
    profile: str = ""
    """Fingerprint of what it was taken for; empty where the shard does not say."""
    group: str = ""

    @property
    def name(self) -> str:
        """What its object is called."""
        return object_name(self.machine_id)

    def spec_body(self) -> Document:
        """What is applied to the object itself."""
        spec: Document = {"labels": self.labels, "resources": self.resources}
        if self.taints:
            spec["taints"] = [
                {"key": key, "effect": effect} | ({"value": value} if value else {})
                for key, value, effect in self.taints
            ]
        annotations = {MACHINE_ID: self.machine_id}
        if self.group:
            annotations[GROUP_ANNOTATION] = self.group
        metadata: Document = {"annotations": annotations}
        if self.profile:
            metadata["labels"] = {PROFILE_LABEL: self.profile}
        return {"metadata": metadata, "spec": spec}

    def status_body(self) -> Document:
        """What is applied to its status; a field that is not named goes away."""
        status: Document = {"phase": self.phase.value}
        if self.node_name:
            status["nodeRef"] = {"name": self.node_name}
        if self.provider_id:
            status["providerID"] = self.provider_id
        if self.started:
            status["provisioningStartTime"] = self.started
        if self.last_error:
            status["lastError"] = self.last_error
        return {"status": status}


def object_name(machine_id: str) -> str:
    """`un-` and the machine, or where that is not a name, what is left of it and a hash."""
    plain = _PREFIX + machine_id
    if len(plain) <= _LONGEST and _SUBDOMAIN.fullmatch(machine_id):
        return plain
    tail = "-" + hashlib.sha256(machine_id.encode()).hexdigest()[:_HASH_DIGITS]
    room = _LONGEST - len(_PREFIX) - len(tail)
    return _PREFIX + _OTHER.sub("-", machine_id.lower())[:room].strip("-") + tail


def phase_after(before: Phase | None, state: int) -> Phase:
    """The phase a frame leads to."""
    if state == S.IDLE and before in _WAS_NODE:
        return Phase.DRAINED
    return _PHASES.get(state, Phase.PROVISIONING)


def after_update(
    before: MachineNodeState | None, update: pb.NodeStateUpdate, now_ns: int
) -> MachineNodeState:
    """What is known after a frame."""
    known = before or MachineNodeState(update.machine_id, Phase.PROVISIONING)
    phase = phase_after(before.phase if before else None, update.state)
    # What is true only of a failure goes with it.
    error = (update.last_error or known.last_error) if phase is Phase.FAILED else ""
    taints = tuple((taint.key, taint.value, taint.effect) for taint in update.taints)
    # A frame that names no need, as of an older shard, has not taken an earlier one back.
    says_need = bool(update.profile_fingerprint)
    return MachineNodeState(
        machine_id=update.machine_id,
        phase=phase,
        node_name=update.node_name or known.node_name,
        provider_id=update.provider_id or known.provider_id,
        last_error=error,
        started=known.started or _moment(now_ns),
        labels=dict(update.labels) or known.labels,
        resources=dict(update.resources.resources) or known.resources,
        taints=taints or known.taints,
        profile=update.profile_fingerprint if says_need else known.profile,
        group=update.group if says_need else known.group,
    )


def as_written(found: UpcomingNode) -> MachineNodeState | None:
    """What an object of the cluster says; None where it is not one of ours."""
    machine_id = found.metadata.annotations.get(MACHINE_ID, "")
    if not machine_id:
        return None
    status, spec = found.status, found.spec
    phase = Phase(status.phase) if status.phase in set(Phase) else Phase.PROVISIONING
    started = status.provisioning_start_time
    return MachineNodeState(
        machine_id=machine_id,
        phase=phase,
        node_name=status.node_ref.name if status.node_ref else "",
        provider_id=status.provider_id,
        last_error=status.last_error,
        started="" if started is None else started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        labels=dict(spec.labels),
        resources={name: str(amount) for name, amount in spec.resources.items()},
        taints=tuple((taint.key, taint.value, taint.effect) for taint in spec.taints),
        profile=found.metadata.labels.get(PROFILE_LABEL, ""),
        group=found.metadata.annotations.get(GROUP_ANNOTATION, ""),
    )


def _moment(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns // _NS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
