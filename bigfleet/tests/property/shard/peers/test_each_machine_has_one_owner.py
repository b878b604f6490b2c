"""Two shards, a coordinator that repeats itself, crashes, lost answers: one owner for each machine.

The oracle is what everybody wants to be true: after all was delivered, every machine is owned by
exactly one shard, nothing was given twice, and as many moved as were asked for.
"""

import asyncio
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import Machine, MachineState
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinating import DictDisk, Shard, instruct, machine, outcomes, transfer

S = MachineState
ACCEPTED = pb.InstructAck.OUTCOME_ACCEPTED


class Crashing(DictDisk):
    """A disk whose process dies at the n-th write from now, before or after it is there."""

    def __init__(self) -> None:
        super().__init__()
        self.dies_in = 0
        self.after = False

    def replace(self, name: str, content: bytes) -> None:
        self.dies_in -= 1
        if self.dies_in == 0:
            if self.after:
                self.files[name] = content
            raise KeyboardInterrupt
        super().replace(name, content)


class Fleet:
    """Two shards that see the same machines; domains make s-1 the owner of all of them."""

    def __init__(self, state: MachineState, count: int) -> None:
        self.machines = [machine(f"m-{n}", state) for n in range(count)]
        self.disks = {name: Crashing() for name in ("s-1", "s-2")}
        self.shards: dict[str, Shard] = {}
        for name in self.disks:
            self.start(name)

    def start(self, name: str) -> None:
        shard = self.shards[name] = Shard(name, (), self.disks[name])
        domain = ("topology.kubernetes.io/zone", "z-a" if name == "s-1" else "z-other")
        asyncio.run(shard.ownership.assign_domain(domain))
        shard.listed(self.machines)

    def owners(self, one: Machine) -> list[str]:
        return [name for name, shard in self.shards.items() if shard.ownership.owns(one)]

    def deliver(
        self, to: str, instruction: pb.CoordinatorInstruction, rng: Random
    ) -> pb.InstructAck:
        """Again and again until it is accepted, with crashes and lost answers in between."""
        while True:
            disk = self.disks[to]
            disk.dies_in, disk.after = rng.choice([0, 0, 1, 2]), rng.random() < 0.5
            try:
                acks = asyncio.run(self.shards[to].told(instruction))
            except KeyboardInterrupt:
                disk.dies_in = 0
                self.start(to)
                self.check()
                continue
            disk.dies_in = 0
            self.check()
            assert outcomes(acks) == ["ACCEPTED"]
            if rng.random() < 0.6:
                return acks[0]

    def check(self) -> None:
        """Never two owners, whatever was interrupted."""
        for one in self.machines:
            assert len(self.owners(one)) <= 1


def _pick(state: MachineState, move: str, count: int) -> pb.CoordinatorInstruction:
    if state is S.IDLE:
        return transfer(f"{move}/pick", count=count)
    return instruct(f"{move}/pick", reassign_speculative=pb.ReassignSpeculative(count=count))


def _name(state: MachineState, instruction: str, ids: list[str]) -> pb.CoordinatorInstruction:
    if state is S.IDLE:
        return transfer(instruction, ids)
    named = pb.ReassignSpeculative(machine_ids=ids)
    return instruct(instruction, reassign_speculative=named)


@given(
    st.sampled_from([S.IDLE, S.SPECULATIVE]),
    st.integers(1, 6),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(0, 2**32),
)
def test_each_machine_has_one_owner_after_any_interruption(
    state: MachineState, machines: int, wanted: list[int], seed: int
) -> None:
    rng = Random(seed)
    fleet = Fleet(state, machines)
    moved: list[str] = []
    for number, count in enumerate(wanted):
        move = f"m-{number}"
        picked = list(fleet.deliver("s-1", _pick(state, move, count), rng).machine_ids)
        assert len(picked) == min(count, machines - len(moved))
        if not picked:
            continue
        fleet.deliver("s-2", _name(state, f"{move}/adopt", picked), rng)
        moved += picked
        for name in ("s-1", "s-2"):
            fleet.deliver(name, _name(state, f"{move}/settle", picked), rng)
    assert len(moved) == len(set(moved)), "nothing is given twice"
    for one in fleet.machines:
        assert fleet.owners(one) == ["s-2" if one.id in moved else "s-1"]
    for shard in fleet.shards.values():
        assert not shard.ownership.transfers, "all is settled"
