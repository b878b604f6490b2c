"""Three `bigfleet coordinator` processes on three etcd members: the leader may be killed, paused
or cut off, and etcd may lose a member.

A new leader takes writes within five seconds, nothing that was acknowledged is lost, and what the
former leader is asked afterwards it refuses.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from etcd_members import Cluster
from replica_faults import FAULTS, in_words
from replicated import three_replicas
from sizes import many

RUNS = many(change=1, nightly=100, mutant=1, everything=5)

EVERY_CHANGE = {"kill"}
"""The other faults are in the history of test_history.py, which every change runs."""

_log = logging.getLogger(__name__)


@pytest.mark.timeout(60 + 60 * RUNS)
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=() if fault in EVERY_CHANGE else pytest.mark.exhaustive)
        for fault in FAULTS
    ],
)
async def test_a_new_leader_serves_within_the_bar_and_nothing_acknowledged_is_lost(
    three_members: Cluster, prefix: str, tmp_path: Path, fault: str
) -> None:
    served = []
    async with three_replicas(three_members, prefix, tmp_path) as fleet:
        for run in range(1, RUNS + 1):
            served.append(await FAULTS[fault](fleet))
            _log.info("%s %d: %s", fault, run, served[-1])
            await fleet.check()
    _log.info("%s: %s", fault, in_words(served))
    assert all(one.in_time for one in served), in_words(served)
