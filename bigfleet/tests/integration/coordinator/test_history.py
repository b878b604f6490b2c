"""Three `bigfleet coordinator` processes under faults: what clients were told has one order.

Leaders are killed, paused and cut off, members of etcd are killed, while clients assign, take away
and read domains of the leader. A checker looks for an order that explains every answer.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from etcd_members import Cluster
from histories import asking
from linearizable import first_violation
from replica_faults import FAULTS
from replicated import three_replicas
from sizes import many

ROUNDS = 12 if os.environ.get("MODE") == "nightly" else 1
"""Each has every fault once."""
EACH = many(change=80, nightly=250, mutant=80, everything=250)
"""Operations before a fault and after it; some more happen meanwhile."""
CLIENTS = 6

_log = logging.getLogger(__name__)


@pytest.mark.timeout(120 + 240 * ROUNDS)
async def test_the_history_of_assignments_under_faults_is_linearizable(
    three_members: Cluster, prefix: str, tmp_path: Path
) -> None:
    async with (
        three_replicas(three_members, prefix, tmp_path) as fleet,
        asking(fleet, CLIENTS) as history,
    ):
        for fault in [*FAULTS] * ROUNDS:
            history.turn()
            await history.more(EACH)
            served = await FAULTS[fault](fleet)
            await history.more(EACH)
            _log.info("%s: %s, %d operations", fault, served, len(history.operations))
        await fleet.check()
    _log.info("%d without an answer among %d", history.unknown, len(history.operations))
    assert len(history.operations) >= 2 * EACH * len(FAULTS) * ROUNDS
    assert first_violation(history.operations) is None
