"""The state of the recorded release boots, and its client's requests mean the same."""

import shutil
from pathlib import Path

import pytest

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import Code, Refusal, State
from bigfleet_providerkit.store.interface import TABLES
from bigfleet_providerkit.store.sqlite import SqliteStore
from bigfleet_providerkit.testing import Shard, eventually
from kitworld import begin

RECORDED = sorted((Path(__file__).parent / "recorded").glob("state-*.db"))
# What the recorded client sent for its last Create, byte for byte, with an unknown field.
CREATE = (
    b"\x0a\x25test-region-a/OnDemand/t-4/zone-a/004"
    b"\x1a\x0eshard-recorded\x20\x03\x28\x05\xf8\x3e\x01"
)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_a_recorded_state_boots_and_everything_in_flight_ends(
    path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "state.db"
    shutil.copy(path, copy)
    store = SqliteStore(copy)
    tables = store.open("test-region-a")
    assert {table for table in TABLES if tables[table]} == set(TABLES)
    await store.close()
    w = await begin(store=SqliteStore(copy), seed_count=12, poll_interval=5)
    shard = Shard(w.running.service, "shard-new")
    by_state: dict[State, list[str]] = {}
    for machine in await shard.machines():
        by_state.setdefault(State(machine.state), []).append(machine.id)
    (creating,), (deleting,) = by_state[State.CREATING], by_state[State.DELETING]
    (draining,), (configuring,) = by_state[State.DRAINING], by_state[State.CONFIGURING]
    before = await shard.get(by_state[State.CONFIGURED][0])
    assert (before.cluster, dict(before.shard_metadata)) == (
        "cluster-recorded", {"key": "value", "nul": "\0"},
    )  # fmt: skip
    assert (await shard.get(draining)).cluster == "cluster-recorded"

    async def ended(machine: str, state: State) -> None:
        async def there() -> bool:
            await w.advance(1)
            return await shard.state(machine) is state

        await eventually(there, 10, f"{machine} {state.word}")

    await ended(creating, State.IDLE)
    await ended(deleting, State.SPECULATIVE)
    await ended(draining, State.IDLE)
    await w.advance(400)
    await ended(configuring, State.FAILED)
    with pytest.raises(Refusal) as fenced:
        await w.running.service.create(pb.CreateRequest.FromString(CREATE))
    assert fenced.value.code is Code.FAILED_PRECONDITION
    await w.running.stop()


def test_there_is_a_recorded_state() -> None:
    assert RECORDED
