"""The client by itself: tokens, deadlines, answers, and several providers."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

import grpc
import pytest

from bigfleet.model import MachineError, MachineState
from bigfleet.provider import (
    CallError,
    FencedError,
    MachineNotFoundError,
    NotSupportedError,
    ProviderClient,
    ProviderError,
    Providers,
    ProviderSite,
    SiteError,
    UnknownProviderError,
    UnusableAnswerError,
)
from bigfleet.wire.fencing import FencingStamps
from bigfleet_api.v1alpha1 import provider_pb2 as pb

_T = TypeVar("_T")
SITE = ProviderSite("cloud", "127.0.0.1:9001", "region-a")


class Script:
    """A transport that notes what it is asked and answers as told."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, float]] = []
        self.ack = pb.TransitionAck(operation_id="op-1", machine=slot("m-1"))
        self.listing = pb.MachineList()
        self.error: CallError | None = None
        self.closed = False

    async def create(self, request: pb.CreateRequest, seconds: float) -> pb.TransitionAck:
        return self._note(request, seconds, self.ack)

    async def configure(self, request: pb.ConfigureRequest, seconds: float) -> pb.TransitionAck:
        return self._note(request, seconds, self.ack)

    async def drain(self, request: pb.DrainRequest, seconds: float) -> pb.TransitionAck:
        return self._note(request, seconds, self.ack)

    async def delete(self, request: pb.DeleteRequest, seconds: float) -> pb.TransitionAck:
        return self._note(request, seconds, self.ack)

    async def get(self, request: pb.MachineRef, seconds: float) -> pb.Machine:
        return self._note(request, seconds, self.ack.machine)

    async def list(self, request: pb.ListFilter, seconds: float) -> pb.MachineList:
        return self._note(request, seconds, self.listing)

    async def close(self) -> None:
        self.closed = True

    def _note(self, request: object, seconds: float, answer: _T) -> _T:
        self.asked.append((request, seconds))
        if self.error is not None:
            raise self.error
        return answer


def slot(machine_id: str, state: int = 1, **fields: object) -> pb.Machine:
    return pb.Machine(id=machine_id, state=state, **fields)  # type: ignore[arg-type]


def scripted(epoch: int = 5) -> tuple[ProviderClient, Script]:
    script = Script()
    return ProviderClient(SITE, FencingStamps("shard-a", epoch), script), script


async def test_every_attempt_has_a_token_of_its_own() -> None:
    client, script = scripted(epoch=5)
    script.error = CallError(grpc.StatusCode.UNAVAILABLE, "down")
    for attempt in (
        client.create("m"),
        client.configure("m", "c", b"blob", {"k": "v"}),
        client.drain("m", 30),
        client.delete("m"),
    ):
        with pytest.raises(ProviderError):
            await attempt
    token = {"machine_id": "m", "shard_id": "shard-a", "shard_epoch": 5}
    assert [request for request, _ in script.asked] == [
        pb.CreateRequest(**token, sequence_number=1),  # type: ignore[arg-type]
        pb.ConfigureRequest(
            **token, sequence_number=2, cluster_id="c", bootstrap_blob=b"blob",  # type: ignore[arg-type]
            shard_metadata={"k": "v"},
        ),
        pb.DrainRequest(**token, sequence_number=3, grace_period_seconds=30),  # type: ignore[arg-type]
        pb.DeleteRequest(**token, sequence_number=4),  # type: ignore[arg-type]
    ]  # fmt: skip


async def test_one_counter_serves_all_providers() -> None:
    stamps, first, second = FencingStamps("shard-a", 1), Script(), Script()
    await ProviderClient(SITE, stamps, first).create("m")
    await ProviderClient(SITE, stamps, second).create("m")
    sent = [request for request, _ in (*first.asked, *second.asked)]
    assert [getattr(request, "sequence_number", 0) for request in sent] == [1, 2]


async def test_calls_have_deadlines_that_a_caller_may_shorten() -> None:
    client, script = scripted()
    await client.create("m")
    await client.get("m-1")
    await client.list()
    await client.get("m-1", seconds=1.5)
    assert [seconds for _, seconds in script.asked] == [30.0, 30.0, 120.0, 1.5]


async def test_a_get_answered_with_another_machine_is_refused() -> None:
    client, _ = scripted()
    with pytest.raises(MachineError, match="asked for machine 'm-2', provider cloud shows 'm-1'"):
        await client.get("m-2")


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code.name != "OK"])
async def test_three_codes_have_a_class_and_all_others_pass_through(code: grpc.StatusCode) -> None:
    client, script = scripted()
    script.error = CallError(code, "because")
    with pytest.raises(ProviderError) as raised:
        await client.create("m-7")
    classes: dict[str, type[ProviderError]] = {
        "NOT_FOUND": MachineNotFoundError,
        "UNIMPLEMENTED": NotSupportedError,
        "FAILED_PRECONDITION": FencedError,
    }
    assert type(raised.value) is classes.get(code.name, ProviderError)
    assert raised.value.code is code
    assert str(raised.value) == f"provider cloud: Create m-7: {code.name}: because"
    assert len(script.asked) == 1


