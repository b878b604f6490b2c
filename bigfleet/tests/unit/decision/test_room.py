"""Room for a cycle: taken once, used again while it is large enough."""

import numpy as np

from bigfleet.decision.work import Room


def test_a_fleet_that_grows_by_an_eighth_finds_its_room_again() -> None:
    room = Room()
    first = room.take("claim", (800,), np.int32, 0)
    assert np.shares_memory(first, room.take("claim", (900,), np.int32, 0))
    assert not np.shares_memory(first, room.take("claim", (901,), np.int32, 0))


def test_room_is_filled_anew_where_somebody_counts_on_what_is_in_it() -> None:
    room = Room()
    room.take("claim", (5,), np.int32, -1)[:] = 7
    assert room.take("claim", (5,), np.int32, None).tolist() == [7] * 5
    assert room.take("claim", (3,), np.int32, -1).tolist() == [-1] * 3


def test_room_of_another_type_or_name_is_another() -> None:
    room = Room()
    first = room.take("claim", (4, 2), np.int32, 0)
    assert not np.shares_memory(first, room.take("taken", (4, 2), np.int32, 0))
    other = room.take("claim", (4, 2), np.int64, 0)
    assert other.dtype == np.int64
    assert not np.shares_memory(first, other)
