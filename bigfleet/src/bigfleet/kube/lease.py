"""Who of several replicas acts: leader election on a Lease, handed over in under five seconds.

The holder renews every `renew` seconds. Others read the lease every `retry` seconds and take it
when it has not changed for its duration on *their own* clock, so clocks need not agree. A holder
that cannot renew stops by itself before anybody else may start. One that ends in order gives the
lease back, and the next takes it within `retry`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
import structlog

from bigfleet.kube.client import KubeClient
from bigfleet.kube.errors import AlreadyExistsError, ConflictError, KubeError, NotFoundError
from bigfleet.kube.objects import Meta, Partial, Resource

log = structlog.get_logger()


class LeaseSpec(Partial, frozen=True, kw_only=True):
    """Who holds a lease."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    lease_transitions: int = 0
    acquire_time: str = ""
    renew_time: str = ""


class Lease(Partial, frozen=True, kw_only=True):
    """A lease."""

    metadata: Meta
    spec: LeaseSpec = LeaseSpec()


LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", Lease)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long things take. After a crash: `duration` + `retry` and one request."""

    duration: int = 3
    """Whole seconds after which a lease that was not renewed may be taken."""
    give_up: float = 2.0
    """A holder that has not renewed for so long stops acting; less than `duration`."""
    renew: float = 0.7
    retry: float = 0.5


