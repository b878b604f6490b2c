"""What no client gets: a session under a bad id or under another name, too many rows."""

import logging

import grpc
import pytest

from bigfleet.shard.operators.errors import SessionEnd
from bigfleet.wire.rollup_limits import RollUpLimits
from operators import Desk, SessionStream, hello
from rollups import rollup, row


async def end_of(line: SessionStream) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(SessionEnd) as raised:
        await line.ended()
    return raised.value.code, raised.value.text


HOSTILE = ["c" * 60_000_000, "c\0", "c\r\nforged log line", "../../etc/passwd", "a b", "c" * 254]


@pytest.mark.parametrize("cluster", HOSTILE, ids=lambda text: f"{len(text)} characters")
async def test_a_hello_with_an_id_that_breaks_the_rules_opens_nothing_and_logs_little(
    cluster: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    line = desk.call()
    line.say(hello=hello(cluster))
    with caplog.at_level(logging.DEBUG):
        code, text = await end_of(line)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "1 to 253 letters" in text
    assert len(text) < 1000
    assert sum(len(str(vars(record))) for record in caplog.records) < 100_000
    assert desk.metrics.events == []
    assert desk.sessions.clusters() == []


async def test_a_certificate_without_a_name_is_denied_before_its_hello_is_looked_at() -> None:
    desk = Desk()
    line = desk.call(identity="")
    line.say(hello=hello("c" * 8_000_000))
    assert (await end_of(line))[0] is grpc.StatusCode.PERMISSION_DENIED
    assert desk.metrics.strangers == 1


async def test_a_certificate_of_another_cluster_is_denied_in_few_words() -> None:
    desk = Desk()
    line = desk.call(identity="bigfleet://cluster/" + "x" * 100_000)
    line.say(hello=hello("c-1"))
    code, text = await end_of(line)
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert len(text) < 1000


async def test_the_hello_is_told_how_many_rows_are_taken() -> None:
    desk = Desk(limits=RollUpLimits(rows=7))
    line = desk.call()
    line.say(hello=hello())
    assert (await line.told()).ack.max_rows == 7


@pytest.mark.parametrize(
    ("limits", "limit", "words"),
    [
        (RollUpLimits(rows=3), "rows", "has 4 rows; this shard takes at most 3 rows"),
        (RollUpLimits(requirement_sets=3), "requirement_sets", "at most 3 requirement sets"),
        (RollUpLimits(size=100), "bytes", "at most 100 bytes"),
    ],
)
async def test_a_rollup_beyond_a_limit_is_refused_and_the_last_demand_stays(
    limits: RollUpLimits, limit: str, words: str
) -> None:
    desk = Desk(limits=limits)
    line = await desk.greet()
    line.say(rollup=rollup(row("a"), at=1))
    assert (await line.told()).ack.echo == "rollup"
    line.say(rollup=rollup(*(row(pool) for pool in "abcd"), at=2))
    ack = (await line.told()).ack
    assert (ack.echo, ack.rollup_timestamp_unix_nanos) == ("rollup_rejected", 2)
    assert words in ack.reason
    assert len(desk.needs.rows("c-1")) == 1
    assert desk.metrics.over == [("c-1", limit)]
    assert desk.metrics.rejected == ["c-1"]
    line.say(rollup=rollup(row("b"), at=3))
    assert (await line.told()).ack.echo == "rollup"
    line.close()
    await line.ended()
