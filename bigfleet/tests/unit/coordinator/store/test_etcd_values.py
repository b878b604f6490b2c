"""The parts of the etcd engine that need no etcd: addresses, complaints, large commits."""

from __future__ import annotations

from pathlib import Path

import grpc
import grpc.aio
import pytest

from bigfleet.coordinator.store.changes import changes_of
from bigfleet.coordinator.store.errors import (
    CorruptStoreError,
    StoreError,
    StoreFullError,
    StoreSettingsError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.etcd.batches import (
    MOST_BYTES,
    MOST_OPERATIONS,
    PendingCommit,
    changes_in,
    fits,
    overlaid,
    parts_of,
    steps,
)
from bigfleet.coordinator.store.etcd.connection.address import EtcdAddress
from bigfleet.coordinator.store.etcd.connection.faults import (
    CompactedError,
    LeaseGoneError,
    fault_of,
    may_pass,
    wants_new_token,
)
from bigfleet.coordinator.store.etcd.keys import Keys, LeaderRecord, end_of
from bigfleet.coordinator.store.etcdapi import kv_pb2
from bigfleet.coordinator.store.interface import Leader, RowKey, StoredRow


def refusal(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(code, nothing, nothing, details)


def test_an_address_names_members_and_a_prefix() -> None:
    address = EtcdAddress.of("etcd://a:2379,b:2379,[::1]:2379/fleet/one/")
    assert address.endpoints == ("a:2379", "b:2379", "[::1]:2379")
    assert address.prefix == b"/fleet/one/"
    assert EtcdAddress.of("etcd://a:1").prefix == b"/bigfleet/"


@pytest.mark.parametrize(
    "text", ["etcd://", "etcd:///x", "etcd://host", "etcd://u:p@h:1", "etcd://a:1,b", "http://a:1"]
)
def test_an_address_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(StoreSettingsError, match=r"write etcd://host:2379,host:2379"):
        EtcdAddress.of(text)


def test_a_user_name_needs_a_password() -> None:
    with pytest.raises(StoreSettingsError, match="both"):
        EtcdAddress.of("etcd://a:1", username="u")
    with pytest.raises(StoreSettingsError, match="both"):
        EtcdAddress.of("etcd://a:1", password_file=Path("p"))


@pytest.mark.parametrize(
    ("code", "details", "kind", "remedy"),
    [
        (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "etcdserver: mvcc: database space exceeded",
            StoreFullError,
            "alarm disarm",
        ),
        (
            grpc.StatusCode.INVALID_ARGUMENT,
            "etcdserver: request is too large",
            StoreFullError,
            "--max-request-bytes",
        ),
        (
            grpc.StatusCode.OUT_OF_RANGE,
            "etcdserver: mvcc: required revision has been compacted",
            CompactedError,
            "compacted",
        ),
        (
            grpc.StatusCode.NOT_FOUND,
            "etcdserver: requested lease not found",
            LeaseGoneError,
            "lease",
        ),
        (
            grpc.StatusCode.INVALID_ARGUMENT,
            "etcdserver: authentication failed, invalid user ID or password",
            StoreSettingsError,
            "password file",
        ),
        (
            grpc.StatusCode.INVALID_ARGUMENT,
            "etcdserver: user name is empty",
            StoreSettingsError,
            "Give the store a user name",
        ),
        (
            grpc.StatusCode.PERMISSION_DENIED,
            "etcdserver: permission denied",
            StoreSettingsError,
            "Grant the store's user",
        ),
        (grpc.StatusCode.UNIMPLEMENTED, "what", StoreUnavailableError, "UNIMPLEMENTED: what"),
    ],
)
def test_a_complaint_becomes_an_error_with_a_remedy(
    code: grpc.StatusCode, details: str, kind: type[StoreError], remedy: str
) -> None:
    error = refusal(code, details)
    assert not may_pass(error)
    fault = fault_of(error)
    assert type(fault) is kind
    assert remedy in str(fault)


def test_what_may_pass_is_tried_at_another_member() -> None:
    assert may_pass(refusal(grpc.StatusCode.UNAVAILABLE, "etcdserver: no leader"))
    assert may_pass(refusal(grpc.StatusCode.DEADLINE_EXCEEDED, ""))
    assert may_pass(refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: too many requests"))


def test_a_token_that_is_refused_is_asked_for_again() -> None:
    stale = "etcdserver: revision of auth store is old"
    assert wants_new_token(refusal(grpc.StatusCode.UNAUTHENTICATED, "invalid auth token"))
    assert wants_new_token(refusal(grpc.StatusCode.INVALID_ARGUMENT, stale))
    assert not wants_new_token(refusal(grpc.StatusCode.UNAVAILABLE, "no leader"))


def test_a_large_commit_is_cut_into_steps_that_etcd_takes() -> None:
    changes = changes_of(
        [StoredRow("moves", f"m{number:04}", b'"%s"' % (b"x" * 10_000)) for number in range(500)],
        [RowKey("domains", f"d{number}") for number in range(300)],
    )
    assert not fits(changes)
    pieces = list(steps(changes))
    assert all(len(piece) <= MOST_OPERATIONS for piece in pieces)
    assert all(fits(piece) for piece in pieces)
    assert {key: value for piece in pieces for key, value in piece.items()} == changes
    parts = parts_of(changes)
    assert all(len(part) <= MOST_BYTES for part in parts)
    assert changes_in(parts) == changes


def test_a_large_commit_that_lost_a_part_is_noticed() -> None:
    parts = parts_of(changes_of([StoredRow("moves", "m", b'"%s"' % (b"x" * 500_000))] * 1, ()))
    with pytest.raises(CorruptStoreError, match="restore the last snapshot"):
        changes_in([parts[0][:-1]])


def test_rows_are_seen_as_they_will_be() -> None:
    rows = [StoredRow("shards", name, name.encode()) for name in ("a", "b", "c")]
    changes = {RowKey("shards", "a"): None, RowKey("shards", "b"): b"new"}
    assert overlaid(rows, PendingCommit("x"), changes) == [
        rows[2],
        StoredRow("shards", "b", b"new"),
    ]
    assert overlaid(rows, PendingCommit("x", wipe=True), changes) == [
        StoredRow("shards", "b", b"new")
    ]


def test_rows_have_keys_of_their_own() -> None:
    keys = Keys(b"/p/")
    entry = kv_pb2.KeyValue(key=keys.row(RowKey("domains", "rack/r%2F1")), value=b"{}")
    assert entry.key == b"/p/rows/domains/rack/r%2F1"
    assert keys.row_at(entry) == StoredRow("domains", "rack/r%2F1", b"{}")
    assert end_of(keys.rows) == b"/p/rows0"


def test_the_key_of_the_leader_says_who_and_since_when() -> None:
    said = b'{"address":"a:1","replica":"r","session":"s","base":100}'
    entry = kv_pb2.KeyValue(key=b"/p/leader", value=said, create_revision=7, lease=5)
    assert LeaderRecord.of(entry).leader == Leader("a:1", 107)


@pytest.mark.parametrize("value", [b"x", b"[]", b"{}", b'{"address":1}'])
def test_a_key_that_holds_something_else_is_named(value: bytes) -> None:
    with pytest.raises(CorruptStoreError, match="/p/leader holds something else"):
        LeaderRecord.of(kv_pb2.KeyValue(key=b"/p/leader", value=value))
