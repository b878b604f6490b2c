"""What only the replicated engine copes with: lost answers, large commits, history, no room."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import grpc
import grpc.aio
import pytest

from bigfleet.coordinator.store.errors import (
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from bigfleet.coordinator.store.etcd import EtcdStore, engine
from bigfleet.coordinator.store.etcd.compaction import compact_to, compact_while, revision_now
from bigfleet.coordinator.store.etcd.connection.faults import CompactedError
from bigfleet.coordinator.store.etcd.connection.members import EtcdMembers
from bigfleet.coordinator.store.etcd.guarded_writer import GuardedWriter
from bigfleet.coordinator.store.etcdapi import rpc_pb2 as pb
from bigfleet.coordinator.store.factory import Engine
from bigfleet.coordinator.store.interface import Leader, Leadership, RowKey, StoredRow
from etcd_members import Cluster, running
from storing import domain, engine_at, leading, opened, rows_in, until
from tcp_proxy import Proxy

pytestmark = pytest.mark.usefixtures("long_lease")


class Counts:
    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self.term = 0

    def store_call(self, op: str, seconds: float) -> None:
        assert seconds >= 0
        self.calls[op] += 1

    def store_error(self, op: str, reason: str) -> None:
        self.errors[op, reason] += 1

    def store_term(self, term: int) -> None:
        self.term = term


def session_of(store: Engine) -> engine._Session:
    assert isinstance(store, EtcdStore)
    assert store._session is not None
    return store._session


def members_of(store: Engine) -> EtcdMembers:
    return session_of(store).members


def lose_answers(store: Engine, count: int) -> None:
    """The next transactions are applied, and no client learns of it."""
    left = [count]
    for member in members_of(store)._stubs:
        real = member.kv.Txn

        async def losing(
            request: pb.TxnRequest,
            real: Callable[..., grpc.aio.UnaryUnaryCall[pb.TxnRequest, pb.TxnResponse]] = real,
            **options: object,
        ) -> pb.TxnResponse:
            response = await real(request, **options)
            if left[0]:
                left[0] -= 1
                nothing = grpc.aio.Metadata()
                raise grpc.aio.AioRpcError(
                    grpc.StatusCode.UNAVAILABLE, nothing, nothing, "the answer was lost"
                )
            assert isinstance(response, pb.TxnResponse)
            return response

        member.kv.Txn = losing  # type: ignore[assignment]


async def keys_below(store: Engine, prefix: str, name: str) -> int:
    """How many keys begin so."""
    start = f"/{prefix}/{name}".encode()
    request = pb.RangeRequest(key=start, range_end=start + b"\xff", count_only=True)
    return (await members_of(store).call("get", lambda one: one.kv.Range, request)).count


async def test_a_commit_whose_answer_is_lost_happens_once(
    one_member: Cluster, prefix: str, tmp_path: Path
) -> None:
    async with opened(engine_at(one_member.address(prefix), tmp_path)) as store:
        leadership = await leading(store)
        lose_answers(store, 2)
        revision = await store.commit([domain("r1", "a")], [], 0, leadership)
        assert (await store.load()).revision == revision
        lose_answers(store, 5)
        many = [domain(f"x{number}", "a") for number in range(500)]
        revision = await store.commit(many, [], revision, leadership)
        assert (await store.load()).revision == revision
        assert len(await rows_in(store)) == 501


async def test_an_election_whose_answer_is_lost_is_won_once(
    one_member: Cluster, prefix: str, tmp_path: Path
) -> None:
    async with opened(engine_at(one_member.address(prefix), tmp_path)) as store:
        lose_answers(store, 3)
        leadership = await leading(store)
        assert leadership.holds()
        await store.commit([domain("r1", "a")], [], 0, leadership)


async def test_a_lost_answer_is_unknown_once_another_client_has_written(
    one_member: Cluster, prefix: str, tmp_path: Path
) -> None:
    async with opened(engine_at(one_member.address(prefix), tmp_path)) as store:
        leadership = await leading(store)
        revision = await store.commit([domain("r1", "a")], [], 0, leadership)
        lose_answers(store, 1)
        # Nothing of it was written, but the writer cannot know: its first attempt got no answer.
        with pytest.raises(StoreUnavailableError, match="unknown; load again"):
            await store.commit([domain("r1", "b")], [], revision - 1, leadership)
        with pytest.raises(StoreConflictError):
            await store.commit([domain("r1", "b")], [], revision - 1, leadership)


@pytest.mark.parametrize("error", [StoreUnavailableError("away"), StoreFullError("no room")])
async def test_a_large_commit_that_was_interrupted_is_seen_whole_and_finished_by_the_next_leader(
    one_member: Cluster,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: StoreError,
) -> None:
    address = one_member.address(prefix)
    async with (
        opened(engine_at(address, tmp_path, "a")) as first,
        opened(engine_at(address, tmp_path, "b")) as second,
    ):
        leadership = await leading(first)
        revision = await first.commit([domain(f"x{n}", "a") for n in range(10)], [], 0, leadership)
        steps = [0]
        step = GuardedWriter._step

        async def dying(*arguments: object) -> None:
            steps[0] += 1
            if steps[0] == 3:
                raise error
            await step(*arguments)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(GuardedWriter, "_step", dying)
            revision = await first.commit(
                [domain(f"y{n}", "b") for n in range(500)],
                [RowKey("domains", f"rack/x{n}") for n in range(9)],
                revision,
                leadership,
            )
        assert await keys_below(first, prefix, "pending") == 1
        wanted = {f"rack/y{n}" for n in range(500)} | {"rack/x9"}
        assert {key.key for key in await rows_in(first)} == wanted
        await first.resign(leadership)

        following = await leading(second)
        assert {key.key for key in await rows_in(second)} == wanted
        assert (await second.load()).revision == revision
        await second.commit([domain("z", "c")], [], revision, following)
        assert {key.key for key in await rows_in(second)} == wanted | {"rack/z"}
        assert await keys_below(second, prefix, "pending") == 0
        assert await keys_below(second, prefix, "batch/") == 0
        assert await keys_below(second, prefix, "rows/") == 502


async def test_a_load_sees_one_moment_while_others_write_and_compact(
    one_member: Cluster, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PAGE_ROWS", 7)
    async with opened(engine_at(one_member.address(prefix), tmp_path)) as store:
        leadership = await leading(store)
        revision = 0
        done = asyncio.Event()

        async def write() -> None:
            nonlocal revision
            for number in range(60):
                rows = [StoredRow("moves", f"m{at:03}", b"%d" % number) for at in range(50)]
                revision = await store.commit(rows, [], revision, leadership)
                if number % 20 == 19:
                    await compact_to(members_of(store), revision)
            done.set()

        writing = asyncio.ensure_future(write())
        loads = 0
        while not done.is_set():
            values = set((await rows_in(store)).values())
            assert len(values) <= 1
            loads += 1
        await writing
        assert loads > 3


async def test_a_watch_goes_on_behind_a_compaction(
    one_member: Cluster, prefix: str, tmp_path: Path
) -> None:
    address = one_member.address(prefix)
    async with (
        Proxy(one_member.endpoints[0]) as proxy,
        opened(engine_at(one_member.address(prefix, [proxy.address]), tmp_path, "f")) as follower,
        opened(engine_at(address, tmp_path, "a")) as store,
    ):
        leadership = await leading(store, "one:1")
        await until(lambda: follower.leader() == Leader("one:1", leadership.term))
        proxy.cut()
        await store.resign(leadership)
        leadership = await leading(store, "two:2")
        await store.commit([domain("r1", "a")], [], 0, leadership)
        await compact_to(members_of(store), await revision_now(members_of(store), store._keys))  # type: ignore[union-attr]
        proxy.repair()
        await until(lambda: follower.leader() == Leader("two:2", leadership.term))
        await store.resign(leadership)
        await until(lambda: follower.leader() is None)


async def test_no_replica_is_known_to_lead_while_etcd_is_away(
    one_member: Cluster, prefix: str, tmp_path: Path
) -> None:
    address = one_member.address(prefix)
    async with (
        Proxy(one_member.endpoints[0]) as proxy,
        opened(engine_at(one_member.address(prefix, [proxy.address]), tmp_path, "f")) as follower,
        opened(engine_at(address, tmp_path, "a")) as store,
    ):
        leadership = await leading(store, "one:1")
        await until(lambda: follower.leader() is not None)
        proxy.cut()
        await until(lambda: follower.leader() is None)
        proxy.repair()
        await until(lambda: follower.leader() == Leader("one:1", leadership.term))


async def test_the_leader_lets_old_revisions_go(
    one_member: Cluster, prefix: str, tmp_path: Path
) -> None:
    async with opened(engine_at(one_member.address(prefix), tmp_path)) as store:
        leadership = await leading(store)
        old = await store.commit([domain("r1", "a")], [], 0, leadership)
        await store.commit([domain("r1", "b")], [], old, leadership)
        keys = session_of(store)._keys
        scope = Leadership(1)
        compacting = asyncio.ensure_future(
            compact_while(scope, members_of(store), keys, every=0.01)
        )
        request = pb.RangeRequest(key=keys.head, revision=old)

        async def read_while_it_is_there() -> None:
            while True:
                await members_of(store).call("get", lambda member: member.kv.Range, request)

        async with asyncio.timeout(60):
            with pytest.raises(CompactedError):
                await read_while_it_is_there()
            scope.lost.set()
            await compacting
        assert len(await rows_in(store)) == 1


async def test_members_that_are_dead_or_silent_are_passed_over(
    three_members: Cluster, prefix: str, tmp_path: Path
) -> None:
    followers = [
        member for member in three_members.members if member is not three_members.leading_member()
    ]
    silent = followers[0]
    endpoints = ["127.0.0.1:1", silent.client, *(m.client for m in three_members.members)]
    async with opened(engine_at(three_members.address(prefix, endpoints), tmp_path)) as store:
        leadership = await leading(store)
        revision = await store.commit([domain("r1", "a")], [], 0, leadership)
        silent.signal(signal.SIGSTOP)
        try:
            await store.commit([domain("r2", "a")], [], revision, leadership)
        finally:
            silent.signal(signal.SIGCONT)
        assert leadership.holds()


async def test_an_etcd_that_cannot_be_reached_is_said_with_the_remedy(tmp_path: Path) -> None:
    counts = Counts()
    store = engine_at("etcd://127.0.0.1:1,127.0.0.1:2", tmp_path, counts=counts)
    with pytest.raises(StoreUnavailableError, match="check that a majority of the members run"):
        await store.open()
    assert counts.errors == {("get", "timeout"): 1}


async def test_calls_failures_and_the_term_of_etcd_are_counted(
    one_member: Cluster, prefix: str, tmp_path: Path
) -> None:
    counts = Counts()
    async with opened(engine_at(one_member.address(prefix), tmp_path, counts=counts)) as store:
        leadership = await leading(store)
        await store.commit([domain("r1", "a")], [], 0, leadership)
        await store.load()
        assert set(counts.calls) == {"get", "lease", "txn", "range"}
        assert counts.term > 0
        assert not counts.errors


async def test_a_full_etcd_is_said_and_the_leader_stays(prefix: str, tmp_path: Path) -> None:
    with running(1, ["--quota-backend-bytes=3000000"]) as small:
        async with opened(engine_at(small.address(prefix), tmp_path)) as store:
            leadership = await leading(store)
            revision = 0
            value = b'"' + b"x" * 400_000 + b'"'

            async def fill() -> None:
                nonlocal revision
                # etcd looks at its size every tenth of a second.
                while True:
                    row = StoredRow("moves", "m", value)
                    revision = await store.commit([row], [], revision, leadership)

            async with asyncio.timeout(60):
                with pytest.raises(StoreFullError, match="alarm disarm"):
                    await fill()
            loaded = await store.load()
            assert loaded.revision == revision
            assert leadership.holds()
            many = [domain(f"d{number}", "a") for number in range(300)]
            with pytest.raises(StoreFullError):
                await store.commit(many, [], revision, leadership)
            assert len((await store.load()).rows) == len(loaded.rows)
