"""What a shard says of itself: totals, what it could give, what it lacks.

Counting is done per class on columns, so that it costs the same at half a million machines as the
classes do. What lacks is handed in by the ledger; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from bigfleet.model import MachineState, Profile, Resources, format_resources
from bigfleet.model.columns import UNAVAILABLE, ClassTable, Flag, MachineColumns, Names
from bigfleet.model.demand.requirements import Requirement, RequirementOperator
from bigfleet.model.demand.taints import Taint
from bigfleet.model.match_set import defaults_of
from bigfleet.observe.process import Clock
from bigfleet.shard.demand.ingest import ClusterStatement
from bigfleet.shard.state.ownership import Transfer, TransferRole
from bigfleet.wire.needs import requirements_to_proto
from bigfleet.wire.taints import taints_to_proto, tolerations_to_proto
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2 as provider

I64 = npt.NDArray[np.int64]
Statement = Callable[[str], ClusterStatement]
S = MachineState

MOST_CLASSES: Final = 500
MOST_SHORTFALLS: Final = 100
_OWN_LABELS: Final = frozenset({"kubernetes.io/hostname"})
"""Labels of a single machine."""
_NOT_SPARE: Final = Flag.LEAVING | UNAVAILABLE
_ROLES: Final = {
    TransferRole.DONOR: pb.HeldTransfer.ROLE_DONOR,
    TransferRole.RECIPIENT: pb.HeldTransfer.ROLE_RECIPIENT,
}


class LedgerEntry(Protocol):
    """One entry of the shortfall ledger."""

    @property
    def profile(self) -> Profile: ...
    @property
    def deficit(self) -> Resources: ...  # over all needs of the profile
    @property
    def min_unit(self) -> Resources: ...  # what each machine must be able to host
    @property
    def age_cycles(self) -> int: ...  # in a row, the first being 1
    @property
    def clusters(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Reports:
    """Builds a shard's reports from what its parts know at that moment."""

    shard_id: str
    epoch: int
    address: str
    """Where this shard is dialled."""
    providers: str
    """Addresses of its providers, for display."""
    clock: Clock
    fleet: Callable[[], MachineColumns]
    shortfalls: Callable[[], Iterable[LedgerEntry]]
    clusters: Callable[[], Iterable[str]]
    transfers: Callable[[], Iterable[Transfer]]
    stated: Statement = lambda _cluster: ClusterStatement()

    def build(self, revision: int, acks: Iterable[pb.InstructAck]) -> pb.ShardReport:
        """A report without its number, which belongs to the attempt."""
        return pb.ShardReport(
            shard_id=self.shard_id,
            timestamp_unix_nanos=self.clock.now(),
            shard_epoch=self.epoch,
            summary=summarise(self.fleet(), self.shard_id, self.providers),
            shortfalls=reported_shortfalls(self.shortfalls(), self.stated),
            instruction_acks=acks,
            shard_address=self.address,
            assignments_revision=revision,
            known_clusters=sorted(self.clusters()),
            transfers=[
                pb.HeldTransfer(
                    move_id=held.move_id, role=_ROLES[held.role], machine_ids=held.machine_ids
                )
                for held in self.transfers()
            ],
        )


def _with_defaults(lack: LedgerEntry, stated: Statement) -> list[Requirement]:
    """Its requirements and its clusters' defaults: other machines would be of no use to it."""
    own = lack.profile.requirements
    known = map(stated, lack.clusters)
    defaults = {pair for one in known for pair in defaults_of(own, one.arch, one.os)}
    return [*own, *(Requirement(k, RequirementOperator.IN, (v,)) for k, v in sorted(defaults))]


def reported_shortfalls(entries: Iterable[LedgerEntry], stated: Statement) -> list[pb.Shortfall]:
    """The most important and oldest, at most a hundred."""
    ordered = sorted(
        entries,
        key=lambda lack: (-lack.profile.priority, -lack.age_cycles, lack.profile.fingerprint),
    )
    return [
        pb.Shortfall(
            requirements=requirements_to_proto(_with_defaults(lack, stated)),
            deficit=provider.Resources(resources=format_resources(lack.deficit)),
            priority=lack.profile.priority,
            age_cycles=lack.age_cycles,
            interruption_penalty_bucket=capacity.PenaltyBucket.ValueType(lack.profile.interruption),
            topology_constrained=bool(lack.profile.same),
            cluster_ids=sorted(lack.clusters),
            profile_fingerprint=lack.profile.fingerprint,
            min_unit=provider.Resources(resources=format_resources(lack.min_unit)),
            tolerations=tolerations_to_proto(lack.profile.tolerations),
            # Machines that one of its clusters cannot use would be of no use to the shortfall.
            tolerations_stated=any(stated(cluster).tolerations for cluster in lack.clusters),
        )
        for lack in ordered[:MOST_SHORTFALLS]
    ]


