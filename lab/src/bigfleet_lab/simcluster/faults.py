"""What a cluster can be told to do wrong.

Each fault is something real operators do: hang, stop reading, be configured with another cluster's
id, send what cannot be read, or lose their demand. A shard must keep what it knew and serve
everybody else.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from random import Random

from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import shard_pb2 as pb


class Garbage(StrEnum):
    """Frames that mean nothing, or nothing good."""

    BYTES = "bytes"
    """No message at all."""
    EMPTY = "empty"
    """A frame without a payload."""
    UNKNOWN = "unknown"
    """A payload that is unknown."""
    LATE_BOOTSTRAP = "late-bootstrap"
    LATE_RECLAIM = "late-reclaim"
    SECOND_HELLO = "second-hello"
    BAD_QUANTITY = "bad-quantity"
    BAD_BUCKET = "bad-bucket"
    BAD_OPERATOR = "bad-operator"


ENDS_SESSION = frozenset({Garbage.BYTES})
"""Garbage that a transport cannot get over; all else leaves the session up."""
_BAD_ROLLUPS = frozenset({Garbage.BAD_QUANTITY, Garbage.BAD_BUCKET, Garbage.BAD_OPERATOR})


class Faults:
    """The faults of one cluster; none at first."""

    def __init__(self) -> None:
        self.silent = False
        """Says nothing any more: no roll-ups, no answers. The session stays."""
        self.hello_id: str | None = None
        self.rollup_id: str | None = None
        """Ids it claims instead of its own."""
        self._reading = asyncio.Event()
        self._reading.set()

    def stop_reading(self) -> None:
        """Takes nothing from the line any more."""
        self._reading.clear()

    def read_on(self) -> None:
        """Reads again."""
        self._reading.set()

    async def may_read(self) -> None:
        """Returns when it reads."""
        await self._reading.wait()

    def heal(self) -> None:
        """No faults any more."""
        self.silent = False
        self.hello_id = self.rollup_id = None
        self.read_on()


def garbage(kind: Garbage, cluster_id: str, timestamp_ns: int, rng: Random) -> bytes:
    """A frame of this kind."""
    if kind is Garbage.BYTES:
        # Field 1, a message longer than what follows: it cannot be read, whatever comes after.
        return b"\x0a\x7f" + rng.randbytes(8)
    if kind is Garbage.EMPTY:
        return b""
    if kind is Garbage.UNKNOWN:
        # Field 999, two bytes.
        return b"\xba\x3e\x02" + rng.randbytes(2)
    return _message(kind, cluster_id, timestamp_ns, rng).SerializeToString()


def _message(kind: Garbage, cluster_id: str, timestamp_ns: int, rng: Random) -> pb.OperatorMessage:
    unknown = f"{rng.getrandbits(64):016x}"
    match kind:
        case Garbage.LATE_BOOTSTRAP:
            answer = pb.BootstrapBlobResponse(request_id=unknown, user_data=b"late")
            return pb.OperatorMessage(bootstrap_response=answer)
        case Garbage.LATE_RECLAIM:
            return pb.OperatorMessage(reclaim_ack=pb.ReclaimAck(instruction_id=unknown))
        case Garbage.SECOND_HELLO:
            return pb.OperatorMessage(hello=pb.Hello(cluster_id=cluster_id))
        case _:
            return pb.OperatorMessage(
                rollup=capacity.ClusterCapacityNeeds(
                    cluster_id=cluster_id,
                    timestamp_unix_nanos=timestamp_ns,
                    needs=[_bad_row(kind)],
                )
            )


def _bad_row(kind: Garbage) -> capacity.CapacityNeed:
    row = capacity.CapacityNeed(aggregate_resources={"cpu": "1"}, min_unit={"cpu": "1"})
    if kind is Garbage.BAD_QUANTITY:
        row.aggregate_resources["cpu"] = "one and a half"
    elif kind is Garbage.BAD_BUCKET:
        row.interruption_penalty_bucket = capacity.PenaltyBucket.ValueType(28)
    else:
        unknown = capacity.NodeSelectorRequirement.Operator.ValueType(99)
        row.requirements.add(key="zone", operator=unknown)
    return row
