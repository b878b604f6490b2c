"""How often an etcd that does not answer, or refuses, is asked again."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from bigfleet.coordinator.store.errors import (
    StoreError,
    StoreSettingsError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.etcd.connection.members import EtcdMembers
from bigfleet.coordinator.store.etcd.election import Election
from bigfleet.coordinator.store.etcd.keys import Keys
from bigfleet.coordinator.store.etcd.leader_watch import LeaderWatch
from bigfleet.coordinator.store.leaders import Leaders
from clocks import HandClock
from sim.loop import virtual_loop

MINUTE = 60.0


class Deaf:
    """Members of which none ever helps."""

    count = 3

    def __init__(self, error: StoreError) -> None:
        self._error = error
        self.asked = 0

    async def call(self, *_: object) -> None:
        self.asked += 1
        raise self._error


async def a_minute_of(which: str, error: StoreError) -> int:
    deaf, leaders, keys = Deaf(error), Leaders(), Keys(b"/p/")
    members = cast("EtcdMembers", deaf)
    election = Election(members, keys, HandClock(), leaders, "r", "session")
    following = LeaderWatch(members, keys, leaders, election, "session")
    trying = election.campaign("here:1") if which == "election" else following.run()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(MINUTE):
            await trying
    return deaf.asked


@pytest.mark.parametrize("which", ["election", "following"])
@pytest.mark.parametrize(
    ("error", "at_least", "at_most"),
    [
        (StoreUnavailableError("no process answers"), 30, 130),
        (StoreSettingsError("etcd refuses the log-in: wrong password"), 6, 15),
    ],
)
def test_it_is_asked_again_less_and_less_often(
    which: str, error: StoreError, at_least: int, at_most: int
) -> None:
    assert at_least <= virtual_loop(1).run(a_minute_of(which, error)) <= at_most
