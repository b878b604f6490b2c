"""The provider of a move: one process with a zone for each shard, all of it owned hardware.

Every zone but the first has some machines of the type that is going to be lacking in the first;
everything else is plain, Idle and there to be counted. Run as

    python -m bigfleet_lab.bench_coordinator.machines SHARDS MACHINES SPECIAL PORT
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import uvloop

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_lab.bench_coordinator.filled import ZONE
from bigfleet_lab.bench_shard.provider import serve

PLAIN: Final = "plain-4"
SPECIAL: Final = "special-4"
CPUS: Final = 4
"""Of every machine."""


@dataclass(frozen=True, slots=True)
class Zones:
    """So many machines in so many zones."""

    shards: int
    machines: int
    special: int
    """In each zone but the first."""

    def records(self) -> Iterator[pb.Machine]:
        """All of them."""
        for shard in range(self.shards):
            for number in range(self.machines // self.shards):
                is_special = shard > 0 and number < self.special
                yield _record(shard, number, SPECIAL if is_special else PLAIN)


def _record(shard: int, number: int, instance_type: str) -> pb.Machine:
    name, zone = f"m-{shard}-{number:06d}", f"zone-{shard}"
    record = pb.Machine(
        id=name,
        state=pb.MACHINE_STATE_IDLE,
        instance_type=instance_type,
        zone=zone,
        capacity_type=pb.CAPACITY_TYPE_BARE_METAL,
        host=pb.HostRef(provider="bench", ref=name),
        resources=pb.Resources(resources={"cpu": f"{CPUS}", "memory": "16Gi"}),
    )
    record.labels[ZONE] = zone
    return record


if __name__ == "__main__":
    uvloop.run(serve(Zones(*map(int, sys.argv[1:4])), int(sys.argv[4])))
