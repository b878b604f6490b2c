"""The tolerations of a Pod that say something about capacity, as a CapacityRequest has them.

Kubernetes gives every Pod some tolerations by itself: for nodes that are not ready or under
pressure. No provider declares those taints for its machines, so they are left out; with them equal
workloads would still be equal, but every request would carry them. A toleration with a limit in
seconds covers NoExecute for that time only, and a machine is bought for longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Final

from bigfleet.model import TaintError, Toleration
from bigfleet.podcontroller.pods import PodToleration

_OF_EVERY_POD: Final = re.compile(
    r"node\.kubernetes\.io/(not-ready|unreachable|unschedulable|network-unavailable|out-of-service"
    r"|(disk|memory|pid)-pressure)"
)


def tolerations_of(
    tolerations: Iterable[PodToleration],
) -> tuple[tuple[Toleration, ...], list[str]]:
    """The tolerations in canonical order; notes for the owner on what is left out."""
    found: set[Toleration] = set()
    notes: list[str] = []
    for one in tolerations:
        if _OF_EVERY_POD.fullmatch(one.key) or one.toleration_seconds is not None:
            continue
        try:
            found.add(Toleration.of(one.key, one.operator, one.value, one.effect))
        except TaintError as error:
            notes.append(f"A toleration is left out of the request for capacity: {error}.")
    return tuple(sorted(found)), notes


def as_documents(tolerations: Iterable[Toleration]) -> list[dict[str, str]]:
    """As they are written in a CapacityRequest: without what is empty."""
    return [
        {name: str(value) for name, value in asdict(one).items() if value} for one in tolerations
    ]
