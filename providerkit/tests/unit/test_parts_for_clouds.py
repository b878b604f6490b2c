"""Parts that providers of clouds have in common: codes, trials, queues, seeds."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from bigfleet_providerkit import (
    CapacityType,
    Gone,
    Notice,
    NoticeKind,
    PriceKey,
    Retryable,
    SubstrateError,
    Unauthorized,
)
from bigfleet_providerkit.calls.error_codes import ErrorCodes
from bigfleet_providerkit.calls.trial import failing_calls
from bigfleet_providerkit.catalogue.seed_table import SeedTable
from bigfleet_providerkit.codec.tags import TagCodec
from bigfleet_providerkit.interruption.queue import queued_notices

CODES = ErrorCodes(
    throttled="Slow Down", out_of_capacity="NoStock", quota="Quota", unauthorized="Denied",
    gone="Missing.Host", not_yet="Missing.Yet", never="Missing Bad",
)  # fmt: skip


@pytest.mark.parametrize(
    ("code", "status", "word", "refused"),
    [
        ("Down", 503, "Throttled", True),
        ("NoStock", 500, "OutOfCapacity", None),
        ("Quota", 400, "QuotaExceeded", None),
        ("Denied", 403, "Unauthorized", None),
        ("Missing.Host", 404, "HostLost", None),
        ("Missing.Yet", 500, "Unavailable", True),
        ("Missing.Else", 400, "InvalidRequest", None),
        ("New", 409, "Unavailable", True),
        ("New", 500, "Unavailable", False),
        ("New", 0, "Unavailable", False),
    ],
)
def test_a_code_has_one_class_and_only_a_4xx_proves_that_nothing_was_done(
    code: str, status: int, word: str, refused: bool | None
) -> None:
    error = CODES.error(code, "text", status=status, after=2.0)
    assert (error.word, str(error)) == (word, "text")
    assert (error.refused if isinstance(error, Retryable) else None) is refused
    if word == "Throttled":
        assert isinstance(error, Retryable)
        assert error.after == 2.0


async def test_a_trial_that_is_permitted_is_not_named_and_each_refusal_once() -> None:
    def answer(error: SubstrateError | None) -> Callable[[], Any]:
        async def attempt() -> None:
            if error is not None:
                raise error

        return attempt

    trials = [
        ("Read", answer(None)),
        ("Delete", answer(Gone("there is none"))),
        ("Create", answer(Unauthorized("missing permission create"))),
        ("CreateAgain", answer(Unauthorized("missing permission create"))),
        ("Look", answer(Retryable("503"))),
    ]
    problems = await failing_calls(trials, lambda error: isinstance(error, Gone))
    assert problems == ["missing permission create", "Look would fail: 503"]


async def test_a_message_that_cannot_be_read_is_logged_and_done_with() -> None:
    batches = [["x", "i-1"], ["nothing", "i-2"]]
    done: list[str] = []

    async def receive() -> Sequence[str]:
        if not batches:
            raise asyncio.CancelledError
        return batches.pop(0)

    async def finish(message: str) -> None:
        done.append(message)

    def read(message: str) -> Notice | None:
        if message == "x":
            raise KeyError("detail")
        return None if message == "nothing" else Notice(message, NoticeKind.WARNING, 0.9, 1.0)

    async def taken(notices: AsyncIterator[Notice]) -> list[tuple[str, list[str]]]:
        seen = []
        try:
            async for notice in notices:
                # A message is done with only after its notice was taken.
                seen.append((notice.ref, list(done)))
        except asyncio.CancelledError:
            return seen
        raise AssertionError("the queue ended")

    with capture_logs() as logs:
        seen = await taken(queued_notices(receive, read, finish, structlog.get_logger()))
    assert seen == [("i-1", ["x"]), ("i-2", ["x", "i-1", "nothing"])]
    assert done == ["x", "i-1", "nothing", "i-2"]
    assert [(log["log_level"], log["message"]) for log in logs] == [("warning", "x")]


def test_a_seed_table_has_prices_by_place_shapes_and_interruptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "seeded_here"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "seed.yaml").write_text(
        "dated: 2026-11-01\nplaces: [a, b]\ncolumns: [price, cpus, gib, pods, interrupted]\n"
        "types:\n  m1.big: [0.5, 4, 16, 58, 0.1]\n  m2.small: [0.1, 1, 2, 8, 0.2]\n"
        "arm64: [m2.*]\ngpus:\n  m1.big: [2, nvidia-x]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    table = SeedTable.read("seeded_here", spot_fraction=0.3)
    assert table.prices.values == {
        PriceKey(name, place, CapacityType.ON_DEMAND): price
        for name, price in (("m1.big", 0.5), ("m2.small", 0.1))
        for place in ("a", "b")
    }
    assert (table.prices.spot_fraction, table.prices.dated.year) == (0.3, 2026)
    big, small = table.shapes["m1.big"], table.shapes["m2.small"]
    assert (big.cpu, big.memory, big.pods) == (4000, 16 * 1024**3, 58)
    assert (big.gpus, big.accelerator, big.arch, small.arch) == (2, "nvidia-x", "amd64", "arm64")
    assert table.interrupted == {"m1.big": 0.1, "m2.small": 0.2}


def test_the_mark_is_what_makes_an_object_ours() -> None:
    codec = TagCodec("aws")
    assert codec.ours({**codec.mark(), "team": "a"})
    assert not codec.ours({**codec.mark(), "bigfleet:provider": "other"})
