"""Whatever a provider does, the shard keeps what it knew, serves everybody else and says so.

Each story runs a whole shard on virtual time. In all of them: no machine of a cluster is taken
away, and when the provider has come to its senses everything is as it should be.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from sim.network import Weather
from sim.provider import ModelProvider
from sim.slots import Kind, S
from whole.living import Setting, Whole, cluster, live, provider

Log = pytest.LogCaptureFixture


@pytest.fixture(autouse=True)
def _all_is_heard(caplog: Log) -> None:
    caplog.set_level(logging.INFO)


def setting(*, idle: int = 20, speculative: int = 0, replicas: int = 12) -> Setting:
    return Setting([provider("p1", idle, speculative)], [cluster(replicas=replicas)])


def said(log: Log, words: str) -> list[str]:
    return [record.getMessage() for record in log.records if record.message.startswith(words)]


def changes(log: Log) -> list[tuple[str, str]]:
    """What machines were and are that their provider changed by itself."""
    words = "provider changed a machine by a step that this shard did not order"
    told = [vars(record) for record in log.records if record.message == words]
    return [(keys["was"], keys["now"]) for keys in told]


async def met(whole: Whole, replicas: int = 12) -> None:
    await whole.until(lambda: whole.bound() == replicas, 900.0, f"{replicas} bound machines")


def nothing_was_taken(whole: Whole) -> None:
    counts = whole.world.monitor.counts
    assert not counts.get("Reclaim")
    assert not counts.get("Preempt")
    assert whole.metric("reclaims_unforced_total") == 0


@pytest.mark.parametrize(
    ("garbage", "words"),
    [
        ("price", "provider machine rejected at ingest"),
        ("host", "provider machine rejected at ingest"),
        ("state", "reconcile failed"),
    ],
)
def test_garbage_in_a_list_changes_nothing(caplog: Log, garbage: str, words: str) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        whole.provider.habits.garbage = garbage
        whole.shard.lister.refresh_all()
        await asyncio.sleep(60.0)
        assert whole.bound() == 12
        assert len(whole.shard.book) == 20
        for reason, kind in (("price", "price"), ("structural", "host")):
            refused = whole.metric("machines_rejected_total", reason=reason)
            assert (refused > 0) is (garbage == kind)
        contradicted = whole.metric("phantom_machines", reason="state_conflict")
        assert (contradicted > 0) is (garbage == "host")
        whole.provider.habits.garbage = ""
        whole.shard.lister.refresh_all()
        await whole.until(
            lambda: not whole.metric("phantom_machines", reason="state_conflict"), 60.0, "peace"
        )
        whole.scale(15)
        await met(whole, 15)
        nothing_was_taken(whole)

    live(setting(), story)
    assert said(caplog, words)


def test_a_provider_that_hangs_is_given_up_on_and_harms_no_other(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        whole.world.network.weather = Weather(lost_request=1.0)
        whole.scale(14)
        await asyncio.sleep(300.0)
        calls = [
            whole.metric("provider_rpc_total", provider="p1", method=method, code=code)
            for method in ("List", "Configure")
            for code in ("DEADLINE_EXCEEDED", "UNAVAILABLE")
        ]
        assert sum(calls) > 2
        assert whole.metric("provider_reconcile_age_seconds", provider="p1", region="r1") > 200
        assert whole.operator().connected
        whole.world.network.weather = Weather()
        await met(whole, 14)
        nothing_was_taken(whole)

    live(setting(), story)
    assert said(caplog, "reconcile failed")
    assert said(caplog, "action failed")


def test_transitions_that_time_out_are_tried_elsewhere(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        whole.provider.habits.failing = {Kind.CREATE: 0.5}
        await met(whole)
        failed = sum(
            whole.metric("create_failures_total", reason=reason)
            for reason in ("unavailable", "throttled", "bad_request")
        )
        assert failed > 0
        whole.provider.habits.failing = {}
        await asyncio.sleep(200.0)
        assert not [slot for slot in whole.provider.slots.values() if slot.state is S.FAILED]
        nothing_was_taken(whole)

    live(setting(idle=0, speculative=40), story)
    assert said(caplog, "create failed at the provider")


class Stuttering(ModelProvider):
    """Lists some machines twice."""

    def listing(self, request: pb.ListFilter) -> pb.MachineList:
        answer = super().listing(request)
        answer.machines.extend(list(answer.machines)[:3])
        return answer


def test_machines_listed_twice_are_one(caplog: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.world.ModelProvider", Stuttering)

    async def story(whole: Whole) -> None:
        await met(whole)
        assert len(whole.shard.book) == 20
        assert whole.metric("machines_rejected_total", reason="structural") >= 3
        nothing_was_taken(whole)

    live(setting(), story)
    assert said(caplog, "provider lists machines twice")


def test_an_id_of_two_providers_stays_with_the_first(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        first, second = whole.world.providers.values()
        slot = next(iter(second.slots.values()))
        del second.slots[slot.id]
        slot.id = next(iter(first.slots))
        second._changed(slot)
        whole.shard.lister.refresh_all()
        await asyncio.sleep(30.0)
        known = whole.shard.book.get(slot.id)
        assert known is not None
        assert known.provider == first.name
        assert whole.metric("machines_rejected_total", reason="structural") > 0
        nothing_was_taken(whole)

    both = Setting([provider("p1", 20), provider("p2", 5)], [cluster(replicas=12)])
    live(both, story)
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert any("give every provider its own name" in str(vars(record)) for record in errors)


def test_a_provider_that_changes_its_mind_is_followed(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        model = whole.provider
        taken = [slot for slot in model.slots.values() if slot.cluster][:3]
        for slot in taken:
            slot.state, slot.cluster, slot.metadata = S.IDLE, "", {}
            model._changed(slot)
        await whole.until(lambda: whole.metric("state_jumps_total") >= 3, 60.0, "the jumps")
        await met(whole)
        nothing_was_taken(whole)

    live(setting(), story)
    assert changes(caplog) == [("Configured for c1", "Idle")] * 3


def test_a_machine_that_a_provider_gives_to_another_cluster_is_counted_and_told(
    caplog: Log,
) -> None:
    async def story(whole: Whole) -> None:
        await whole.until(lambda: whole.bound("c1") == whole.bound("c2") == 4, 900.0, "all")
        slot = next(s for s in whole.provider.slots.values() if s.cluster == "c1")
        slot.cluster = "c2"
        whole.provider._changed(slot)
        await whole.until(lambda: whole.metric("state_jumps_total") == 1, 60.0, "the jump")

    live(Setting([provider("p1", 20)], [cluster("c1", 4), cluster("c2", 4)]), story)
    assert changes(caplog) == [("Configured for c1", "Configured for c2")]


def test_a_list_that_names_no_cluster_before_a_machine_is_its_node_costs_nothing(
    caplog: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forgetful(ModelProvider):
        def listing(self, request: pb.ListFilter) -> pb.MachineList:
            answer = super().listing(request)
            for machine in answer.machines:
                if machine.state == pb.MACHINE_STATE_CONFIGURING:
                    machine.cluster = ""
                    machine.shard_metadata.clear()
            return answer

    monkeypatch.setattr("sim.world.ModelProvider", Forgetful)

    async def story(whole: Whole) -> None:
        await met(whole)
        await asyncio.sleep(120.0)
        assert whole.bound() == 12
        nothing_was_taken(whole)

    live(setting(), story)


def test_a_provider_that_disappears_costs_nothing_and_is_asked_again(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        whole.provider.stop()
        await asyncio.sleep(1800.0)
        assert whole.metric("provider_rpc_total", provider="p1", method="List", code="UNAVAILABLE")
        assert len(whole.shard.book.bound("c1")) == 12
        assert whole.metric("machines_lost_total", capacity_type="BareMetal") == 0
        whole.provider.start()
        whole.scale(16)
        await met(whole, 16)
        nothing_was_taken(whole)

    live(setting(), story)
    assert said(caplog, "reconcile failed")


def test_a_mass_disappearance_is_held_and_forgiven(caplog: Log) -> None:
    async def story(whole: Whole) -> None:
        await met(whole)
        whole.provider.habits.listed = 0.0
        whole.shard.lister.refresh_all()
        await whole.until(
            lambda: whole.metric("provider_removals_held", provider="p1", region="r1") >= 12, 30.0
        )
        whole.provider.habits.listed = 1.0
        await asyncio.sleep(60.0)
        assert whole.metric("provider_removals_held", provider="p1", region="r1") == 0
        assert whole.metric("machines_lost_total", capacity_type="BareMetal") == 0
        await met(whole)
        nothing_was_taken(whole)

    live(setting(), story)
    assert said(caplog, "mass disappearance: removal held")
    assert said(caplog, "mass disappearance is over")
