"""A cloud in memory that is as difficult as real ones, and a substrate for it, on virtual time.

The cloud answers after a latency, loses answers with or without the effect, shows new hosts in its
lists late, throttles, runs out of stock, and counts every call. Its launches are idempotent in one
of three ways: by a token, by a unique name, or not at all.
"""

import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from bigfleet_providerkit import (
    Binding,
    Clock,
    Gone,
    Host,
    HostCommand,
    HostResult,
    Launch,
    OutOfCapacity,
    Power,
    Retryable,
    SubstrateError,
)
from bigfleet_providerkit.codec.tags import CLUSTER, MACHINE, OPERATION
from bigfleet_providerkit.kit import Kit

Idempotency = Literal["token", "name", "none"]
PAGE = 50
OPS = ("CreateHost", "DeleteHost", "ListHosts", "SetTags")


class ThrottledError(Exception):
    """429, with or without a pause."""

    def __init__(self, after: float | None) -> None:
        super().__init__("too many requests")
        self.after = after


class NameTakenError(Exception):
    """409: there is a host of that name."""


def classify(error: BaseException) -> SubstrateError | None:
    """The errors of this cloud."""
    if isinstance(error, ThrottledError):
        return Retryable(str(error), throttled=True, after=error.after)
    if isinstance(error, NameTakenError):
        return Retryable(str(error), refused=True)
    return None


@dataclass
class RoughCloud:
    """Hosts, and the ways in which calls about them go wrong."""

    clock: Clock
    rng: random.Random
    idempotency: Idempotency = "none"
    latency: float = 0.0
    boots_in: float = 1.0
    list_lag: float = 0.0
    throttle: float = 0.0
    stock_out: float = 0.0
    rate: float = 0.0
    quota_burst: float = 1.0
    hosts: dict[str, Host] = field(default_factory=dict)
    running_at: dict[str, float] = field(default_factory=dict)
    listed_at: dict[str, float] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    throttles: int = 0
    bought: int = 0
    lost_launches: deque[float] = field(default_factory=deque)
    user_data: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    quota_left: float = 1.0
    _refilled: float = 0.0

    def lose_answer(self, effect_after: float = 0.0) -> None:
        """The next launch takes effect after so many seconds, and its answer is lost."""
        self.lost_launches.append(effect_after)

    async def called(self, op: str) -> None:
        """What every call goes through: latency, quota, chance."""
        self.calls[op] += 1
        await self.clock.sleep(self.latency)
        if self.rate:
            now = self.clock.monotonic()
            self.quota_left = min(
                self.quota_burst, self.quota_left + (now - self._refilled) * self.rate
            )
            self._refilled = now
            if self.quota_left < 1.0:
                self.throttles += 1
                raise ThrottledError(None)
            self.quota_left -= 1.0
        if self.rng.random() < self.throttle:
            self.throttles += 1
            raise ThrottledError(1.0 if self.rng.random() < 0.5 else None)

    async def create(self, name: str, token: str, host: Host, user_data: str = "") -> str:
        """A host that boots."""
        await self.called("CreateHost")
        self.user_data.append(user_data)
        if self.rng.random() < self.stock_out:
            raise OutOfCapacity("no stock")
        if self.lost_launches:
            delay = self.lost_launches.popleft()
            self.clock.call_later(delay, lambda: self._make(name, token, host))
            raise TimeoutError("the answer was lost")
        return self._make(name, token, host)

    def _make(self, name: str, token: str, host: Host) -> str:
        if self.idempotency == "token" and token in self.tokens:
            return self.tokens[token]
        if self.idempotency == "name" and any(h.node_name == name for h in self.hosts.values()):
            raise NameTakenError(name)
        self.bought += 1
        ref = self.tokens[token] = f"h-{self.bought}"
        now = self.clock.monotonic()
        self.hosts[ref] = replace(host, ref=ref, node_name=name, created=self.clock.now())
        self.running_at[ref], self.listed_at[ref] = now + self.boots_in, now + self.list_lag
        return ref

    async def delete(self, ref: str) -> None:
        """The host is gone."""
        await self.called("DeleteHost")
        if self.hosts.pop(ref, None) is None:
            raise Gone(ref)

    async def page(self, refs: Sequence[str] | None, start: int) -> list[Host]:
        """One page of the hosts that lists show by now."""
        await self.called("ListHosts")
        now = self.clock.monotonic()
        shown = [
            replace(h, power=Power.RUNNING if now >= self.running_at[h.ref] else Power.STARTING)
            for h in self.hosts.values()
            if now >= self.listed_at[h.ref] and (refs is None or h.ref in refs)
        ]
        return shown[start : start + PAGE]


class RoughSubstrate:
    """A provider's part for that cloud, written as a provider would write it."""

    def __init__(self, kit: Kit, cloud: RoughCloud) -> None:
        self._kit = kit
        self._cloud = cloud
        self.orders: list[Launch] = []

    async def launch(self, order: Launch) -> Host:
        """Create and wait until it runs."""
        self.orders.append(order)
        if self._cloud.idempotency == "token":
            made = await self._create(order, once=False)
        else:
            made = await self._kit.launch_once(
                order, lambda: self._kit.find(order), lambda: self._create(order, once=True)
            )
        return await self._kit.until_running(made)

    async def terminate(self, host: Host) -> None:
        """Absent is success."""
        await self._kit.acall("DeleteHost", lambda: self._cloud.delete(host.ref))

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        """All pages."""
        found: list[Host] = []
        while True:
            start = len(found)
            part = await self._kit.acall("ListHosts", lambda: self._cloud.page(refs, start))  # noqa: B023
            found += part
            if len(part) < PAGE:
                return found

    async def ensure_running(self, host: Host) -> None:
        """Hosts of this cloud do not stop."""

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """The hook always succeeds here."""
        return HostResult(0)

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """Tags are written at launch only."""

    async def _create(self, order: Launch, *, once: bool) -> Host:
        codec = self._kit.codec
        host = Host(
            "", codec.read(order.tags, MACHINE) or "", codec.read(order.tags, OPERATION) or "",
            order.instance_type, order.zone, order.capacity_type,
            cluster=codec.read(order.tags, CLUSTER), pin=order.pin,
        )  # fmt: skip

        async def send() -> str:
            return await self._cloud.create(order.name, order.operation_id, host, order.user_data)

        ref = await self._kit.acall("CreateHost", send, once=once)
        return replace(host, ref=ref, power=Power.STARTING)
