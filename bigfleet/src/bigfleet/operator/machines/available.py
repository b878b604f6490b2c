"""Hints at what the cluster could get, as AvailableCapacity objects.

One object per profile that is asked for; the newest hint wins and an equal one is not written
again. When no CapacityRequest asks for a profile any more, its object goes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from bigfleet.kube import Change, KubeClient, KubeError
from bigfleet.kube.fleet import AVAILABLE_CAPACITIES, AvailableCapacity
from bigfleet.operator.machines.writer import MANAGER
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import shard_pb2 as pb

FINGERPRINT: Final = "bigfleet.lucy.sh/profile"
"""Label with the fingerprint of the profile."""
SWEEP_SECONDS: Final = 30.0
_KEY_PREFIX: Final = "available:"
_PREFIX: Final = "ac-"
_CONFIDENCE: Final = {
    pb.AvailableCapacityUpdate.CONFIDENCE_NONE: "None",
    pb.AvailableCapacityUpdate.CONFIDENCE_LOW: "Low",
    pb.AvailableCapacityUpdate.CONFIDENCE_MEDIUM: "Medium",
    pb.AvailableCapacityUpdate.CONFIDENCE_HIGH: "High",
}
_WIRE: Final = capacity.NodeSelectorRequirement
_OPERATORS: Final = {
    _WIRE.OPERATOR_IN: "In",
    _WIRE.OPERATOR_NOT_IN: "NotIn",
    _WIRE.OPERATOR_EXISTS: "Exists",
    _WIRE.OPERATOR_DOES_NOT_EXIST: "DoesNotExist",
    _WIRE.OPERATOR_GT: "Gt",
    _WIRE.OPERATOR_LT: "Lt",
}
_log = logging.getLogger(__name__)


def body_of(update: pb.AvailableCapacityUpdate) -> dict[str, Any]:
    """The object of a hint. Sharing one place is not known to it and left out."""
    spec: dict[str, Any] = {
        "requirements": [
            {"key": one.key, "operator": _OPERATORS[one.operator]}
            | ({"values": list(one.values)} if one.values else {})
            for one in update.requirements
            if one.operator in _OPERATORS
        ],
        "availableCount": max(0, update.available_count),
        "availability": _CONFIDENCE.get(update.confidence, "None"),
        "cost": cost_text(update.cost_per_hour),
    }
    if update.resources.resources:
        spec["resources"] = dict(update.resources.resources)
    return {"metadata": {"labels": {FINGERPRINT: fingerprint_of(update)}}, "spec": spec}


def fingerprint_of(update: pb.AvailableCapacityUpdate) -> str:
    """The profile a hint is about."""
    return update.supersedes_key.removeprefix(_KEY_PREFIX)


def cost_text(dollars: float) -> str:
    """Dollars an hour as a quantity: at most six digits after the point."""
    if not 0 < dollars < 1e9:
        return "0"
    return f"{dollars:.6f}".rstrip("0").rstrip(".") or "0"


class Available:
    """The AvailableCapacity objects. `demanded` gives the fingerprints that are asked for."""

    def __init__(self, client: KubeClient, demanded: Callable[[], set[str]]) -> None:
        self._client, self._demanded = client, demanded
        self._waiting: dict[str, dict[str, Any]] = {}
        self._written: dict[str, dict[str, Any]] = {}
        self._there: set[str] = set()
        self._bell = asyncio.Event()

    def hear(self, update: pb.AvailableCapacityUpdate) -> None:
        """A hint of the shard."""
        fingerprint, body = fingerprint_of(update), body_of(update)
        if fingerprint and self._written.get(fingerprint) != body:
            self._waiting[fingerprint] = body
            self._bell.set()

    def seen(self, change: Change[AvailableCapacity]) -> None:
        """An object of the cluster came or went."""
        name = change.key
        if not name.startswith(_PREFIX):
            return
        if change.new is None:
            self._there.discard(name.removeprefix(_PREFIX))
            self._written.pop(name.removeprefix(_PREFIX), None)
        else:
            self._there.add(name.removeprefix(_PREFIX))

    async def run(self) -> None:
        """Write, and sweep now and then, until cancelled."""
        loop = asyncio.get_running_loop()
        sweep_at = loop.time() + SWEEP_SECONDS
        while True:
            try:
                async with asyncio.timeout_at(sweep_at):
                    await self._bell.wait()
            except TimeoutError:
                sweep_at = loop.time() + SWEEP_SECONDS
                await self.sweep()
            self._bell.clear()
            for fingerprint in list(self._waiting):
                await self._write(fingerprint, self._waiting.pop(fingerprint))

    async def sweep(self) -> None:
        """Delete what nobody asks for."""
        demanded = self._demanded()
        for fingerprint in (self._there | self._written.keys()) - demanded:
            try:
                await self._client.delete(AVAILABLE_CAPACITIES, _PREFIX + fingerprint)
            except KubeError as error:
                _log.warning("AvailableCapacity not deleted", extra={"error": str(error)})
                return
            self._there.discard(fingerprint)
            self._written.pop(fingerprint, None)

    async def _write(self, fingerprint: str, body: dict[str, Any]) -> None:
        try:
            await self._client.apply(
                AVAILABLE_CAPACITIES, _PREFIX + fingerprint, body, manager=MANAGER
            )
        except KubeError as error:
            # It is advice: the next hint comes within seconds.
            _log.warning("AvailableCapacity not written", extra={"error": str(error)})
            return
        self._written[fingerprint] = body
        self._there.add(fingerprint)
