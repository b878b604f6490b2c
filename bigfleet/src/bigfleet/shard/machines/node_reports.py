"""What a cluster says of its nodes, as values, and which machine a node is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """One node as its cluster sees it. `machine_id` is empty when the operator does not know it."""

    name: str
    provider_id: str = ""
    machine_id: str = ""
    ready: bool = False
    ready_since_ns: int = 0
    unschedulable: bool = False
    pods: int | None = None
    do_not_disrupt: bool = False

    @property
    def host_ref(self) -> str:
        """The host the provider id names: what stands after its last slash."""
        return self.provider_id.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class NodeFindings:
    """What an observation shows that is not as it should be, by machine."""

    cordoned: list[str]
    """Nodes held cordoned without our asking."""
    strange: list[str]
    """Machines the cluster takes for its own and which are not Configured for it."""
