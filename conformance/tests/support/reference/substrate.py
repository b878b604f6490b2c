"""The reference provider's substrate: instant or slow, and failing on command.

The selectors are labels of slots and names of clusters, as in the conformance specification.
"""

import asyncio

from bigfleet_api.v1alpha1 import provider_pb2 as pb

REGISTERED_S = 0.3
READY_S = 1.2
LATE_S = 1.0
ACCIDENT_S = 0.5


class SubstrateError(Exception):
    """The substrate refuses; the first word is the class."""


class LateError(Exception):
    """Cancelled work that went on, and succeeds a while later."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"succeeds {seconds} s late")
        self.seconds = seconds


class Substrate:
    """Hosts, and how long things take."""

    def __init__(self, slow_s: float) -> None:
        self.slow_s = slow_s
        self.hosts: set[str] = set()

    async def perform(self, kind: str, record: pb.Machine, operation: str) -> str:
        """The work of one operation; Create answers with its host's ref."""
        await asyncio.sleep(self.slow_s)
        if kind == "create":
            return self.launch(record, operation)
        if kind == "configure":
            await self.join(record.cluster)
        elif kind == "drain" and record.cluster == "fault-drain-error":
            raise SubstrateError("Unavailable: the drain was refused")
        return record.host.ref

    def launch(self, record: pb.Machine, operation: str) -> str:
        """A host, unless the slot is made to fail."""
        fault = record.labels.get("conformance.fault/create", "")
        if fault == "error":
            raise SubstrateError("InvalidRequest: the launch was refused")
        if fault == "stockout":
            raise SubstrateError(self.stockout())
        self.hosts.add(f"host-{operation}")
        return f"host-{operation}"

    def stockout(self) -> str:
        """What is said when there is no stock."""
        return "OutOfCapacity: no stock of that type"

    async def join(self, cluster: str) -> None:
        """The node joins, and is Ready in the end."""
        if cluster == "fault-error":
            raise SubstrateError("Unavailable: the join was refused")
        if cluster == "fault-timeout":
            await asyncio.sleep(3600)
        if cluster == "fault-slow-ok":
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                raise LateError(LATE_S) from None
        await self.ready(cluster)

    async def ready(self, cluster: str) -> None:
        """Wait until the node is Ready in its cluster."""
        if cluster == "fault-readiness-block":
            await asyncio.sleep(3600)
        if cluster == "fault-join-late":
            await asyncio.sleep(READY_S)

    async def accident(self, kind: str, cluster: str, host: str) -> None:
        """Hosts that are lost a while after they settled."""
        if (kind, cluster) in (("configure", "fault-lose-host"), ("drain", "fault-lose-idle")):
            await asyncio.sleep(ACCIDENT_S)
            self.hosts.discard(host)
