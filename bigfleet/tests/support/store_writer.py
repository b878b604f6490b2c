"""A replica in a process of its own, to be killed: `store_writer.py ADDRESS DATA_DIR REPLICA`.

Campaigns, then writes one row after the other as fast as it may, and says on standard output what
happened, a line each: `leading TERM`, `wrote NUMBER` once a write is acknowledged, `refused` when
it no longer leads; then it campaigns again. Rows are numbered across all replicas: each leader goes
on behind the highest it finds.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bigfleet.coordinator.store.errors import DeposedError, StoreUnavailableError
from bigfleet.coordinator.store.factory import Engine
from bigfleet.coordinator.store.interface import Leadership, StoredRow
from storing import engine_at

TABLE = "moves"


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def write(store: Engine, leadership: Leadership) -> None:
    loaded = await store.load()
    revision = loaded.revision
    number = max((int(row.key) for row in loaded.rows), default=0)
    while True:
        number += 1
        row = StoredRow(TABLE, str(number), b'{"term":%d}' % leadership.term)
        revision = await store.commit([row], [], revision, leadership)
        say("wrote", number)


async def main(address: str, data_dir: Path, replica: str) -> None:
    store = engine_at(address, data_dir, replica)
    await store.open()
    while True:
        leadership = await store.campaign(f"{replica}:7790")
        say("leading", leadership.term)
        try:
            await write(store, leadership)
        except DeposedError:
            say("refused")
        except StoreUnavailableError as error:
            say("unknown", error)
        await store.resign(leadership)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
