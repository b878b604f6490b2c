"""Lists as bytes: records are found without decoding them, and garbage is refused."""

import asyncio

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import MachineError
from bigfleet.provider import (
    CallError,
    GarbageError,
    ProviderClient,
    ProviderError,
    ProviderSite,
    UnusableAnswerError,
    id_of,
)
from bigfleet.provider.pages import Page
from bigfleet.wire.fencing import FencingStamps
from bigfleet_api.v1alpha1 import provider_pb2 as pb


def read_page(payload: bytes) -> Page:
    """Find the records of a MachineList without decoding them."""
    page = Page(payload)
    while page.read(len(payload) + 1):
        pass
    return page


SITE = ProviderSite("cloud", "127.0.0.1:9001", "region-a")


class Lists:
    """A transport that lists, or does not answer at all."""

    def __init__(self, answer: pb.MachineList | None) -> None:
        self.answer = answer

    async def list(self, request: pb.ListFilter, seconds: float) -> pb.MachineList:
        if self.answer is None:
            await asyncio.Event().wait()
        assert self.answer is not None
        return self.answer


def client(answer: pb.MachineList | None, calls: list[tuple[str, str]]) -> ProviderClient:
    def watch(provider: str, method: str, code: str, seconds: float) -> None:
        assert provider == "cloud"
        calls.append((method, code))

    transport = Lists(answer)
    return ProviderClient(SITE, FencingStamps("shard-a", 1), transport, watch)  # type: ignore[arg-type]


async def raw(dialled: ProviderClient, seconds: float = 5.0) -> bytes:
    async with dialled.list_raw(seconds=seconds) as payload:
        return payload


@given(
    st.lists(st.tuples(st.text(), st.floats(0, 9), st.text())),
    st.binary(max_size=40),
    st.binary(max_size=5),
)
def test_records_are_where_the_list_says(
    texts: list[tuple[str, float, str]], revision: bytes, extra: bytes
) -> None:
    machines = [pb.Machine(id=a, price_per_hour=p, zone=z, state=1) for a, p, z in texts]  # type: ignore[arg-type]
    payload = pb.MachineList(machines=machines, revision=revision).SerializeToString()
    # A field of a later release, among those that are known.
    unknown = (
        b"\xba\x3e" + bytes([len(extra)]) + extra + b"\xc0\x3e\x07\xc5\x3e0000\xc1\x3e00000000"
    )
    page = read_page(unknown + payload + unknown)
    assert [page.record(n) for n in range(len(page))] == [m.SerializeToString() for m in machines]
    assert [id_of(page.record(n)) for n in range(len(page))] == [m.id for m in machines]
    assert page.revision == revision


@given(st.binary(max_size=60))
def test_any_bytes_are_a_page_or_refused(payload: bytes) -> None:
    try:
        page = read_page(payload)
    except GarbageError:
        return
    assert all(0 <= s <= e <= len(payload) for s, e in zip(page.starts, page.ends, strict=True))


@given(st.binary(max_size=20))
def test_a_record_that_opens_with_something_else_has_no_id_to_be_known_by(record: bytes) -> None:
    assert isinstance(id_of(record), str)
    assert id_of(b"\x10\x01" + record) == ""


async def test_a_raw_list_is_decoded_record_by_record() -> None:
    calls: list[tuple[str, str]] = []
    good, bad, odd = (
        pb.Machine(id="good", state=pb.MACHINE_STATE_SPECULATIVE),
        pb.Machine(id="bad", state=pb.MACHINE_STATE_IDLE),
        pb.Machine(id="odd", state=77),  # type: ignore[arg-type]
    )
    dialled = client(pb.MachineList(machines=[good, bad, odd], revision=b"r"), calls)
    page = read_page(await raw(dialled))
    machine = dialled.decode(page.record(0))
    assert (machine.id, machine.provider, machine.region) == ("good", "cloud", "region-a")
    with pytest.raises(MachineError, match="no host"):
        dialled.decode(page.record(1))
    with pytest.raises(UnusableAnswerError, match="state 77"):
        dialled.decode(page.record(2))
    with pytest.raises(UnusableAnswerError, match="no machine record"):
        dialled.decode(b"\xff\xff")
    assert calls == [("List", "OK")]


async def test_a_malformed_stamp_is_logged_in_the_promised_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metadata = {"bigfleet.lucy.sh/assigned-priority": "many"}
    odd = pb.Machine(
        id="m", state=pb.MACHINE_STATE_CONFIGURING, cluster="c", shard_metadata=metadata,
        host=pb.HostRef(ref="h"),
    )  # fmt: skip
    with caplog.at_level("WARNING"):
        machine = client(None, []).decode(odd.SerializeToString())
    assert machine.stamp is not None
    assert machine.stamp.priority == 0
    (told,) = caplog.records
    assert told.message == "shard_metadata decode failed at ingest"
    assert (told.__dict__["machine"], "many" in told.__dict__["error"]) == ("m", True)


async def test_equal_records_have_equal_bytes_whatever_the_order_of_their_labels() -> None:
    one = pb.Machine(id="m", labels={"a": "1", "b": "2"})
    other = pb.Machine(id="m", labels={"b": "2", "a": "1"})
    first, second = (pb.MachineList(machines=[machine]) for machine in (one, other))
    assert await raw(client(first, [])) == await raw(client(second, []))


async def test_a_transport_that_hangs_is_given_up() -> None:
    calls: list[tuple[str, str]] = []
    with pytest.raises(ProviderError, match="DEADLINE_EXCEEDED: no answer within -1 s"):
        await raw(client(None, calls), seconds=-1.0)
    assert calls == [("List", "DEADLINE_EXCEEDED")]


async def test_a_failed_call_is_counted_under_its_code() -> None:
    calls: list[tuple[str, str]] = []
    dialled = client(None, calls)

    async def refuse(request: pb.ListFilter, seconds: float) -> pb.MachineList:
        raise CallError(grpc.StatusCode.UNAVAILABLE, "down")

    dialled._transport.list = refuse  # type: ignore[method-assign]
    with pytest.raises(ProviderError, match="UNAVAILABLE: down"):
        await raw(dialled)
    assert calls == [("List", "UNAVAILABLE")]


async def test_a_list_that_cannot_be_read_is_counted_as_failed() -> None:
    calls: list[tuple[str, str]] = []
    odd = pb.Machine(id="odd", state=77)  # type: ignore[arg-type]
    dialled = client(pb.MachineList(machines=[odd]), calls)
    with pytest.raises(UnusableAnswerError, match="state 77"):
        async with dialled.list_raw() as payload:
            dialled.decode(read_page(payload).record(0))
    assert calls == [("List", "INTERNAL")]


async def test_what_befalls_the_reader_is_not_the_providers_fault() -> None:
    calls: list[tuple[str, str]] = []
    down = ProviderError("cloud", "List", "", grpc.StatusCode.UNAVAILABLE, "the next page")
    for fault in (down, asyncio.CancelledError()):
        with pytest.raises(type(fault)):
            async with client(pb.MachineList(), calls).list_raw():
                raise fault
    assert calls == [("List", "OK")] * 2
