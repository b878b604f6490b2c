"""The executable on its fake backend: one machine through its whole life, slow and failing."""

from pathlib import Path

from bigfleet_providerkit import State
from bigfleet_providerkit.testing import ProviderProcess, Remote, Shard

COMMAND = ProviderProcess.module("bigfleet_provider_template")


async def test_one_machine_through_its_life(tmp_path: Path) -> None:
    state = f"--state={tmp_path / 'state.db'}"
    process = ProviderProcess(COMMAND, "--use-fake-backend", "--seed-count=6", state)
    with process.wait_open() as provider:
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machine = (await shard.machines())[0].id
            await shard.create(machine)
            await shard.until(machine, State.IDLE)
            await shard.configure(machine, "cluster-a", {"key": "value"})
            bound = await shard.until(machine, State.CONFIGURED)
            assert (bound.cluster, dict(bound.shard_metadata)) == ("cluster-a", {"key": "value"})
            await shard.drain(machine)
            await shard.until(machine, State.IDLE)
            await shard.delete(machine)
            await shard.until(machine, State.SPECULATIVE)
        assert provider.stop() == 0


async def test_a_slow_and_failing_substrate_is_seen_as_such() -> None:
    arguments = ("--use-fake-backend", "--slow-ms=150", "--fail-rate=configure=1")
    with ProviderProcess(COMMAND, *arguments).wait_open() as provider:
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machine = (await shard.machines())[0].id
            ack = await shard.create(machine)
            assert State(ack.machine.state) is State.CREATING
            assert await shard.state(machine) is State.CREATING
            await shard.until(machine, State.IDLE)
            await shard.configure(machine)
            failed = await shard.until(machine, State.FAILED)
            assert failed.last_error.startswith("Unavailable: configure failed by chance")