class LeaderElection:
    """One replica's part in the election of a lease's holder."""

    def __init__(
        self,
        client: KubeClient,
        name: str,
        identity: str,
        *,
        namespace: str = "",
        times: LeaseTimes | None = None,
    ) -> None:
        self._client = client
        self._name = name
        self._identity = identity
        self._namespace = namespace or client.namespace
        self._times = times or LeaseTimes()
        self._seen_version = ""
        self._seen_at = 0.0
        self._free_at = 0.0
        self._renewed_at = 0.0
        self._leading = asyncio.Event()
        self.holder = ""
        """Who holds the lease, as far as was seen; for people."""

    @property
    def is_leader(self) -> bool:
        """Whether this replica may act now."""
        return self._leading.is_set()

    @property
    def stands_by(self) -> bool:
        """Whether another replica acts, as far as was seen."""
        return not self.is_leader and self.holder not in ("", self._identity)

    async def wait_leading(self) -> None:
        """Until this replica may act."""
        await self._leading.wait()

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Take part until cancelled: run `lead` whenever elected, cancel it when no longer so.

        Returns when `lead` returns by itself; its exceptions come out here. The lease is given back
        in both cases and on cancellation.
        """
        try:
            while True:
                await self._acquire()
                log.info("leading", lease=self._name, identity=self._identity)
                if await self._lead(lead):
                    return
                log.warning("no longer leading", lease=self._name, holder=self.holder)
        finally:
            await self._release()

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> bool:
        """Whether the work ended by itself, before the leadership did."""
        self._leading.set()
        work = asyncio.ensure_future(lead())
        renewal = asyncio.ensure_future(self._renew_until_lost())
        try:
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
                return True
            renewal.result()
            return False
        finally:
            self._leading.clear()
            for task in (work, renewal):
                task.cancel()
            await asyncio.gather(work, renewal, return_exceptions=True)

    async def _acquire(self) -> None:
        while True:
            try:
                if await self._try_acquire():
                    return
            except KubeError as error:
                log.warning("lease not read", lease=self._name, error=str(error))
            await self._client.clock.sleep(self._pause())

    def _pause(self) -> float:
        """Until the next look: sooner where the lease may be taken before it."""
        left = self._free_at - self._client.clock.monotonic()
        return min(left, self._times.retry) if left > 0 else self._times.retry

    async def _try_acquire(self) -> bool:
        started = self._client.clock.monotonic()
        try:
            lease = await self._client.get(
                LEASES, self._name, self._namespace, deadline=self._times.give_up
            )
        except NotFoundError:
            return await self._create()
        self.holder = lease.spec.holder_identity
        if lease.metadata.resource_version != self._seen_version:
            self._seen_version = lease.metadata.resource_version
            self._seen_at = started
        free = not self.holder or self.holder == self._identity
        # The holder's own duration counts: it may run with other times than we do.
        duration = lease.spec.lease_duration_seconds or self._times.duration
        self._free_at = self._seen_at + duration
        if not free and self._client.clock.monotonic() < self._free_at:
            return False
        return await self._write(transitions=lease.spec.lease_transitions + 1)

    async def _create(self) -> bool:
        started = self._client.clock.monotonic()
        body = {
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec(self._client.clock.now(), transitions=0),
        }
        try:
            made = await self._client.create(
                LEASES, body, self._namespace, deadline=self._times.give_up
            )
        except AlreadyExistsError:
            return False
        self._hold(made, started)
        return True

    async def _write(self, transitions: int | None) -> bool:
        """Take or renew it, unless another replica wrote since it was read."""
        started = self._client.clock.monotonic()
        patch: dict[str, object] = {
            "metadata": {"resourceVersion": self._seen_version},
            "spec": self._spec(self._client.clock.now(), transitions=transitions),
        }
        try:
            written = await self._client.merge_patch(
                LEASES, self._name, patch, self._namespace, deadline=self._times.give_up
            )
        except (ConflictError, NotFoundError):
            return False
        self._hold(written, started)
        return True

    def _hold(self, lease: Lease, since: float) -> None:
        self.holder = self._identity
        self._seen_version = lease.metadata.resource_version
        # Counted from before the request was sent: others count from after it was written.
        self._seen_at = self._renewed_at = since

    def _spec(self, now: datetime, transitions: int | None) -> dict[str, object]:
        moment = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, object] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._times.duration,
            "renewTime": moment,
        }
        if transitions is not None:
            spec |= {"acquireTime": moment, "leaseTransitions": transitions}
        return spec

    async def _renew_until_lost(self) -> None:
        clock = self._client.clock
        while True:
            await clock.sleep(self._times.renew)
            left = self._renewed_at + self._times.give_up - clock.monotonic()
            try:
                if left <= 0 or not await self._renew_within(left):
                    return
            except KubeError as error:
                log.warning("lease not renewed", lease=self._name, error=str(error))
                if self._renewed_at + self._times.give_up <= clock.monotonic():
                    return

    async def _renew_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._write(transitions=None)
        except TimeoutError:
            return False

    async def _release(self) -> None:
        if self.holder != self._identity:
            return
        patch = {
            "metadata": {"resourceVersion": self._seen_version},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 1},
        }
        with suppress(KubeError, msgspec.MsgspecError):
            await self._client.merge_patch(
                LEASES, self._name, patch, self._namespace, deadline=self._times.give_up
            )
        self.holder = ""


# What processes with several replicas share: how long their leases last, and why one is not ready.
#
# Who is elected is `lease`'s business; what a process waits for, its own.

PATIENT: Final = LeaseTimes(duration=4, give_up=3.3, renew=0.8, retry=0.4)
"""An API server that takes thousands of Pods answers late, and who lost its lease starts over; yet
a hand-over after a crash takes under 5 s."""
_SECONDS: Final = 0.1
_log = logging.getLogger(__name__)


class Readiness:
    """Why a process is not ready, looked up on the event loop and read by another thread."""

    def __init__(self, why_not: Callable[[], str]) -> None:
        """`why_not` gives the reason for people; empty when ready."""
        self._why_not = why_not
        self.reason = why_not()

    def __str__(self) -> str:
        return self.reason

    async def follow(self) -> None:
        """Look now and then, until cancelled; what it waits for is said once."""
        logged = ""
        while True:
            self.reason = self._why_not()
            if self.reason and self.reason != logged:
                _log.info("waiting", extra={"reason": self.reason})
            logged = self.reason
            await asyncio.sleep(_SECONDS)
