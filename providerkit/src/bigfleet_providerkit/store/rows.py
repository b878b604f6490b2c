"""What the rows of the state file hold, as typed values.

Values are MessagePack maps with short names: a field that a release does not know is ignored, one
that is absent has its default, so neighbouring releases read each other's state. The bootstrap blob
has no row, on purpose.
"""

import random

import msgspec

from bigfleet_providerkit.machines.fence import Mark, Pair
from bigfleet_providerkit.machines.record import Record, shape_of
from bigfleet_providerkit.machines.state import KINDS, Kind, State

STORE_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
STORE_ID_LENGTH = 10


class MachineRow(msgspec.Struct, omit_defaults=True):
    """One record; `shape` is the encoded part that its offering shares."""

    shape: bytes
    state: int
    revision: int
    host: str = ""
    cluster: str = ""
    metadata: bytes = b""
    last_error: str = ""
    observed: float | None = None
    ends: int = 0
    life: int = 1
    failed_at: float = 0.0
    failed_in: str = ""
    extra: bool = False


class FenceRow(msgspec.Struct, array_like=True):
    """A mark."""

    epoch: int
    sequence: int
    moved: int


class RunningRow(msgspec.Struct, omit_defaults=True):
    """Work in flight."""

    kind: str
    operation: str
    started: float
    deadline: float
    grace: int = 0
    seed: bytes = b""


class LateRow(msgspec.Struct, omit_defaults=True):
    """An operation whose host must go, should it appear."""

    machine: str
    since: float


class MetaRow(msgspec.Struct, omit_defaults=True):
    """The counters of a store."""

    store_id: str
    revision: int = 0
    counter: int = 0


class NotesRow(msgspec.Struct, omit_defaults=True):
    """What is remembered about the host of a machine."""

    ref: str
    address: str = ""
    pin: str = ""
    node_name: str = ""
    created: float = 0.0
    operation: str = ""
    zone: str = ""
    instance_type: str = ""
    notes: dict[str, str] = {}
    provider_id: str = ""


META_KEY = b"counters"
REPORTS_KEY = b"reports/"
"""Rows of the table meta that hold what Nodes of one type reported; its word follows."""
_pack = msgspec.msgpack.Encoder().encode
_machine = msgspec.msgpack.Decoder(MachineRow).decode
_fence = msgspec.msgpack.Decoder(FenceRow).decode
pack = _pack
read_running = msgspec.msgpack.Decoder(RunningRow).decode
read_late = msgspec.msgpack.Decoder(LateRow).decode
read_meta = msgspec.msgpack.Decoder(MetaRow).decode
read_reports = msgspec.msgpack.Decoder(dict[str, dict[str, str]]).decode
read_notes = msgspec.msgpack.Decoder(NotesRow).decode


def new_store_id(rng: random.Random) -> str:
    """An id for a new store."""
    return "".join(rng.choice(STORE_ALPHABET) for _ in range(STORE_ID_LENGTH))


def key_of(*parts: str) -> bytes:
    """A key of several texts: all but the last carry their length, so none can be mistaken."""
    if len(parts) == 1:
        return parts[0].encode()
    encoded = [part.encode() for part in parts]
    head = b"".join(len(part).to_bytes(3, "big") + part for part in encoded[:-1])
    return head + encoded[-1]


def parts_of(key: bytes, count: int) -> list[str]:
    """The texts of a key."""
    parts = []
    position = 0
    for _ in range(count - 1):
        length = int.from_bytes(key[position : position + 3], "big")
        position += 3
        parts.append(key[position : position + length].decode())
        position += length
    parts.append(key[position:].decode())
    return parts


def write_machine(record: Record, revision: int) -> bytes:
    """The row of a record."""
    return _pack(
        MachineRow(
            record.shape.encoded,
            int(record.state),
            revision,
            record.host,
            record.cluster,
            record.metadata,
            record.last_error,
            record.observed,
            record.ends,
            record.life,
            record.failed_at,
            record.failed_in,
            record.extra,
        )
    )


def read_machine(
    machine: str, label: str, value: bytes, operations: dict[Kind, str]
) -> tuple[Record, int]:
    """The record of a row, and its revision."""
    row = _machine(value)
    record = Record(
        id=machine, label=label, shape=shape_of(row.shape), state=State(row.state),
        host=row.host, cluster=row.cluster, metadata=row.metadata, last_error=row.last_error,
        observed=row.observed, ends=row.ends, life=row.life,
        failed_at=row.failed_at, failed_in=row.failed_in,
        create_op=operations.get(Kind.CREATE, ""),
        configure_op=operations.get(Kind.CONFIGURE, ""),
        drain_op=operations.get(Kind.DRAIN, ""),
        delete_op=operations.get(Kind.DELETE, ""),
        extra=row.extra,
    )  # fmt: skip
    return record, row.revision


def write_mark(mark: Mark) -> bytes:
    """The row of a mark."""
    return _pack(FenceRow(mark.epoch, mark.sequence, mark.moved))


def read_mark(key: bytes, value: bytes) -> tuple[Pair, Mark]:
    """The mark of a row."""
    shard, machine = parts_of(key, 2)
    row = _fence(value)
    return (shard, machine), Mark(row.epoch, row.sequence, row.moved)


def read_operation(key: bytes) -> tuple[str, Kind]:
    """Whose operation a row is."""
    word, machine = parts_of(key, 2)
    return machine, KINDS[word]
