"""Log lines that say where a cycle's time and machines went."""

import logging

import pytest

from bigfleet.decision import Plan, Policy
from bigfleet.model import Machine, Need
from bigfleet.model.facts import ClusterFacts
from bigfleet.observe.cycles import CycleRecord
from bigfleet.shard.explain.attribution import attribute_phases, attribute_plan
from living import Living
from worlds import NOW, RACK, A, B, machine, need, serving

Said = dict[str, dict[str, object]]


def said(caplog: pytest.LogCaptureFixture) -> Said:
    return {record.message: record.__dict__ for record in caplog.records}


def plan_of(machines: list[Machine], needs: list[Need]) -> Plan:
    facts = {A: ClusterFacts(), B: ClusterFacts()}
    return Living(policy=Policy(reclaim_hold=0), facts=facts).plan(machines, needs, NOW)


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bigfleet.shard.explain.attribution")


def test_phases_are_told_in_milliseconds(caplog: pytest.LogCaptureFixture) -> None:
    phases = {"phase1": 2_500_000, "emit": 500_000}
    attribute_phases(CycleRecord(7, 0, "tick", 3_000_000, 1_000_000, phases, 5, 6, 2, {}, 0))
    line = said(caplog)["phase attribution"]
    assert (line["cycle"], line["trigger"], line["wall_ms"]) == (7, "tick", 3.0)
    assert (line["phase1_ms"], line["emit_ms"], line["changes"]) == (2.5, 0.5, 2)


def test_reclaims_name_the_clusters_that_lose_most(caplog: pytest.LogCaptureFixture) -> None:
    old = [need(A), need(B)]
    machines = [serving(f"a-{n}", old[0]) for n in range(3)] + [serving("b-1", old[1])]
    attribute_plan(4, plan_of(machines, []))
    line = said(caplog)["reclaim attribution"]
    assert (line["cycle"], line["reclaims"], line["clusters"]) == (4, 4, 2)
    assert line["most"] == [f"{A}:3", f"{B}:1"]


def test_gangs_that_found_a_place_and_those_that_did_not(caplog: pytest.LogCaptureFixture) -> None:
    machines = [machine(f"m-{n}", rack="r-1") for n in range(3)]
    met = need(cpu=12, unit=4, same=RACK, group="a", priority=9)
    unmet = need(cpu=40, unit=4, same=RACK, group="b")
    attribute_plan(4, plan_of(machines, [met, unmet]))
    lines = said(caplog)
    good, bad = lines["satisfied gang attribution"], lines["gang attribution"]
    assert (good["gangs"], good["machines"], good["from_idle"], good["domains"]) == (1, 3, 3, 1)
    assert (bad["gangs"], bad["topology_unsatisfiable"], bad["without_domain"]) == (1, 1, 1)


def test_a_cycle_with_nothing_to_tell_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    attribute_plan(1, plan_of([machine("m-1")], [need()]))
    assert said(caplog) == {}
