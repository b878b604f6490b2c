"""Snapshots as documents."""

from __future__ import annotations

import json

import pytest

from bigfleet.coordinator.store.errors import SnapshotError
from bigfleet.coordinator.store.interface import StoredRow
from bigfleet.coordinator.store.snapshots.documents import Document, decode, encode

ROWS = (
    StoredRow("domains", "rack/r1", b'{"shard":"a"}'),
    StoredRow("domains", "rack/r2", b'{"shard":"b"}'),
    StoredRow("shards", "a", b'{"address":"a:1","registered_at":5,"weight":0.5}'),
)
DOCUMENT = Document(ROWS, term=7, revision=4711, taken_at=1_700_000_000_000_000_000)


def test_a_document_comes_back_as_it_was() -> None:
    decoded = decode(encode(DOCUMENT).data)
    assert sorted(decoded.rows, key=repr) == sorted(ROWS, key=repr)
    assert (decoded.term, decoded.revision, decoded.taken_at) == (7, 4711, DOCUMENT.taken_at)


def test_the_same_rows_give_the_same_bytes_in_whatever_order() -> None:
    shuffled = Document(ROWS[::-1], DOCUMENT.term, DOCUMENT.revision, DOCUMENT.taken_at)
    assert encode(shuffled) == encode(DOCUMENT)


def test_what_it_is_says_what_is_in_it() -> None:
    snapshot = encode(DOCUMENT)
    meta = json.loads(snapshot.meta_json)
    assert (meta["term"], meta["revision"], meta["version"]) == (7, 4711, 1)
    assert (meta["rows"], meta["bytes"]) == (3, len(snapshot.data))


def test_an_indented_document_is_still_itself() -> None:
    indented = json.dumps(json.loads(encode(DOCUMENT).data), indent=2).encode()
    assert decode(indented) == decode(encode(DOCUMENT).data)


def test_a_document_cut_short_anywhere_is_refused_with_the_remedy() -> None:
    data = encode(DOCUMENT).data.rstrip()
    for length in range(len(data)):
        with pytest.raises(SnapshotError, match="snapshot save"):
            decode(data[:length])


def test_a_changed_row_is_noticed() -> None:
    with pytest.raises(SnapshotError, match="checksum"):
        decode(encode(DOCUMENT).data.replace(b'"shard":"a"', b'"shard":"c"'))


def test_another_version_is_refused_with_the_remedy() -> None:
    data = encode(DOCUMENT).data.replace(b'"version":1', b'"version":2')
    with pytest.raises(SnapshotError, match="version 2, this release reads 1: restore it with"):
        decode(data)


@pytest.mark.parametrize(
    "data", [b"{}", b"[]", b"null", b'{"format":"etcd"}', b"\xff\xfe", b"", b"[" * 99_999]
)
def test_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError, match="nothing was changed"):
        decode(data)


@pytest.mark.parametrize("term", ["-1", '"7"', "true", "null", "7.5", str(2**62 + 1), str(2**63)])
def test_a_term_that_is_no_number_or_leaves_no_room_is_refused(term: str) -> None:
    data = encode(DOCUMENT).data.replace(b'"term":7', b'"term":' + term.encode())
    with pytest.raises(SnapshotError, match=r"term is .*, not a number.*nothing was changed"):
        decode(data)


def test_a_revision_that_leaves_no_room_is_refused() -> None:
    data = encode(DOCUMENT).data.replace(b'"revision":4711', b'"revision":9223372036854775807')
    with pytest.raises(SnapshotError, match="revision is 9223372036854775807"):
        decode(data)


def test_a_row_that_is_no_json_cannot_be_written_and_is_named() -> None:
    with pytest.raises(SnapshotError, match="moves/m1"):
        encode(Document((StoredRow("moves", "m1", b"{"),), 1, 1, 1))
