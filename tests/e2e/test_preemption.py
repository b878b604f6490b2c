"""Two clusters, one pool: a critical job takes machines from batch work in another cluster."""

from e2e_words import FleetOn
from real_fleet import budget, deployment, eventually, priority_class

BATCH, CRITICAL = priority_class("batch", 100), priority_class("critical", 2_000_000)


def test_a_critical_job_gets_machines_from_another_clusters_batch(fleet_on: FleetOn) -> None:
    with fleet_on(clusters=2, slots=4) as fleet:
        east, west = fleet.clusters
        for cluster in (east, west):
            cluster.apply(BATCH, CRITICAL)
        west.apply(deployment("batch", 4, cpu="3", priority_class="batch"))
        west.until_running(4)
        east.apply(deployment("job", 2, cpu="3", priority_class="critical"))
        east.until_running(2, seconds=120)
        assert len(east.nodes()) == 2
        eventually(lambda: len(west.nodes()) == 2, "two machines moved")
        eventually(
            lambda: (west.running("batch"), len(west.pods("Pending", "batch"))) == (2, 2),
            "batch pods that lost their machine wait for another one",
        )
        # The machines were not bought: they moved through Idle.
        eventually(lambda: fleet.machines("Configured") == 4, "the shard has heard of all of it")
        assert "kind=delete" not in fleet.log(fleet.provider)


def test_a_budget_that_lets_no_pod_go_holds_the_machine_until_the_grace_is_over(
    fleet_on: FleetOn,
) -> None:
    with fleet_on(clusters=2, slots=1) as fleet:
        east, west = fleet.clusters
        for cluster in (east, west):
            cluster.apply(BATCH, CRITICAL)
        west.apply(deployment("batch", 1, cpu="3", priority_class="batch"))
        west.apply(budget("batch", maxUnavailable=0))
        west.until_running(1)
        (pod,) = west.pods("Running")
        east.apply(deployment("job", 1, cpu="3", priority_class="critical"))
        log = west.operator.log
        eventually(
            lambda: "nodes not emptied in time" in log.read_text(), "the blocked drain ended", 120
        )
        (line,) = [line for line in log.read_text().splitlines() if "not emptied in time" in line]
        assert pod["metadata"]["name"] in line
        # The budget was kept as long as the grace lasted: no controller evicted the pod.
        assert pod["metadata"]["uid"] in [one["metadata"]["uid"] for one in west.pods()]