async def test_a_list_is_used_without_the_records_that_break_a_rule() -> None:
    client, script = scripted()
    machines = [slot("good"), slot("bad", price_per_hour=-1.0), slot("fine")]
    script.listing = pb.MachineList(machines=machines, revision=b"r-9")
    listing = await client.list(states=[MachineState.IDLE], max_results=3, since=b"r-8")
    request, _ = script.asked[0]
    assert request == pb.ListFilter(states=[3], max_results=3, since_revision=b"r-8")  # type: ignore[list-item]
    assert [machine.id for machine in listing.machines] == ["good", "fine"]
    assert {(m.provider, m.region) for m in listing.machines} == {("cloud", "region-a")}
    assert [(r.machine_id, r.error.reason) for r in listing.refused] == [("bad", "price")]
    assert listing.revision == b"r-9"


async def test_an_unknown_state_makes_the_whole_answer_unusable() -> None:
    client, script = scripted()
    script.listing = pb.MachineList(machines=[slot("good"), slot("odd", state=42)])
    with pytest.raises(UnusableAnswerError, match="state 42"):
        await client.list()
    script.ack = pb.TransitionAck(operation_id="op", machine=slot("odd", state=42))
    with pytest.raises(UnusableAnswerError):
        await client.create("odd")


async def test_an_unusable_answer_is_counted_as_failed_and_a_refused_record_is_not() -> None:
    script, calls = Script(), list[tuple[str, str]]()
    client = ProviderClient(
        SITE, FencingStamps("shard-a", 1), script, lambda _, *call: calls.append(call[:2])
    )
    for state, code in ((42, "INTERNAL"), (3, "OK")):
        script.listing = pb.MachineList(machines=[slot("good"), slot("odd", state)])
        script.ack = pb.TransitionAck(operation_id="op", machine=slot("odd", state))
        for call in (client.list(), client.create("odd"), client.get("odd")):
            with contextlib.suppress(UnusableAnswerError, MachineError):
                await call
        assert calls == [("List", code), ("Create", code), ("Get", code)]
        calls.clear()


async def test_an_accepted_call_with_a_broken_snapshot_is_still_accepted() -> None:
    client, script = scripted()
    script.ack = pb.TransitionAck(operation_id="op-2", machine=slot("m", state=3))
    ack = await client.create("m")
    assert (ack.operation_id, ack.machine) == ("op-2", None)
    assert ack.refused is not None
    assert ack.refused.error.reason == "structural"


async def test_a_long_list_leaves_the_event_loop_to_others() -> None:
    client, script = scripted()
    script.listing = pb.MachineList(machines=[slot(f"m-{n}") for n in range(2_000)])
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    assert len((await client.list()).machines) == 2_000
    counting.cancel()
    assert turns >= 4


def recorded() -> tuple[Providers, Callable[[str], list[Script]]]:
    made: list[tuple[str, Script]] = []
    stamps = FencingStamps("shard-a", 1)

    def connect(site: ProviderSite) -> ProviderClient:
        made.append((site.name, Script()))
        return ProviderClient(site, stamps, made[-1][1])

    return Providers(connect), lambda name: [script for key, script in made if key == name]


async def test_a_new_list_of_providers_touches_only_what_changed() -> None:
    providers, scripts = recorded()
    stays, moves, goes = (ProviderSite(name, "h:1") for name in ("stays", "moves", "goes"))
    await providers.use([stays, moves, goes])
    before = providers["stays"]
    await providers.use([ProviderSite("moves", "h:2"), stays, ProviderSite("comes", "h:1")])
    assert [client.name for client in providers] == ["comes", "moves", "stays"]
    assert providers["stays"] is before
    assert providers["moves"].site.address == "h:2"
    assert [script.closed for script in scripts("moves")] == [True, False]
    assert [script.closed for script in scripts("goes")] == [True]
    assert "goes" not in providers
    await providers.close()
    assert len(providers) == 0
    assert scripts("stays")[0].closed


async def test_names_are_unique_and_unknown_ones_are_named() -> None:
    providers, _ = recorded()
    with pytest.raises(SiteError, match="'a' is listed twice"):
        await providers.use([ProviderSite("a", "h:1"), ProviderSite("a", "h:2")])
    await providers.use([ProviderSite("a", "h:1")])
    with pytest.raises(UnknownProviderError, match="'b' is unknown: registered are a"):
        providers["b"]


@pytest.mark.parametrize(("name", "address"), [("", "h:1"), ("a", "h"), ("a", ":1"), ("a", "h:x")])
def test_a_site_that_cannot_be_dialled_is_refused(name: str, address: str) -> None:
    with pytest.raises(SiteError):
        ProviderSite(name, address)


async def test_every_call_is_counted_with_how_it_ended() -> None:
    script, seen = Script(), list[tuple[str, str, str]]()
    client = ProviderClient(
        SITE, FencingStamps("shard-a", 5), script, lambda *told: seen.append(told[:3])
    )
    await client.create("m-1")
    await client.list()
    script.error = CallError(grpc.StatusCode.UNAVAILABLE, "away")
    with pytest.raises(ProviderError):
        await client.delete("m-1")
    assert seen == [
        ("cloud", "Create", "OK"), ("cloud", "List", "OK"), ("cloud", "Delete", "UNAVAILABLE"),
    ]  # fmt: skip
