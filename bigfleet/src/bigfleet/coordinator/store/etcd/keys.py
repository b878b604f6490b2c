"""Which keys there are below the prefix, and transactions over them.

leader              who leads; lives by the leader's lease; its create revision is the election
base                what is added to a create revision to make a term; raised by restores
head                written by every commit: its mod revision is the revision of the rows
rows/<table>/<key>  the rows
pending             a commit that is decided and not yet applied to the rows; see `batches`
batch/<commit>/<n>  its content
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bigfleet.coordinator.store.changes import Changes
from bigfleet.coordinator.store.errors import CorruptStoreError
from bigfleet.coordinator.store.etcdapi import kv_pb2
from bigfleet.coordinator.store.etcdapi import rpc_pb2 as pb
from bigfleet.coordinator.store.interface import Leader, RowKey, StoredRow


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys below one prefix."""

    prefix: bytes

    @property
    def leader(self) -> bytes:
        """Who leads."""
        return self.prefix + b"leader"

    @property
    def base(self) -> bytes:
        """What is added to a create revision to make a term."""
        return self.prefix + b"base"

    @property
    def head(self) -> bytes:
        """Written by every commit."""
        return self.prefix + b"head"

    @property
    def pending(self) -> bytes:
        """A commit that is not yet applied."""
        return self.prefix + b"pending"

    @property
    def rows(self) -> bytes:
        """Before every row."""
        return self.prefix + b"rows/"

    @property
    def batches(self) -> bytes:
        """Before every part of a large commit."""
        return self.prefix + b"batch/"

    def part(self, commit: str, number: int) -> bytes:
        """One part of a large commit."""
        return self.parts(commit) + b"%06d" % number

    def parts(self, commit: str) -> bytes:
        """Before all parts of a large commit, which sort by their number."""
        return self.batches + commit.encode() + b"/"

    def row(self, key: RowKey) -> bytes:
        """Where a row is."""
        return self.rows + f"{key.table}/{key.key}".encode()

    def row_at(self, entry: kv_pb2.KeyValue) -> StoredRow:
        table, _, key = entry.key.removeprefix(self.rows).decode().partition("/")
        return StoredRow(table, key, entry.value)

    def operations(self, changes: Changes) -> list[pb.RequestOp]:
        """What changes do to the rows."""
        return [
            delete(self.row(key)) if value is None else put(self.row(key), value)
            for key, value in changes.items()
        ]


@dataclass(frozen=True, slots=True)
class LeaderRecord:
    """The content of the leader's key."""

    address: str
    replica: str
    session: str
    """Of the store object that wrote it: only that one may clear it away."""
    base: int
    create_revision: int
    lease: int

    @property
    def leader(self) -> Leader:
        """As others see it."""
        return Leader(self.address, self.base + self.create_revision)

    @classmethod
    def of(cls, entry: kv_pb2.KeyValue) -> LeaderRecord:
        """What an entry says."""
        fields = fields_of(entry)
        try:
            return cls(
                str(fields["address"]),
                str(fields["replica"]),
                str(fields["session"]),
                int(str(fields["base"])),
                entry.create_revision,
                entry.lease,
            )
        except (KeyError, ValueError) as error:
            raise _foreign(entry) from error


def fields_of(entry: kv_pb2.KeyValue) -> dict[str, object]:
    """The JSON object an entry holds."""
    try:
        fields = json.loads(entry.value)
    except ValueError as error:
        raise _foreign(entry) from error
    if not isinstance(fields, dict):
        raise _foreign(entry)
    return fields


def number_of(entry: kv_pb2.KeyValue | None) -> int:
    """The number an entry holds; 0 without an entry."""
    if entry is None:
        return 0
    try:
        return int(entry.value)
    except ValueError as error:
        raise _foreign(entry) from error


def _foreign(entry: kv_pb2.KeyValue) -> CorruptStoreError:
    key = entry.key.decode(errors="replace")
    return CorruptStoreError(
        f"etcd key {key} holds something else: {entry.value[:80]!r}; "
        "give the store a prefix of its own, or restore the last snapshot"
    )


def compact(value: dict[str, object]) -> bytes:
    """A JSON object as short as it gets."""
    return json.dumps(value, separators=(",", ":")).encode()


def end_of(prefix: bytes) -> bytes:
    """The first key behind all that begin so."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def get(key: bytes) -> pb.RequestOp:
    """Read one key."""
    return pb.RequestOp(request_range=pb.RangeRequest(key=key))


def get_all(prefix: bytes) -> pb.RequestOp:
    """Read all keys that begin so."""
    return pb.RequestOp(request_range=pb.RangeRequest(key=prefix, range_end=end_of(prefix)))


def put(key: bytes, value: bytes, lease: int = 0) -> pb.RequestOp:
    """Write one key."""
    return pb.RequestOp(request_put=pb.PutRequest(key=key, value=value, lease=lease))


def delete(key: bytes) -> pb.RequestOp:
    return pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=key))


def delete_all(prefix: bytes) -> pb.RequestOp:
    """Delete all keys that begin so."""
    return pb.RequestOp(
        request_delete_range=pb.DeleteRangeRequest(key=prefix, range_end=end_of(prefix))
    )


def created_at(key: bytes, revision: int) -> pb.Compare:
    """The key came into being at this revision; 0: there is none."""
    return pb.Compare(
        result=pb.Compare.EQUAL, target=pb.Compare.CREATE, key=key, create_revision=revision
    )


def changed_at(key: bytes, revision: int) -> pb.Compare:
    """The key was last written at this revision; 0: there is none."""
    return pb.Compare(
        result=pb.Compare.EQUAL, target=pb.Compare.MOD, key=key, mod_revision=revision
    )


def transaction(
    compare: Iterable[pb.Compare],
    success: Sequence[pb.RequestOp],
    failure: Sequence[pb.RequestOp] = (),
) -> pb.TxnRequest:
    """If all comparisons hold the one, else the other."""
    return pb.TxnRequest(compare=list(compare), success=success, failure=failure)


def entries(response: pb.TxnResponse) -> list[kv_pb2.KeyValue | None]:
    """What each `get` of a transaction found, in order."""
    found: list[kv_pb2.KeyValue | None] = []
    for each in response.responses:
        if each.HasField("response_range"):
            kvs = each.response_range.kvs
            found.append(kvs[0] if kvs else None)
    return found
