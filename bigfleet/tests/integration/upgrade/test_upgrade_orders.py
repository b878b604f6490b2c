"""A fleet at constant demand lives through every order of upgrades without a single action.

Real roll-ups, records, ingest and decisions; what an earlier release does not know is cut out of
the messages at its end. While the pod controller is upgraded its requests are rewritten one by one,
and the shard decides after each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations

import pytest

from bigfleet.decision import ActionKind, Engine, Policy
from bigfleet.inventory import Inventory
from bigfleet.model import LABEL_ARCH, Machine, MachineState
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from bigfleet.operator.demand.requests import CapacityRequest
from bigfleet.operator.demand.rollup import RollUpBuilder
from bigfleet.shard.demand.cluster_rows import Block
from bigfleet.shard.demand.ingest import Ingest
from bigfleet.wire.machines import machine_from_proto
from bigfleet.wire.taints import LABEL_TAINTS
from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2, shard_pb2
from compare import stamps_of
from kubeobjects import capacity_request, read

CLUSTER = "c-1"
PARTS = ("provider", "shard", "operator", "pod controller")
ORDERS = [*permutations(PARTS)]
GPU = "nvidia.com/gpu"
TOLERATION = {"key": GPU, "operator": "Exists"}
K = ActionKind


@dataclass
class Workload:
    """Equal Pods: their requests, and what they tolerate."""

    name: str
    count: int
    resources: dict[str, str]
    tolerations: list[dict[str, str]]


WORKLOADS = (
    Workload("gpu", 5, {"cpu": "2", GPU: "2"}, [TOLERATION]),
    Workload("web", 5, {"cpu": "2"}, []),
)


@dataclass
class Fleet:
    """One cluster and its machines; parts in `upgraded` are of the new release."""

    upgraded: set[str] = field(default_factory=set)
    rewritten: set[str] = field(default_factory=set)
    """Requests that the new pod controller has looked at."""
    always_in_rows: bool = False
    """An operator that does not wait until all requests state their tolerations."""
    engine: Engine = field(default_factory=Engine)
    machines: dict[str, Machine] = field(default_factory=dict)
    rollups: RollUpBuilder = field(default_factory=RollUpBuilder)
    now: int = 1_000

    def __post_init__(self) -> None:
        for number in range(12):
            name = f"m-{number:02d}"
            self.machines[name] = Machine(name, MachineState.SPECULATIVE)

    # -- what each part says ---------------------------------------------------------------------

    def requests(self) -> Iterator[CapacityRequest]:
        """The requests of all Pods, as their pod controllers have left them."""
        for load in WORKLOADS:
            for number in range(load.count):
                name = f"{load.name}-{number}"
                document = capacity_request(name, resources=load.resources)
                if name in self.rewritten:
                    document["spec"]["tolerations"] = load.tolerations
                document["metadata"]["ownerReferences"] = [{"kind": "Pod", "controller": True}]
                if "operator" not in self.upgraded:
                    document["spec"].pop("tolerations", None)
                yield read(CapacityRequest, document)

    def rollup(self) -> capacity_pb2.ClusterCapacityNeeds:
        """What the operator sends, as its shard reads it."""
        for request in self.requests():
            self.rollups.put(request)
        if self.always_in_rows:
            self.rollups._silent.clear()
        frame = self.rollups.build(CLUSTER, self.now, {}).frame
        message = shard_pb2.OperatorMessage.FromString(frame).rollup
        if "shard" not in self.upgraded:
            for name in ("tolerations_stated", "default_arch", "default_os"):
                message.ClearField(name)
            for row in message.needs:
                row.ClearField("tolerations")
        return message

    def record(self, machine: Machine) -> Machine:
        """A machine as its provider reports it, and its shard reads it."""
        number = int(machine.id[2:])
        has_gpu = number < 6
        labels = {LABEL_ARCH: "amd64" if has_gpu or number % 2 else "arm64"}
        record = provider_pb2.Machine(
            id=machine.id,
            state=provider_pb2.MACHINE_STATE_SPECULATIVE,
            instance_type="gpu" if has_gpu else "plain",
            zone="z",
            capacity_type=provider_pb2.CAPACITY_TYPE_ON_DEMAND,
            # In the fleet before the upgrade the cheapest machines were the right ones.
            price_per_hour=4.0 if has_gpu else 1.0 if number % 2 else 0.5,
            resources=provider_pb2.Resources(
                resources={"cpu": "4", **({GPU: "4"} if has_gpu else {})}
            ),
            labels=labels,
        )
        if has_gpu and "provider" in self.upgraded:
            record.taints.add(key=GPU, value="present", effect="NoSchedule")
        elif has_gpu:
            record.labels[LABEL_TAINTS] = f"{GPU}=present:NoSchedule"
        if "shard" not in self.upgraded:
            record.ClearField("taints")
        known = machine_from_proto(record, "p", "r")
        taints = known.taints if "shard" in self.upgraded else ()
        return replace(
            known, state=machine.state, host=machine.host, cluster=machine.cluster,
            stamp=machine.stamp, taints=taints,
        )  # fmt: skip

    # -- living ----------------------------------------------------------------------------------

    def decide(self) -> dict[str, ActionKind]:
        """One cycle; what it does is done at once."""
        self.now += 10**10
        symbols = Symbols()
        inventory = Inventory(symbols)
        inventory.load([self.record(machine) for machine in self.machines.values()])
        read_rollup = Ingest().read(self.rollup())
        stated = read_rollup.stated
        facts = ClusterFacts(
            tolerations_stated=stated.tolerations,
            default_arch=stated.arch,
            default_os=stated.os,
        )
        rows = Block.first(read_rollup).needs()
        demand = Demand.of(rows, {CLUSTER: facts}, symbols)
        policy = Policy(reclaim_hold=0)
        plan = self.engine.decide(inventory.snapshot(), demand, policy, now=self.now)
        does = {action.machine: action.kind for action in plan}
        assert bool(plan.verdicts.satisfied.all()) or does
        for name, stamp in stamps_of(plan)[0].items():
            machine = self.machines[name]
            if does.get(name) in (K.BOOTSTRAP, K.PROVISION):
                machine = replace(machine, state=MachineState.CONFIGURED, cluster=CLUSTER)
            self.machines[name] = replace(machine, stamp=stamp)
        for name, kind in does.items():
            if kind in (K.RECLAIM, K.DELETE):
                self.machines[name] = Machine(name, MachineState.SPECULATIVE)
        return does

    def settle(self) -> None:
        """Cycles until nothing happens; the fleet of the earlier release."""
        for _ in range(10):
            if not self.decide():
                return
        raise AssertionError("the fleet does not settle")

    def upgrade(self, part: str) -> Iterator[dict[str, ActionKind]]:
        """Replace one part, and decide after every step of it."""
        self.upgraded.add(part)
        if part == "operator":
            self.rollups = RollUpBuilder("amd64", "linux")
        if part == "pod controller":
            for request in [*self.requests()]:
                self.rewritten.add(request.metadata.name)
                yield self.decide()
        yield self.decide()
        yield self.decide()


@pytest.mark.parametrize("order", ORDERS, ids=[", ".join(order) for order in ORDERS])
def test_no_order_of_upgrades_does_anything_to_a_fleet_at_rest(order: tuple[str, ...]) -> None:
    fleet = Fleet()
    fleet.settle()
    serving = [m.id for m in fleet.machines.values() if m.cluster]
    assert len(serving) == 6
    for part in order:
        for step, does in enumerate(fleet.upgrade(part)):
            assert not does, f"{part}, step {step}: {does}"
    assert [m.id for m in fleet.machines.values() if m.cluster] == serving
    assert fleet.rollup().tolerations_stated
    assert {t.key for row in fleet.rollup().needs for t in row.tolerations} == {GPU}


@pytest.mark.parametrize("part", PARTS)
def test_going_back_does_nothing_either(part: str) -> None:
    fleet = Fleet()
    fleet.settle()
    for each in PARTS:
        assert not any(fleet.upgrade(each))
    fleet.upgraded.discard(part)
    if part == "operator":
        fleet.rollups = RollUpBuilder()
    assert not fleet.decide()
    assert not fleet.decide()


def test_a_pod_controller_that_goes_back_writes_requests_without_the_field() -> None:
    fleet = Fleet()
    fleet.settle()
    for part in PARTS:
        assert not any(fleet.upgrade(part))
    for request in [*fleet.requests()]:
        fleet.rewritten.discard(request.metadata.name)
        assert not fleet.decide()
    assert not fleet.rollup().tolerations_stated


def test_rows_with_half_of_their_requests_rewritten_would_need_a_machine_more() -> None:
    fleet = Fleet(always_in_rows=True)
    fleet.settle()
    fleet.upgraded.update(("provider", "shard", "operator"))
    fleet.rollups = RollUpBuilder()
    assert any(fleet.upgrade("pod controller"))


def serving_ids(fleet: Fleet) -> set[str]:
    return {machine.id for machine in fleet.machines.values() if machine.cluster}


def test_new_demand_after_the_upgrade_is_served_by_the_new_rules() -> None:
    fleet = Fleet()
    fleet.settle()
    for part in PARTS:
        assert not any(fleet.upgrade(part))
    before = serving_ids(fleet)
    fleet.rollups.put(read(CapacityRequest, capacity_request("more", resources={"cpu": "4"})))
    fleet.decide()
    (new,) = serving_ids(fleet) - before
    assert fleet.record(fleet.machines[new]).labels[LABEL_ARCH] == "amd64"
