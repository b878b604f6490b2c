"""The size of a roll-up read off its bytes is the size that decoding it finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.wire.rollup_limits import MAX_COUNTED, RollUpLimits, size_of_rollup
from bigfleet_api.v1alpha1 import capacity_pb2, shard_pb2

ROWS = st.builds(
    capacity_pb2.CapacityNeed,
    group=st.text(max_size=300),
    priority=st.integers(-(2**31), 2**31 - 1),
    aggregate_resources=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
ROLLUPS = st.builds(
    capacity_pb2.ClusterCapacityNeeds,
    cluster_id=st.text(max_size=200),
    timestamp_unix_nanos=st.integers(-(2**63), 2**63 - 1),
    needs=st.lists(ROWS, max_size=20),
)
UNKNOWN = st.sampled_from(
    [b"", b"\xf8\x07\x05", b"\xfa\x07\x02ab", b"\xfd\x07abcd", b"\xf9\x07abcdefgh"]
)
"""Fields of a newer release, of every wire type."""


@given(st.lists(st.tuples(ROLLUPS, UNKNOWN), min_size=1, max_size=3), UNKNOWN)
def test_it_is_what_decoding_finds_also_of_parts_that_are_merged(
    parts: list[tuple[capacity_pb2.ClusterCapacityNeeds, bytes]], unknown: bytes
) -> None:
    frame = unknown + b"".join(
        shard_pb2.OperatorMessage(
            rollup=capacity_pb2.ClusterCapacityNeeds.FromString(rollup.SerializeToString() + inside)
        ).SerializeToString()
        for rollup, inside in parts
    )
    whole = shard_pb2.OperatorMessage.FromString(frame).rollup
    size = size_of_rollup(frame)
    assert size is not None
    assert size.rows == len(whole.needs)
    assert size.cluster_id.decode() == whole.cluster_id
    assert size.timestamp_unix_nanos == whole.timestamp_unix_nanos


@given(st.binary(max_size=200))
def test_bytes_that_are_no_frame_are_left_to_their_decoder(frame: bytes) -> None:
    size_of_rollup(frame)


def test_a_frame_without_a_rollup_has_no_size() -> None:
    hello = shard_pb2.OperatorMessage(hello=shard_pb2.Hello(cluster_id="c"))
    assert size_of_rollup(hello.SerializeToString()) is None
    assert size_of_rollup(b"") is None


def test_counting_ends_and_says_so() -> None:
    rows = b"\x1a\x00" * (MAX_COUNTED + 10)
    length = len(rows)
    varint = bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14 & 127 | 128])
    varint += bytes([length >> 21])
    size = size_of_rollup(b"\x12" + varint + rows)
    assert size is not None
    problem = RollUpLimits().problem(size)
    assert problem is not None
    assert "more than 2000000 rows" in str(problem)
