"""A copy that follows the API server: through pages, cuts, gaps and odd objects."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from api_server import (
    EXPIRED,
    ApiServer,
    bookmark,
    event,
    hangs,
    hangs_up,
    lists,
    pod,
    refuses,
    watches,
)
from bigfleet.kube import Change, ChangeKind, Informer, Object
from bigfleet.kube.objects import PODS
from kube_clients import Counts, HastyClock, client_of, until

PATH = "/api/v1/pods"


class Told:
    """Remembers changes as people would write them: +a, ~a, -a."""

    def __init__(self, informer: Informer[Object]) -> None:
        self.changes: list[str] = []
        informer.on_change(self.take)

    def take(self, change: Change[Object]) -> None:
        sign = {"added": "+", "changed": "~", "deleted": "-"}[change.kind.value]
        self.changes.append(sign + change.key.removeprefix("ns/"))


class Follower:
    """An informer that runs, and what it told."""

    def __init__(self, informer: Informer[Object], counts: Counts, clock: HastyClock) -> None:
        self.informer = informer
        self.counts = counts
        self.clock = clock
        self.told = Told(informer)

    async def has_told(self, *changes: str) -> None:
        """Until exactly these changes were told."""
        with suppress(TimeoutError):
            await until(lambda: len(self.told.changes) >= len(changes))
        assert self.told.changes == list(changes)


@asynccontextmanager
async def following(api: ApiServer, *, page: int = 2) -> AsyncIterator[Follower]:
    counts, clock = Counts(), HastyClock()
    async with client_of(api, observer=counts, clock=clock) as client:
        informer = Informer(client, PODS, page=page)
        running = asyncio.create_task(informer.run())
        try:
            yield Follower(informer, counts, clock)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def test_a_list_of_several_pages_is_complete_before_it_counts(api: ApiServer) -> None:
    last = asyncio.Event()

    async def late(request: object) -> object:
        await last.wait()
        return await lists(pod("c", 3), version=9)(request)  # type: ignore[arg-type]

    api.on("GET", PATH, lists(pod("a", 1), pod("b", 2), version=9, token="more"), late, hangs)  # type: ignore[arg-type]
    async with following(api) as follower:
        await api.until(lambda: len(api.seen) == 2)
        assert not follower.informer.synced
        last.set()
        await follower.informer.wait_synced()
        assert sorted(follower.informer.objects) == ["ns/a", "ns/b", "ns/c"]
        await api.until(lambda: len(api.seen) == 3)
    assert api.queries("continue") == ["", "more", ""]
    assert api.queries("limit") == ["2", "2", ""]
    assert api.seen[2].query["resourceVersion"] == "9"
    assert api.seen[2].query["allowWatchBookmarks"] == "true"


async def test_changes_are_told_once_and_in_order(api: ApiServer) -> None:
    stream = (
        event("ADDED", pod("b", 11))
        + event("MODIFIED", pod("a", 12))
        + event("MODIFIED", pod("b", 13))
        + event("DELETED", pod("a", 14))
    )
    api.on("GET", PATH, lists(pod("a", 1), version=10), watches(stream, then=hangs))
    async with following(api) as follower:
        await follower.has_told("+a", "+b", "~a", "~b", "-a")
        assert list(follower.informer.objects) == ["ns/b"]


async def test_lines_may_come_in_any_pieces(api: ApiServer) -> None:
    line = event("ADDED", pod("b", 11))
    pieces = [line[:1], line[1:20], line[20:-1], line[-1:] + b"\n" + line[:0]]
    api.on("GET", PATH, lists(version=10), watches(*pieces, then=hangs))
    async with following(api) as follower:
        await follower.has_told("+b")


async def test_a_cut_watch_goes_on_where_it_was_and_repeats_nothing(api: ApiServer) -> None:
    api.on(
        "GET",
        PATH,
        lists(pod("a", 1), version=10),
        watches(event("ADDED", pod("b", 11)), event("ADDED", pod("c", 12))[:-9], then=hangs_up),
        watches(event("ADDED", pod("c", 12)), then=hangs),
    )
    async with following(api) as follower:
        await follower.has_told("+a", "+b", "+c")
        assert follower.counts.restarts == ["error"]
    assert api.queries("resourceVersion") == ["", "10", "11"]


async def test_a_bookmark_is_where_the_next_watch_begins(api: ApiServer) -> None:
    api.on("GET", PATH, lists(version=10), watches(bookmark(77)), hangs)
    async with following(api) as follower:
        await api.until(lambda: len(api.seen) == 3)
        assert follower.counts.restarts == ["closed"]
    assert api.queries("resourceVersion") == ["", "10", "77"]


@pytest.mark.parametrize(
    "expiry", [watches(EXPIRED), refuses(410, "Expired", "too old")], ids=["event", "answer"]
)
async def test_after_a_gap_the_difference_is_told(api: ApiServer, expiry: object) -> None:
    api.on(
        "GET",
        PATH,
        lists(pod("a", 1), pod("b", 2), pod("same", 3), version=10),
        expiry,  # type: ignore[arg-type]
        lists(pod("a", 21), pod("c", 22), pod("same", 3), version=30),
        hangs,
    )
    async with following(api, page=10) as follower:
        await follower.has_told("+a", "+b", "+same", "~a", "+c", "-b")
        assert follower.counts.restarts == ["expired"]


async def test_an_object_made_again_under_its_name_is_another_one(api: ApiServer) -> None:
    api.on(
        "GET",
        PATH,
        lists(pod("a", 1, uid="first"), version=10),
        watches(EXPIRED),
        lists(pod("a", 21, uid="second"), version=30),
        watches(event("DELETED", pod("a", 15, uid="first")), bookmark(31), then=hangs),
    )
    async with following(api) as follower:
        await follower.has_told("+a", "-a", "+a")
        found = follower.informer.get("ns/a")
        assert found is not None
        assert found.metadata.uid == "second"


TOO_OLD = refuses(410, "Expired", "the provided continue parameter is too old")


async def test_a_list_that_expires_between_pages_is_begun_again(api: ApiServer) -> None:
    api.on(
        "GET",
        PATH,
        lists(pod("a", 1), pod("gone", 2), version=10, token="old"),
        TOO_OLD,
        lists(pod("a", 1), version=20, token="new"),
        lists(pod("b", 2), version=20),
        hangs,
    )
    async with following(api) as follower:
        await follower.informer.wait_synced()
        await follower.has_told("+a", "+gone", "+b", "-gone")
    assert api.queries("continue")[:4] == ["", "old", "", "new"]


async def test_a_list_that_expires_between_pages_again_is_read_in_one_piece(api: ApiServer) -> None:
    api.on(
        "GET",
        PATH,
        lists(pod("a", 1), version=10, token="old"),
        TOO_OLD,
        lists(pod("a", 1), version=10, token="old"),
        TOO_OLD,
        lists(pod("a", 1), pod("b", 2), version=20),
        hangs,
    )
    async with following(api) as follower:
        await follower.informer.wait_synced()
        await follower.has_told("+a", "+b")
    assert api.queries("limit")[:5] == ["2", "2", "2", "2", ""]


async def test_an_unreadable_object_hides_no_other_and_keeps_its_last_good_state(
    api: ApiServer,
) -> None:
    odd = {"metadata": {"name": "odd", "namespace": "ns", "labels": ["not", "a", "map"]}}
    api.on(
        "GET",
        PATH,
        lists(pod("a", 1), odd, version=10),
        watches(event("MODIFIED", pod("a", 12, labels="text")), EXPIRED),
        lists(pod("a", 12, labels="text"), pod("b", 13), version=20),
        hangs,
    )
    problems: list[str] = []
    async with following(api) as follower:
        follower.informer.on_bad(lambda bad: problems.append(f"{bad.metadata.name}: {bad.problem}"))
        await follower.has_told("+a", "+b")
        assert sorted(follower.informer.objects) == ["ns/a", "ns/b"]
    assert [problem.split(":")[0] for problem in problems] == ["odd", "a", "a"]
    assert "Expected `object`" in problems[-1]


async def test_trouble_is_waited_out_longer_and_longer_and_said(api: ApiServer) -> None:
    api.on(
        "GET",
        PATH,
        *[refuses(403, "Forbidden", "no right to list pods")] * 6,
        lists(version=1),
        hangs,
    )
    async with following(api) as follower:
        await api.until(lambda: len(api.seen) == 4)
        assert follower.informer.trouble == "pods: no right to list pods"
        assert not follower.informer.synced
        await follower.informer.wait_synced()
        assert not follower.informer.trouble
        waits = follower.clock.slept[:6]
    assert all(0.5 * 0.5 * 2**n <= wait <= 0.5 * 2**n for n, wait in enumerate(waits))


async def test_a_server_that_says_when_to_come_again_is_not_waited_for_much_longer(
    api: ApiServer,
) -> None:
    api.on(
        "GET",
        PATH,
        lists(version=10),
        *[refuses(429, "TooManyRequests", "storage is (re)initializing", after="1")] * 8,
        refuses(410, "Expired", "too old"),
        lists(pod("a", 1), version=20),
        hangs,
    )
    async with following(api) as follower:
        await follower.has_told("+a")
        *waits, last = follower.clock.slept
    assert len(waits) == 8
    assert all(1 <= wait <= 5 for wait in waits)
    assert last <= 0.5


async def test_a_server_that_hangs_up_at_once_is_not_asked_again_at_once(api: ApiServer) -> None:
    api.on("GET", PATH, lists(version=10), *[watches()] * 5, hangs)
    async with following(api) as follower:
        await api.until(lambda: len(api.seen) == 7)
        assert len(follower.clock.slept) == 5
        assert sum(follower.clock.slept) > 5


async def test_a_handlers_mistake_is_no_other_handlers(api: ApiServer) -> None:
    api.on("GET", PATH, lists(pod("a", 1), pod("b", 1), version=10), hangs)

    def clumsy(change: Change[Object]) -> None:
        raise RuntimeError(change.key)

    async with following(api) as follower:
        follower.informer.on_change(clumsy)
        await follower.informer.wait_synced()
        later = Told(follower.informer)
    assert follower.told.changes == later.changes == ["+a", "+b"]


async def test_garbage_on_a_watch_is_an_interruption_and_not_the_end(api: ApiServer) -> None:
    api.on(
        "GET",
        PATH,
        lists(version=10),
        watches(b"<html>\n"),
        watches(event("ADDED", pod("a", 11)), then=hangs),
    )
    async with following(api) as follower:
        await follower.has_told("+a")


def test_every_kind_of_change_has_a_sign() -> None:
    assert {kind.value for kind in ChangeKind} == {"added", "changed", "deleted"}
