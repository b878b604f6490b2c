"""The reserve is an estimate, and what real Nodes report corrects it."""

import json
import random
from dataclasses import replace
from fractions import Fraction

import pytest

from bigfleet_providerkit import Bucket, Capacity, Host
from bigfleet_providerkit.capacity.node_reports import (
    KEPT,
    STEP,
    NodeReports,
    corrected,
    read_report,
)
from kitworld import SPEC, World, slots, world

GIB = 1024**3
PLAIN = slots(resources=None, allocatable=None)
del PLAIN["resources"], PLAIN["allocatable"]
ESTIMATED = replace(
    SPEC,
    mix=(Bucket(PLAIN),),
    shapes={"t-4": Capacity(4000, 16 * GIB)},
    reserve=lambda shape: {"cpu": "100m", "memory": "1Gi"},
)


class NodesOfATest:
    """Stands in for the watch of a cluster: every Node is Ready and reports the same."""

    def __init__(self, **allocatable: str) -> None:
        self.report: dict[str, object] = dict(allocatable)

    def covers(self, cluster: str) -> bool:
        return True

    async def ready(self, host: Host, machine: str, cluster: str) -> bool:
        return True

    def allocatable(self, host: Host, machine: str, cluster: str) -> dict[str, object]:
        return self.report

    async def aclose(self) -> None:
        return None


def watched(w: World, nodes: NodesOfATest) -> None:
    w.running.backend.judge._watch = nodes


async def promised(w: World, machine: str) -> dict[str, str]:
    return dict((await w.shard.get(machine)).allocatable.resources)


async def test_the_report_of_one_node_corrects_every_slot_of_its_type() -> None:
    async with world(ESTIMATED) as w:
        watched(w, NodesOfATest(cpu="3800m", memory="14500Mi", pods="58"))
        other = await w.fresh()
        assert (await promised(w, other))["memory"] == "15Gi"
        machine = await w.configured()
        await w.advance(1)
        for slot in {other, machine}:
            assert await promised(w, slot) == {"cpu": "3800m", "memory": "14496Mi", "pods": "58"}
        for resource, share in (
            ("cpu", 0.1 / 3.9), ("memory", (15360 - 14496) / 15360), ("pods", 52 / 110),
        ):  # fmt: skip
            difference = w.metric("allocatable_difference_ratio", resource=resource)
            assert difference == pytest.approx(share), resource


async def test_a_default_reserve_that_is_too_large_is_corrected_upwards() -> None:
    async with world(ESTIMATED) as w:
        watched(w, NodesOfATest(cpu="3950m", memory="15800Mi", pods="110"))
        machine = await w.configured()
        await w.advance(1)
        assert (await promised(w, machine))["memory"] == "15792Mi"
        assert w.metric("allocatable_difference_ratio", resource="memory") < 0


async def test_a_reserve_that_a_person_gave_is_corrected_downwards_only() -> None:
    async with world(ESTIMATED, reserve={"cpu": "1", "memory": "1Gi"}) as w:
        watched(w, NodesOfATest(cpu="3900m", memory="14Gi", pods="110"))
        machine = await w.configured()
        await w.advance(1)
        assert await promised(w, machine) == {"cpu": "3", "memory": "14Gi", "pods": "110"}


async def test_an_allocatable_that_a_person_gave_stays_and_the_metric_shows_the_rest() -> None:
    async with world() as w:
        watched(w, NodesOfATest(cpu="3", memory="12Gi", pods="110"))
        machine = await w.configured()
        await w.advance(1)
        assert (await promised(w, machine))["cpu"] == "4"
        assert w.metric("allocatable_difference_ratio", resource="cpu") == pytest.approx(0.25)


async def test_a_correction_survives_a_restart() -> None:
    async with world(ESTIMATED) as w:
        watched(w, NodesOfATest(cpu="3800m", memory="14Gi", pods="58"))
        machine = await w.configured()
        await w.advance(1)
        again = await w.restart()
        for slot in (machine, await again.fresh()):
            assert (await promised(again, slot))["memory"] == "14Gi"
        assert again.metric("allocatable_difference_ratio", resource="pods") > 0
        head = again.running.backend.ledger.inventory.head
        assert head == w.running.backend.ledger.inventory.head
        await again.running.stop()


async def test_a_report_that_says_nothing_new_changes_no_record() -> None:
    async with world(ESTIMATED) as w:
        watched(w, NodesOfATest(cpu="3900m", memory="15Gi", pods="110"))
        await w.configured()
        await w.advance(1)
        quiet = w.running.backend.ledger.inventory.head
        w.running.backend.loops.renew_soon()
        await w.advance(1)
        assert w.running.backend.ledger.inventory.head == quiet


@pytest.mark.parametrize(
    "bad",
    [{}, {"cpu": "4"}, {"cpu": "0", "memory": "1Gi"}, {"cpu": "many", "memory": "1Gi"},
     {"cpu": "4", "memory": "-1Gi"}],
)  # fmt: skip
def test_a_report_without_usable_cpu_or_memory_is_left_out(bad: dict[str, object]) -> None:
    assert read_report(bad) == {}


def test_the_smallest_of_the_last_reports_wins_whatever_their_order() -> None:
    rng = random.Random(20)
    for _ in range(300):
        reports, given = NodeReports(), list[tuple[str, dict[str, Fraction]]]()
        for _ in range(rng.randint(1, 3 * KEPT)):
            machine = f"m-{rng.randint(0, 12)}"
            report = read_report({
                "cpu": f"{rng.randint(1, 64_000)}m", "memory": f"{rng.randint(20_000, 9**9)}Ki",
                **({"pods": str(rng.randint(1, 250))} if rng.random() < 0.8 else {}),
            })  # fmt: skip
            reports.take("t", machine, report)
            given = [(m, r) for m, r in given if m != machine] + [(machine, report)]
        last = [report for _, report in given[-KEPT:]]
        wanted = {name: min(r[name] for r in last if name in r)
                  for name in STEP if any(name in r for r in last)}  # fmt: skip
        assert reports.least("t") == wanted
        copy = NodeReports()
        copy.load("t", json.loads(json.dumps(reports.row("t"))))
        assert copy.least("t") == wanted
        promise = {"cpu": f"{rng.randint(1, 64)}", "memory": f"{rng.randint(1, 512)}Gi"}
        down = corrected(promise, wanted, upwards=False)
        both = corrected(promise, wanted, upwards=True)
        for name in promise:
            down_by, both_by = (read_report(found).get(name) for found in (down, both))
            if both_by is not None:
                assert both_by == wanted[name]
            if down_by is not None:
                assert down_by <= wanted[name]
