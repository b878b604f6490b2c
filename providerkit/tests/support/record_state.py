"""Records the state of this release, for the next one to boot: python record_state.py PATH.

Every table is filled and one machine of each kind is in flight. Run once per release, before it is
tagged; the file goes to tests/integration/recorded/state-<release>.db.
"""

import asyncio
import sqlite3
import sys
from pathlib import Path

from bigfleet_providerkit import InvalidRequest, State
from bigfleet_providerkit.clock import SystemClock
from bigfleet_providerkit.store.sqlite import SqliteStore
from bigfleet_providerkit.testing import Shard
from kitworld import begin


async def record(path: Path) -> None:
    """Fill a state file and leave it as a killed process would."""
    w = await begin(store=SqliteStore(path), seed_count=12)
    shard = Shard(w.running.service, "shard-recorded", 3)
    ids = sorted(machine.id for machine in await shard.machines())

    async def reach(machine: str, state: State) -> None:
        while await shard.state(machine) is not state:
            await w.clock.settle()
            await SystemClock().sleep(0.01)

    for machine in ids[1:5]:
        await shard.create(machine)
        await reach(machine, State.IDLE)
    for machine in ids[3:5]:
        await shard.configure(machine, "cluster-recorded", {"key": "value", "nul": "\0"})
        await reach(machine, State.CONFIGURED)
    w.substrate.fail_next("create", InvalidRequest("recorded failure"))
    await shard.create(ids[5])
    await reach(ids[5], State.FAILED)
    for kind in w.substrate.delays:
        w.substrate.delays[kind] = 1e6
    await shard.create(ids[0])
    await shard.delete(ids[1])
    await shard.configure(ids[2], "cluster-recorded", {"key": "in flight"})
    await shard.drain(ids[3], grace=5)
    await w.running.crash()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("VACUUM")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    for extra in (".lock", ".sock"):
        path.with_name(path.name + extra).unlink(missing_ok=True)


if __name__ == "__main__":
    asyncio.run(record(Path(sys.argv[1])))
