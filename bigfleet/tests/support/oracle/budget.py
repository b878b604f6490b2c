"""The work budget of the oracle: who is left out, counted one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from bigfleet.decision.policy import Policy
from bigfleet.model import Machine, Need
from bigfleet.model.facts import ClusterFacts


def left_out(
    machines: Iterable[Machine],
    needs: Collection[Need],
    facts: Mapping[str, ClusterFacts],
    policy: Policy,
) -> frozenset[str]:
    """Clusters that are frozen in this cycle."""
    fleet = list(machines)
    kinds = len({(m.provider, m.instance_type, m.zone, m.capacity_type) for m in fleet})
    frozen = {cluster for cluster in policy.frozen if cluster in facts}
    while True:
        weights = {
            cluster: weight(
                [need for need in needs if need.cluster == cluster],
                kinds,
                sum(machine.cluster == cluster for machine in fleet),
            )
            for cluster in {need.cluster for need in needs} - frozen
        }
        if sum(weights.values()) <= policy.max_work:
            return frozenset(frozen)
        most = max(weights.values())
        frozen.add(min(cluster for cluster, work in weights.items() if work == most))


def weight(needs: Collection[Need], kinds: int, machines: int) -> int:
    """64 for each row, 1 for each kind of machine and set of requirements, 1 for each machine of
    the cluster, and 1 for each row and 1,024 machines."""
    sets = {(need.profile.requirements, need.profile.spread) for need in needs}
    return 64 * len(needs) + len(sets) * kinds + machines + len(needs) * machines // 1024
