"""The audit log and the ring of decisions: what is written, dropped, lost and watched."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from bigfleet.decision import ActionKind
from bigfleet.shard.act.audit_log import AuditLog
from bigfleet.shard.act.decisions import Decision, Decisions
from bigfleet.shard.state.rotating_file import RotatingFile
from executing import World, run
from executing_values import machine, order

T = TypeVar("T")


async def at_once(function: Callable[[], T]) -> T:
    return function()


def decision(number: int, cycle: int = 1) -> Decision:
    return Decision(
        cycle, 1_700_000_000_123_456_789, "Reclaim", f"m-{number}", "c-1", "f" * 4, "why", 0.5,
        "success", 600,
    )  # fmt: skip


def test_a_line_has_the_promised_keys() -> None:
    lines: list[bytes] = []

    async def main() -> None:
        log = AuditLog(lines.append, at_once)
        log.record(decision(1))
        await log.flush()

    asyncio.run(main())
    assert json.loads(lines[0]) == {
        "time": "2023-11-14T22:13:20.123456789Z",
        "cycle": 1,
        "kind": "Reclaim",
        "machine": "m-1",
        "cluster": "c-1",
        "need": "ffff",
        "reason": "why",
        "grace": 600,
        "outcome": "success",
    }
    assert lines[0].endswith(b"\n")


def test_every_ended_action_is_written_down() -> None:
    lines: list[bytes] = []

    async def main() -> None:
        audit = AuditLog(lines.append, at_once)
        async with World(audit=audit) as world:
            world.add(machine("m"), machine("n"))
            world.hand_over(order(ActionKind.BOOTSTRAP, "m"), cycle=12)
            world.hand_over(order(ActionKind.BOOTSTRAP, "n", cluster="c-9"), cycle=12)
            await world.settled()
            await world.executor.stop(1)

    run(main)
    records = [json.loads(line) for line in b"".join(lines).splitlines()]
    outcomes = {record["machine"]: record["outcome"] for record in records}
    assert outcomes == {"m": "success", "n": "no_session"}
    assert {record["cycle"] for record in records} == {12}


def test_a_full_queue_drops_and_counts_and_never_waits(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    lines: list[bytes] = []

    async def main() -> None:
        log = AuditLog(lines.append, at_once, queue=10)
        for times in (1, 2):
            for number in range(25):
                log.record(decision(number))
            assert log.dropped == 15 * times
            await log.flush()
            await log.flush()

    asyncio.run(main())
    assert len(b"".join(lines).splitlines()) == 20
    said = [(r.message, r.__dict__.get("dropped")) for r in caplog.records]
    assert [dropped for words, dropped in said if words == "audit log has caught up"] == [15, 30]
    assert sum(words.startswith("audit log falls behind") for words, _ in said) == 2


def test_a_disk_that_refuses_is_told_once_and_the_log_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines: list[bytes] = []
    full = True

    def write(content: bytes) -> None:
        if full:
            raise OSError(28, "No space left on device")
        lines.append(content)

    async def main() -> None:
        nonlocal full
        log = AuditLog(write, at_once)
        for number in range(3):
            log.record(decision(number))
            await log.flush()
        assert log.lost == 3
        full = False
        log.record(decision(4))
        await log.flush()
        assert log.lost == 3

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert len(caplog.records) == 1
    assert len(lines) == 1


def test_a_file_is_set_aside_when_it_has_grown(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write = RotatingFile(path, most_bytes=10, kept=2)
    for text in (b"aaaa\n", b"bbbb\n", b"cccc\n", b"dddddddddddddd\n", b"eeee\n"):
        write(text)
    names = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert names == {
        "audit.jsonl": b"eeee\n",
        "audit.jsonl.1": b"dddddddddddddd\n",
        "audit.jsonl.2": b"cccc\n",
    }


def test_a_file_goes_on_where_it_was_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    RotatingFile(path)(b"a\n")
    RotatingFile(path)(b"b\n")
    assert path.read_bytes() == b"a\nb\n"


def test_a_folder_that_is_not_there_is_an_error_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        RotatingFile(tmp_path / "nowhere" / "audit.jsonl")(b"a\n")


def test_a_watcher_sees_what_came_since_and_is_never_waited_for() -> None:
    async def main() -> None:
        decisions = Decisions(kept=3)
        for number in range(5):
            decisions.append(decision(number, cycle=number))
        seen, cursor = decisions.since(0)
        assert [d.machine_id for d in seen] == ["m-2", "m-3", "m-4"]
        assert decisions.since(cursor) == ([], 5)
        waiting = asyncio.ensure_future(decisions.beyond(cursor))
        await asyncio.sleep(0)
        assert not waiting.done()
        decisions.append(decision(5, cycle=5))
        await waiting
        seen, cursor = decisions.since(cursor)
        assert [d.machine_id for d in seen] == ["m-5"]
        assert [d.cycle for d in decisions.since(0, cycle=5)[0]] == [5]

    asyncio.run(main())
