"""Events: never in the way, never twice."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from api_server import ApiServer, refuses, says
from bigfleet.kube import EventRecorder, ObjectRef
from bigfleet.kube.events import AT_MOST_EVERY, QUEUE
from kube_clients import HastyClock, client_of

PATH = "/api/v1/namespaces/ns/events"
POD = ObjectRef("v1", "Pod", "a", "ns", "uid-a")
OK = says({"metadata": {"name": "e"}})


class MovedClock(HastyClock):
    """The loop's time, plus what a test adds."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@asynccontextmanager
async def recording(api: ApiServer, clock: HastyClock) -> AsyncIterator[EventRecorder]:
    async with client_of(api, clock=clock) as client:
        recorder = EventRecorder(client, "bigfleet-operator")
        running = asyncio.create_task(recorder.run())
        try:
            yield recorder
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def test_an_event_says_what_happened_to_whom(api: ApiServer) -> None:
    api.on("POST", PATH, OK)
    async with recording(api, HastyClock()) as recorder:
        recorder.warn(POD, "BadPenalty", "the annotation is not a quantity")
        await api.until(lambda: len(api.seen) == 1)
    sent = api.seen[0].json
    assert (sent["type"], sent["reason"], sent["count"]) == ("Warning", "BadPenalty", 1)
    assert sent["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "a",
        "namespace": "ns",
        "uid": "uid-a",
    }


async def test_the_same_words_are_one_event_that_is_counted(api: ApiServer) -> None:
    clock = MovedClock()
    api.on("POST", PATH, OK)
    async with recording(api, clock) as recorder:
        recorder.normal(POD, "Kept", "again")
        await api.until(lambda: len(api.seen) == 1)
        name = api.seen[0].json["metadata"]["name"]  # type: ignore[index]
        api.on("PATCH", f"{PATH}/{name}", OK)
        for _ in range(50):
            recorder.normal(POD, "Kept", "again")
        clock.ahead = AT_MOST_EVERY + 1
        recorder.normal(POD, "Kept", "again")
        await api.until(lambda: len(api.seen) == 2)
    assert api.seen[1].method == "PATCH"
    assert api.seen[1].json["count"] == 52


async def test_an_event_that_has_expired_is_written_again(api: ApiServer) -> None:
    clock = MovedClock()
    api.on("POST", PATH, OK)
    async with recording(api, clock) as recorder:
        recorder.normal(POD, "Kept", "again")
        await api.until(lambda: len(api.seen) == 1)
        clock.ahead = AT_MOST_EVERY + 1
        recorder.normal(POD, "Kept", "again")
        await api.until(lambda: len(api.seen) == 3)
    assert [request.method for request in api.seen] == ["POST", "PATCH", "POST"]


async def test_events_of_the_other_replica_are_counted_up(api: ApiServer) -> None:
    api.on("POST", PATH, refuses(409, "AlreadyExists"))
    async with recording(api, HastyClock()) as recorder:
        recorder.normal(POD, "Kept", "again")
        await api.until(lambda: len(api.seen) == 2)
    assert api.seen[1].method == "PATCH"


async def test_an_event_of_one_occurrence_is_written_once_whatever_its_words(
    api: ApiServer,
) -> None:
    clock = MovedClock()
    api.on("POST", PATH, OK)
    async with recording(api, clock) as recorder:
        recorder.normal(POD, "Coming", "in 90 s", once="machine m-1")
        await api.until(lambda: len(api.seen) == 1)
        clock.ahead = AT_MOST_EVERY + 1
        recorder.normal(POD, "Coming", "in 30 s", once="machine m-1")
        recorder.normal(POD, "Coming", "in 30 s", once="machine m-2")
        await api.until(lambda: len(api.seen) == 2)
    names = [request.json["metadata"]["name"] for request in api.seen]  # type: ignore[index]
    assert len(set(names)) == 2


async def test_an_occurrence_the_other_replica_wrote_is_left_as_it_is(api: ApiServer) -> None:
    api.on("POST", PATH, refuses(409, "AlreadyExists"))
    async with recording(api, HastyClock()) as recorder:
        recorder.normal(POD, "Coming", "in 90 s", once="machine m-1")
        recorder.normal(POD, "Kept", "again")
        await api.until(lambda: len(api.seen) == 3)
    assert [request.method for request in api.seen] == ["POST", "POST", "PATCH"]


@pytest.mark.parametrize("name", ["a", "a" * 253, "a" * 199 + ".b", "a" * 199 + "-" + "b" * 20])
async def test_the_name_of_an_event_is_one_that_an_api_server_takes(
    api: ApiServer, name: str
) -> None:
    api.on("POST", PATH, OK)
    async with recording(api, HastyClock()) as recorder:
        recorder.normal(ObjectRef("v1", "Pod", name, "ns", "uid"), "Kept", "again")
        await api.until(lambda: len(api.seen) == 1)
    made = api.seen[0].json["metadata"]["name"]  # type: ignore[index]
    part = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    assert len(made) <= 253
    assert re.fullmatch(rf"{part}(\.{part})*", made)


async def test_a_full_queue_drops_the_oldest_and_counts_it(api: ApiServer) -> None:
    async with client_of(api) as client:
        recorder = EventRecorder(client, "bigfleet-operator")
        for number in range(QUEUE + 3):
            recorder.normal(POD, "Kept", str(number))
        assert recorder.dropped == 3
    assert api.seen == []
