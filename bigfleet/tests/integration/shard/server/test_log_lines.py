"""The log lines of a shard that keep their words: each is provoked once, and found.

Dashboards, alerts and people's habits are built on them. A few stories make a shard say everything
it can say; every line of the table is then looked for, with its level and its keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from log_lines import Line, look_for, of_records, promised

from bigfleet.cli.errors import FailureError
from bigfleet.cli.processes import process as cli_process
from bigfleet.cli.processes.process import process_command
from bigfleet.model import LABEL_ZONE, Profile, Requirement, RequirementOperator
from bigfleet.provider import ProviderSite
from bigfleet.shard.act.rails import RailSettings
from bigfleet.shard.errors import DrainRefusedError
from bigfleet.shard.peers.errors import ReportError
from bigfleet.shard.server import shard as product
from bigfleet.shard.server.process import ServedShard, ServerOptions, serve
from bigfleet.shard.server.read_service import ShardReadServicer
from bigfleet.shard.server.settings import ShardConfig, ShardSettings
from bigfleet.shard.server.status import Facade
from bigfleet.wire.machines import KEY_PRIORITY
from bigfleet_api.v1alpha1 import coordinator_pb2 as coordinator
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2 as read
from bigfleet_lab.simcluster.faults import Garbage
from bigfleet_lab.simcluster.workload import WorkObject
from sim.slots import S
from whole.living import GI, Setting, Wants, Whole, cluster, live, provider


class Ear(logging.Handler):
    """Keeps every record."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[logging.LogRecord]]:
    """Everything that was said while the stories ran."""
    ear, ours = Ear(), logging.getLogger("bigfleet")
    level = ours.level
    ours.addHandler(ear)
    ours.setLevel(logging.INFO)
    try:
        live(_troubled(), _trouble)
        live(_suppressed(dry_run=True), _look_on)
        live(_suppressed(dry_run=False), _paused)
        asyncio.run(_served(tmp_path_factory.mktemp("data")))
        _commanded()
        yield ear.records
    finally:
        ours.removeHandler(ear)
        ours.setLevel(level)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("line", promised("shard", "all"), ids=str)
def test_a_line_is_said_with_its_level_and_its_keys(
    log: list[logging.LogRecord], line: Line
) -> None:
    look_for(line, of_records(log))


# -- what provokes them ----------------------------------------------------------------------------


class Coordinators:
    """Away at first; then of one term, and of an older one."""

    def __init__(self) -> None:
        self.terms = [0, 5, 3]

    async def report(
        self, address: str, report: coordinator.ShardReport, seconds: float
    ) -> coordinator.ReportAck:
        term = self.terms.pop(0) if self.terms else 5
        if not term:
            raise ReportError("UNAVAILABLE", "no peer is there")
        return coordinator.ReportAck(acknowledged=True, coordinator_term=term)

    async def close(self) -> None:
        """Nothing is open."""


def _gang(name: str, pods: int) -> tuple[WorkObject, int]:
    same = [Requirement.of(LABEL_ZONE, RequirementOperator.SAME)]
    request = {"cpu": 4_000, "memory": 4 * GI}
    return WorkObject(name, Profile.of(same, priority=50), request, f"{LABEL_ZONE}|{name}"), pods


def _troubled() -> Setting:
    def tune(tuning: ShardConfig) -> ShardConfig:
        return replace(tuning, phase_attribution=True, coordinators=("c:1",))

    def ports(ports: product.ShardEnvironment) -> product.ShardEnvironment:
        return replace(ports, caller=Coordinators())

    rows = cluster("c1", 2, rows=12)
    gangs = Wants(**{**_fields(cluster("c2")), "replicas": (_gang("small", 2), _gang("huge", 30))})
    return Setting([provider("p1", 60)], [rows, gangs], tune, audit=lambda lines: None, ports=ports)


def _fields(wants: Wants) -> dict[str, Any]:
    return {name: getattr(wants, name) for name in wants.__dataclass_fields__}


async def _trouble(whole: Whole) -> None:
    await whole.until(lambda: whole.bound() >= 24, 300.0, "what the cluster wants")
    await _bad_frames(whole)
    await _bad_provider(whole)
    await _no_peer_there(whole)
    whole.scale(0)
    await asyncio.sleep(150.0)
    await _strangers(whole)
    await _fenced(whole)
    await whole.stop()


async def _bad_frames(whole: Whole) -> None:
    for kind in (Garbage.BAD_QUANTITY, Garbage.EMPTY, Garbage.BYTES):
        session = whole.operator().session
        assert session is not None
        session.send_garbage(kind)
        await asyncio.sleep(5.0)
    await whole.until(lambda: whole.operator().connected, 60.0, "a session")


