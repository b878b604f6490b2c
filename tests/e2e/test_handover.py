"""Of two replicas the second takes over when the first is killed, and nothing waits for long."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple

import pytest
from e2e_words import FleetOn
from real_fleet import Cluster, deployment, eventually, is_ready

from kube import ports
from kube.processes import Process

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
HANDED_OVER = 5.0
BUSY_MACHINE = 30.0
log = logging.getLogger("handover")


class Replica(NamedTuple):
    """One of two."""

    process: Process
    metrics: str


class Pair:
    """Two replicas with one lease."""

    def __init__(self, cluster: Cluster, lease: str, both: dict[str, Replica]) -> None:
        self._cluster, self._lease, self._both = cluster, lease, both

    def holder(self) -> str:
        """Who leads."""
        for one in self._cluster.plane.api.get(LEASES)["items"]:
            if one["metadata"]["name"] == self._lease:
                return str(one["spec"].get("holderIdentity", ""))
        return ""

    def until_ready(self) -> None:
        """One leads and the other could."""
        eventually(lambda: self.holder() in self._both, "a replica leads")
        eventually(
            lambda: all(is_ready(one.metrics) for one in self._both.values()), "both are ready"
        )

    def kill_the_leader(self) -> str:
        """Its name; it is gone without a word."""
        first = self.holder()
        self._both[first].process.kill()
        return first

    def seconds_without(self) -> float:
        """Kill the leader; how long no one did. The killed one comes back and stands by."""
        self.until_ready()
        first = self.kill_the_leader()
        waited = eventually(
            lambda: self.holder() not in ("", first), "the other leads", BUSY_MACHINE, poll=0.02
        )
        self._both[first].process.start()
        return waited


@contextmanager
def a_pair(cluster: Cluster, process: Process, lease: str) -> Iterator[Pair]:
    """Two of a process under names of their own, in the place of the one that a fleet has."""
    process.kill()
    with ExitStack() as ends:
        both = {}
        for name in ("one", "two"):
            port = ports.take()
            ends.callback(port.give_back)
            metrics = f"127.0.0.1:{port.number}"
            command = [*process.command, f"--identity={name}", f"--metrics-addr={metrics}"]
            log = process.log.with_name(f"{process.log.name}-{name}")
            both[name] = Replica(Process(f"{process.name} {name}", command, log), metrics)
            ends.callback(both[name].process.kill)
            both[name].process.start()
        yield Pair(cluster, lease, both)


operators = partial(a_pair, lease="bigfleet-operator")
controllers = partial(a_pair, lease="bigfleet-pod-controller")


def test_pods_get_nodes_although_both_leaders_were_killed(fleet_on: FleetOn) -> None:
    with fleet_on(slots=4) as fleet:
        (east,) = fleet.clusters
        with operators(east, east.operator) as first, controllers(east, east.controller) as second:
            east.apply(deployment("web", 2))
            east.until_running(2)
            for pair in (first, second):
                pair.until_ready()
                pair.kill_the_leader()
            east.scale("web", 10)
            east.until_running(10)
            assert len(east.get("capacityrequests")) == 10


@pytest.mark.deep
def test_a_crashed_leader_is_followed_within_five_seconds(fleet_on: FleetOn) -> None:
    with fleet_on(slots=4) as fleet:
        (east,) = fleet.clusters
        for kind, process in ((operators, east.operator), (controllers, east.controller)):
            with kind(east, process) as pair:
                waits = sorted(pair.seconds_without() for _ in range(10))
            # `make e2e ARGS="-k five_seconds -o log_cli=true -o log_cli_level=INFO"` shows them.
            log.info("%s: %.1f s in the middle, %.1f s at most", process.name, waits[5], waits[-1])
            assert waits[-1] < HANDED_OVER
