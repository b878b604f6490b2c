"""A coordinator on SQLite that is killed at any moment loses nothing it acknowledged."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from storing import engine_at, opened, rows_in
from writers import writer

KILLS = 100 if os.environ.get("MODE") == "nightly" else 5


async def test_a_kill_at_a_random_moment_loses_no_acknowledged_write(tmp_path: Path) -> None:
    chance = Random(20)
    acknowledged = 0
    terms: list[int] = []
    for _ in range(KILLS):
        async with writer("sqlite", tmp_path) as running:
            await running.wrote_more(chance.randint(1, 60))
            await running.kill()
            assert running.wrote[0] in (acknowledged + 1, acknowledged + 2)
            acknowledged = running.wrote[-1]
            terms += running.terms
        async with opened(engine_at("sqlite", tmp_path)) as store:
            found = sorted(int(key.key) for key in await rows_in(store))
        # At most the one write whose acknowledgement was on its way is there besides.
        assert found in (
            list(range(1, acknowledged + 1)),
            list(range(1, acknowledged + 2)),
        )
    assert terms == sorted(set(terms))
    assert len(terms) == KILLS
