"""kill -9 at random moments under load: nothing that was acknowledged is lost.

A shard drives machines through their life while the process is killed again and again on the same
state. What it was acknowledged is compared with what the next process shows.
"""

import asyncio
import contextlib
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import State
from bigfleet_providerkit.machines.state import Kind
from bigfleet_providerkit.memory.substrate import _read
from bigfleet_providerkit.store.sqlite import SqliteStore
from bigfleet_providerkit.testing import ProviderProcess, Remote, Shard, eventually

KILLS = 200 if os.environ.get("FULL") else 25
TEMPLATE = ProviderProcess.module("bigfleet_provider_template")
AFTER = {kind: {kind.transitional, kind.target} for kind in Kind}


@dataclass
class Acknowledged:
    """What the shard was acknowledged about one machine: its last acknowledged operation."""

    kind: Kind
    operation: str
    token: tuple[int, int]


@dataclass
class Witness:
    """Everything that was acknowledged."""

    machines: dict[str, Acknowledged] = field(default_factory=dict)
    requested: dict[str, Kind] = field(default_factory=dict)
    operations: set[str] = field(default_factory=set)

    def acknowledged(self, kind: Kind, ack: pb.TransitionAck, token: tuple[int, int]) -> None:
        machine = ack.machine.id
        self.requested.pop(machine, None)
        assert ack.operation_id not in self.operations, "an operation id was used twice"
        self.operations.add(ack.operation_id)
        self.machines[machine] = Acknowledged(kind, ack.operation_id, token)

    def check(self, shown: dict[str, pb.Machine]) -> None:
        for machine, acknowledged in self.machines.items():
            seen = shown[machine]
            state = State(seen.state)
            # A question whose answer was lost may have been heard.
            requested = self.requested.get(machine, acknowledged.kind)
            assert state in AFTER[acknowledged.kind] | AFTER[requested] | {State.FAILED}, (
                machine,
                acknowledged,
                state,
            )
            if state is State.FAILED:
                assert seen.last_error.startswith(("Interrupted:", "Timeout:")), seen.last_error
            if state in (State.CONFIGURING, State.CONFIGURED, State.DRAINING):
                assert seen.cluster == f"c-{machine[-3:]}"
                assert dict(seen.shard_metadata) == {"machine": machine, "nul": "\0"}


async def drive(shard: Shard, machine: str, witness: Witness) -> None:
    """Move one machine along its life, until it is cancelled."""
    while True:
        state = await shard.state(machine)
        kind = next((kind for kind in Kind if kind.source is state), None)
        if kind is None:
            await asyncio.sleep(0.002)
            continue
        if state is State.IDLE and shard.sequence % 3 == 0:
            kind = Kind.DELETE
        witness.requested[machine] = kind
        match kind:
            case Kind.CREATE:
                ack = await shard.create(machine)
            case Kind.CONFIGURE:
                metadata = {"machine": machine, "nul": "\0"}
                ack = await shard.configure(machine, f"c-{machine[-3:]}", metadata)
            case Kind.DRAIN:
                ack = await shard.drain(machine)
            case Kind.DELETE:
                ack = await shard.delete(machine)
        witness.acknowledged(kind, ack, (shard.epoch, shard.sequence))


async def one_life(
    provider: ProviderProcess, epoch: int, witness: Witness, rng: random.Random
) -> None:
    """Drive twelve machines until the process is killed."""
    async with provider.channel() as channel:
        remote = Remote(channel)
        shown = {m.id: m for m in (await remote.list(pb.ListFilter())).machines}
        assert len(shown) == 24
        witness.check(shown)
        await marks_hold(remote, witness)
        witness.machines.clear()
        witness.requested.clear()
        drivers = [
            asyncio.ensure_future(drive(Shard(remote, f"s-{n}", epoch), machine, witness))
            for n, machine in enumerate(sorted(shown)[:12])
        ]
        done, _ = await asyncio.wait(drivers, timeout=rng.uniform(0.0, 0.12))
        for driver in done:
            driver.result()
        provider.kill()
        await asyncio.wait(drivers, timeout=5)
        for driver in drivers:
            driver.cancel()
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
                await driver


async def marks_hold(remote: Remote, witness: Witness) -> None:
    """The last acknowledged token of a machine is fenced."""
    for n, machine in enumerate(sorted(witness.machines)[:4]):
        epoch, sequence = witness.machines[machine].token
        index = sorted_machines(witness).index(machine)
        replay = pb.DrainRequest(
            machine_id=machine, shard_id=f"s-{index}", shard_epoch=epoch, sequence_number=sequence
        )
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await remote.drain(replay)
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION, (n, machine)


def sorted_machines(witness: Witness) -> list[str]:
    kinds = ("OnDemand", "Spot")
    ids = [
        f"example/{kind}/example-standard-4/example-zone-a/{number:03d}"
        for kind, count in zip(kinds, (16, 8), strict=True)
        for number in range(count)
    ]
    return sorted(ids)[:12]


@pytest.mark.timeout(12 * KILLS + 300)
async def test_nothing_acknowledged_is_lost_by_kills(tmp_path: Path) -> None:
    rng, witness = random.Random(7), Witness()
    state = tmp_path / "state.db"
    arguments = (
        "--use-fake-backend", "--seed-count=24", f"--state={state}", "--poll-interval=20ms",
        "--slow-ms=3", "--configure-timeout=2s", "--heal-after=100ms", "--log-level=error",
        "--reconcile-interval=200ms",
    )  # fmt: skip
    for epoch in range(1, KILLS + 1):
        with ProviderProcess(TEMPLATE, *arguments, log=tmp_path / "log").wait_open() as provider:
            await one_life(provider, epoch, witness, rng)
    with ProviderProcess(TEMPLATE, *arguments, log=tmp_path / "log").wait_open() as provider:
        async with provider.channel() as channel:
            remote = Remote(channel)

            async def settled() -> bool:
                shown = (await remote.list(pb.ListFilter())).machines
                rests = {State.SPECULATIVE, State.IDLE, State.CONFIGURED}
                return all(State(machine.state) in rests for machine in shown)

            await eventually(settled, 20, "every machine at rest")
            shown = (await remote.list(pb.ListFilter())).machines
        assert provider.stop() == 0
    with_host = {machine.host.ref for machine in shown if machine.host.ref}
    store = SqliteStore(state)
    hosts = {_read(value).ref for value in store.open("example")["hosts"].values()}
    await store.close()
    assert hosts == with_host, "a machine is doubled on the substrate, or a host was lost"
    assert len(witness.operations) > KILLS
    assert "Traceback" not in (tmp_path / "log").read_text()
