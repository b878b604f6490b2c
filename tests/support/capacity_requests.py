"""A CapacityRequest with every field, for tests that read back what an API server stores."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from bigfleet.kube.fleet import CAPACITY_REQUESTS, Quantity
from bigfleet.kube.objects import Meta, Partial


class RequirementSpec(Partial, frozen=True, kw_only=True):
    """One condition on a node's label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class SpreadSpec(Partial, frozen=True, kw_only=True):
    """How units spread over the values of a label."""

    topology_key: str
    max_skew: int
    when_unsatisfiable: str


class LabelSelector(Partial, frozen=True, kw_only=True):
    """Which units belong to a group."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[RequirementSpec, ...] = ()


class CoLocation(Partial, frozen=True, kw_only=True):
    """Which units share one value of a label."""

    topology_key: str
    label_selector: LabelSelector | None = None


class CapacityRequestSpec(Partial, frozen=True, kw_only=True):
    """What is wanted."""

    resources: dict[str, Quantity]
    priority: int
    requirements: tuple[RequirementSpec, ...] = ()
    interruption_penalty: Quantity | None = None
    reclamation_penalty: Quantity | None = None
    topology_spread: tuple[SpreadSpec, ...] = ()
    co_location: CoLocation | None = None


class Condition(Partial, frozen=True, kw_only=True):
    """A condition as all of Kubernetes writes them."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


class NeedRef(Partial, frozen=True, kw_only=True):
    """The row of demand that a request is added up in."""

    profile: str
    group: str = ""


class CapacityRequestStatus(Partial, frozen=True, kw_only=True):
    """How far it is: Pending or Acknowledged."""

    phase: str = ""
    acknowledged_at: datetime | None = None
    need: NeedRef | None = None
    conditions: tuple[Condition, ...] = ()


class CapacityRequest(Partial, frozen=True, kw_only=True):
    """Capacity that the cluster wants."""

    metadata: Meta
    spec: CapacityRequestSpec
    status: CapacityRequestStatus = CapacityRequestStatus()


FULL_REQUESTS: Final = CAPACITY_REQUESTS.read_as(CapacityRequest)
