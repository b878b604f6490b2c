"""Buffers for a cycle: allocated once, used again while they are large enough."""

import numpy as np

from bigfleet.decision.buffers import BufferPool


def test_a_fleet_that_grows_by_an_eighth_finds_its_buffers_again() -> None:
    buffers = BufferPool()
    first = buffers.array("claim", (800,), np.int32, 0)
    assert np.shares_memory(first, buffers.array("claim", (900,), np.int32, 0))
    assert not np.shares_memory(first, buffers.array("claim", (901,), np.int32, 0))


def test_a_buffer_is_filled_again_only_where_a_caller_names_a_value() -> None:
    buffers = BufferPool()
    buffers.array("claim", (5,), np.int32, -1)[:] = 7
    assert buffers.array("claim", (5,), np.int32, None).tolist() == [7] * 5
    assert buffers.array("claim", (3,), np.int32, -1).tolist() == [-1] * 3


def test_a_buffer_of_another_type_or_name_is_another() -> None:
    buffers = BufferPool()
    first = buffers.array("claim", (4, 2), np.int32, 0)
    assert not np.shares_memory(first, buffers.array("taken", (4, 2), np.int32, 0))
    other = buffers.array("claim", (4, 2), np.int64, 0)
    assert other.dtype == np.int64
    assert not np.shares_memory(first, other)
