"""Hints at what the cluster could get, as AvailableCapacity objects.

One object per profile that is asked for; the newest hint wins and an equal one is not written
again. The shard tells only what changed, so what could not be written, or what a person deleted, is
written again from the newest hint. When no CapacityRequest asks for a profile any more, its object
goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable
from random import Random
from typing import Any, Final

from bigfleet.kube import Change, KubeClient, KubeError
from bigfleet.kube.fleet import AVAILABLE_CAPACITIES, PROFILE_LABEL, AvailableCapacity
from bigfleet.operator.machines.writer import MANAGER
from bigfleet.wire.backoff import Backoff
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import shard_pb2 as pb

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
    return {"metadata": {"labels": {PROFILE_LABEL: fingerprint_of(update)}}, "spec": spec}


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

    def __init__(self, client: KubeClient, demanded: Callable[[], set[str]], rng: Random) -> None:
        self._client, self._demanded, self._rng = client, demanded, rng
        self._wanted: dict[str, dict[str, Any]] = {}
        """The newest hint of each profile."""
        self._written: dict[str, dict[str, Any]] = {}
        self._there: set[str] = set()
        self._bell = asyncio.Event()

    def hear(self, update: pb.AvailableCapacityUpdate) -> None:
        """A hint of the shard."""
        fingerprint = fingerprint_of(update)
        if fingerprint:
            self._wanted[fingerprint] = body_of(update)
            self._bell.set()

    def seen(self, change: Change[AvailableCapacity]) -> None:
        """An object of the cluster came or went."""
        name = change.key
        if not name.startswith(_PREFIX):
            return
        fingerprint = name.removeprefix(_PREFIX)
        if change.new is not None:
            self._there.add(fingerprint)
            return
        self._there.discard(fingerprint)
        self._written.pop(fingerprint, None)
        self._bell.set()

    async def run(self) -> None:
        """Write, and sweep now and then, until cancelled."""
        loop = asyncio.get_running_loop()
        # Another replica may have written since this one last did.
        self._written.clear()
        backoff = Backoff(first=1.0, longest=SWEEP_SECONDS, chance=self._rng)
        sweep_at, again_at = loop.time() + SWEEP_SECONDS, math.inf
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(sweep_at, again_at)):
                    await self._bell.wait()
            self._bell.clear()
            if loop.time() >= sweep_at:
                sweep_at = loop.time() + SWEEP_SECONDS
                await self.sweep()
            if await self._write():
                backoff.reset()
                again_at = math.inf
            else:
                again_at = loop.time() + backoff.next()

    async def sweep(self) -> None:
        """Delete what is not asked for any more."""
        for fingerprint in (self._there | self._wanted.keys()) - self._demanded():
            self._wanted.pop(fingerprint, None)
            try:
                await self._client.delete(AVAILABLE_CAPACITIES, _PREFIX + fingerprint)
            except KubeError as error:
                _log.warning("AvailableCapacity not deleted", extra={"error": str(error)})
                return
            self._there.discard(fingerprint)
            self._written.pop(fingerprint, None)

    async def _write(self) -> bool:
        """Whether everything that differs could be written."""
        for fingerprint, body in list(self._wanted.items()):
            if self._written.get(fingerprint) == body:
                continue
            try:
                await self._client.apply(
                    AVAILABLE_CAPACITIES, _PREFIX + fingerprint, body, manager=MANAGER
                )
            except KubeError as error:
                _log.warning("AvailableCapacity not written", extra={"error": str(error)})
                # To the end of the row: one that is refused for good holds up no other.
                self._wanted[fingerprint] = self._wanted.pop(fingerprint, body)
                return False
            self._written[fingerprint] = body
            self._there.add(fingerprint)
        return True