async def _bad_provider(whole: Whole) -> None:
    model, shard = whole.provider, whole.shard
    model.habits.garbage = "price"
    shard.lister.refresh_all()
    await asyncio.sleep(15.0)
    model.habits.garbage = ""
    bound = next(slot for slot in model.slots.values() if slot.cluster == "c1")
    bound.metadata = {**bound.metadata, KEY_PRIORITY: "high"}
    model._changed(bound)
    await asyncio.sleep(15.0)
    idle = next(slot for slot in model.slots.values() if slot.state is S.IDLE)
    shard.book.mark_busy(idle.id)
    model.retire(idle)
    shard.lister.refresh_all()
    await asyncio.sleep(15.0)
    shard.book.free(idle.id)
    model.stop()
    whole.scale(3)
    await asyncio.sleep(15.0)
    model.start()
    await whole.until(lambda: whole.bound() >= 36, 300.0, "what the cluster wants now")


async def _no_peer_there(whole: Whole) -> None:
    whole.world.network.cut("s1", "c1")
    whole.world.board.break_streams("c1")
    await whole.until(lambda: not whole.shard.sessions.connected("c1"), 60.0, "a lost session")
    whole.world.monitor.excuse("c1", whole.loop.time())
    # Some are left alone for a while, after what was tried while the provider was away.
    assert any(_is_drained(whole, machine) for machine in whole.shard.book.bound("c1"))
    await asyncio.sleep(5.0)
    whole.world.network.repair_all()
    await whole.until(lambda: whole.operator().connected, 120.0, "a session")
    await asyncio.sleep(30.0)


def _is_drained(whole: Whole, machine: str) -> bool:
    with contextlib.suppress(DrainRefusedError):
        whole.shard.requested.drain(machine, "to see what happens")
        return True
    return False


class Stranger:
    """A peer with a certificate without a role."""

    identity = "bigfleet://cluster/other"

    async def receive(self) -> pb.OperatorMessage | None:
        return pb.OperatorMessage(hello=pb.Hello(cluster_id="c1"))

    async def send(self, message: pb.ShardMessage) -> None:
        raise AssertionError("nothing is said to a stranger")

    def auth_context(self) -> dict[str, list[bytes]]:
        return {"transport_security_type": [b"ssl"]}

    async def abort(self, code: object, details: str = "") -> None:
        raise PermissionError(details)


async def _strangers(whole: Whole) -> None:
    with pytest.raises(Exception, match="the certificate is"):
        await whole.shard.sessions.serve(Stranger())
    reading = ShardReadServicer(Facade(whole.shard), whole.shard.world.offload)
    with pytest.raises(PermissionError):
        async for _ in reading.ListMachines(read.ListMachinesRequest(), Stranger()):  # type: ignore[arg-type]
            pass


async def _fenced(whole: Whole) -> None:
    model = whole.provider
    for slot in model.slots.values():
        model._marks[("s1", slot.id)] = (2**62, 1)
    whole.scale(1)
    await asyncio.sleep(30.0)
    assert whole.shard.not_ready()


def _suppressed(*, dry_run: bool) -> Setting:
    def tune(tuning: ShardConfig) -> ShardConfig:
        return replace(tuning, rails=RailSettings(dry_run=dry_run))

    return Setting([provider("p1", 4)], [cluster(replicas=2)], tune)


async def _look_on(whole: Whole) -> None:
    await asyncio.sleep(30.0)
    assert whole.bound() == 0


async def _paused(whole: Whole) -> None:
    await whole.shard.pause.pause("to see what happens")
    await asyncio.sleep(30.0)
    assert whole.bound() == 0


async def _served(folder: Path) -> None:
    """A shard as a process, as far as its own lines go."""
    stop, site = asyncio.Event(), ProviderSite("away", "127.0.0.1:1")
    serving = ServerOptions("127.0.0.1:0", "127.0.0.1:0", folder)

    def listening(_: ServedShard) -> None:
        asyncio.get_running_loop().call_later(0.3, stop.set)

    await serve(ShardConfig("s-1", providers=(site,)), serving, stop, listening)


def _commanded() -> None:
    async def serve_well(settings: ShardSettings, stop: asyncio.Event) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()

    async def serve_badly(settings: ShardSettings, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_breaks())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli_process, "configure_logs", lambda *given: None)
        process_command(ShardSettings, serve_well, ())(shard_id="s-1")
        with pytest.raises(FailureError):
            process_command(ShardSettings, serve_badly, ())(shard_id="s-1")


async def _breaks() -> None:
    raise RuntimeError("a part broke")