def summarise(fleet: MachineColumns, shard_id: str, providers: str) -> pb.ShardSummary:
    classes = fleet.classes
    per_state = _per_class_and_state(fleet, np.arange(len(fleet)))
    total = per_state.sum(axis=1)
    # Holes have state 0, and whatever their class column says.
    total -= per_state[:, 0]
    spare = _per_class_and_state(fleet, _spare_rows(fleet))
    types, zones = _by_type_and_zone(classes, total)
    return pb.ShardSummary(
        total_machines=int(total.sum()),
        free_machines=int(per_state[:, [S.IDLE, S.SPECULATIVE]].sum()),
        per_instance_type_counts=types,
        per_zone_counts=zones,
        provider_address=providers,
        free_by_class=_free(
            classes, fleet.symbols.resources, spare[:, S.IDLE], spare[:, S.SPECULATIVE]
        ),
        quota_totals=_quota_totals(classes, per_state[:, 1:].sum(axis=1), shard_id),
    )


def _per_class_and_state(fleet: MachineColumns, rows: I64) -> I64:
    """[class, state]: how many of these rows."""
    states = len(S)
    both = fleet.cls[rows] * np.int32(states) + fleet.state[rows]
    counts = np.bincount(np.maximum(both, 0), minlength=states * max(1, len(fleet.classes)))
    return counts.reshape(-1, states).astype(np.int64)


def _spare_rows(fleet: MachineColumns) -> I64:
    """Free machines without a stamp."""
    rows = np.flatnonzero((fleet.state == S.IDLE) | (fleet.state == S.SPECULATIVE))
    kept = fleet.flags[rows] & np.uint16(_NOT_SPARE) == 0
    spare: I64 = rows[kept & (fleet.stamp[rows] < 0)]
    return spare


def _by_type_and_zone(classes: ClassTable, total: I64) -> tuple[dict[str, int], dict[str, int]]:
    types: dict[str, int] = {}
    zones: dict[str, int] = {}
    for cls in np.flatnonzero(total).tolist():
        _, instance_type, zone, _ = classes.offerings[classes.offering[cls]]
        count = int(total[cls])
        types[instance_type] = types.get(instance_type, 0) + count
        zones[zone] = zones.get(zone, 0) + count
    return types, zones


def _quota_totals(classes: ClassTable, slots: I64, shard_id: str) -> list[pb.QuotaAllocation]:
    """Slots in all states: what a quota of slots outside Speculative can be at most."""
    per_pool = np.bincount(classes.pool, weights=slots, minlength=len(classes.pools))
    return [
        pb.QuotaAllocation(
            provider=name, region=region, per_shard={shard_id: int(per_pool[number])}
        )
        for number, (name, region) in sorted(enumerate(classes.pools), key=lambda one: one[1])
        if per_pool[number]
    ]


_FreeKey = tuple[
    tuple[object, ...], frozenset[tuple[str, int]], frozenset[tuple[str, str]], tuple[Taint, ...]
]


def _free(classes: ClassTable, names: Names, idle: I64, speculative: I64) -> list[pb.FreeClass]:
    """Spare machines by kind; classes that differ in price alone are one kind here."""
    counts: dict[_FreeKey, list[int]] = {}
    for cls in np.flatnonzero(idle + speculative).tolist():
        labels = classes.labels[cls].items()
        key = (
            (*classes.offerings[classes.offering[cls]], *classes.pools[classes.pool[cls]]),
            frozenset(_offered(classes, names, cls).items()),
            frozenset((key, value) for key, value in labels if key not in _OWN_LABELS),
            classes.taints[cls],
        )
        count = counts.setdefault(key, [0, 0])
        count[0] += int(idle[cls])
        count[1] += int(speculative[cls])
    # Ordered by text among equals, so that two reports of the same fleet say the same.
    largest = sorted(
        counts.items(),
        key=lambda one: (-sum(one[1]), one[0][0], sorted(one[0][1]), sorted(one[0][2]), one[0][3]),
    )
    return [
        pb.FreeClass(
            instance_type=str(kind[1]),
            zone=str(kind[2]),
            capacity_type=provider.CapacityType.ValueType(kind[3]),  # type: ignore[arg-type]
            provider=str(kind[0]),
            region=str(kind[5]),
            idle=count[0],
            speculative=count[1],
            allocatable=provider.Resources(resources=format_resources(dict(offered))),
            labels=dict(labels),
            taints=taints_to_proto(taints),
        )
        for (kind, offered, labels, taints), count in largest[:MOST_CLASSES]
    ]


def _offered(classes: ClassTable, names: Names, cls: int) -> Mapping[str, int]:
    whole, milli = classes.whole[cls], classes.milli[cls]
    return {
        names[number]: int(whole[number]) * 1000 + int(milli[number])
        for number in np.flatnonzero((whole != 0) | (milli != 0)).tolist()
    }
