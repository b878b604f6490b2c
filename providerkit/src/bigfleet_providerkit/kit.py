"""What the kit hands to a provider when it opens its substrate.

`Kit.call` and `Kit.acall` are the only way a substrate should reach its cloud: there the limiter,
the metrics, the classes of errors and the retries are applied, once. The rest is what a substrate
needs to know about the process it lives in.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from bigfleet_providerkit.calls.batcher import Batcher, Send
from bigfleet_providerkit.calls.describer import Describer
from bigfleet_providerkit.calls.limiter import polling
from bigfleet_providerkit.clock import Clock, Runtime
from bigfleet_providerkit.codec.tags import TagCodec
from bigfleet_providerkit.errors import Gone
from bigfleet_providerkit.http.posts import Post, Route, post_route
from bigfleet_providerkit.substrate import Host, Launch, Power

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from bigfleet_providerkit.calls.caller import Caller
    from bigfleet_providerkit.offerings.offering import Offering

T = TypeVar("T")
STARTS = frozenset({Power.STARTING, Power.STOPPED})
ENDED = frozenset({Power.GONE, Power.PREEMPTED})


class KvShelf(Protocol):
    """A small durable map beside the machines; only substrates in memory keep hosts in it."""

    def items(self) -> dict[str, bytes]:
        """Everything that was on the shelf when the store was opened."""
        ...

    async def put(self, key: str, value: bytes | None) -> None:
        """Keep or, with None, remove one entry; returns when that is durable."""
        ...


@dataclass(frozen=True, slots=True)
class Kit:
    """The process around a substrate.

    `create_operation` is the Create of a machine's present life, or an empty text: what an agent's
    token is made of. `pin_host` keeps the key of a host that was met for the first time.
    """

    label: str
    runtime: Runtime
    log: "FilteringBoundLogger"
    caller: "Caller"
    describer: Describer
    finder: Describer
    batcher: Batcher
    codec: TagCodec
    kv_shelf: KvShelf
    poll_interval: float
    consistency_window: float
    create_operation: Callable[[str], str]
    pin_host: Callable[[Host, str], None]
    offered: "Callable[[], Sequence[Offering]]"
    posts: dict[str, Route] = field(default_factory=dict)
    example_orders: Callable[[], Iterator[Launch]] = lambda: iter(())
    """An order of each offering, for dry runs."""
    own_operation: Callable[[str], bool] = lambda operation: False
    """Whether the store of this provider made an operation id, now or earlier."""

    @property
    def offerings(self) -> "Sequence[Offering]":
        """What is offered now."""
        return self.offered()

    def http_post(self, path: str, token: str, handler: Post) -> None:
        """Answer `POST path` on the port of /metrics for callers with this bearer token.

        Without a token the path does not exist. `handler` runs on the provider's event loop, gets
        the decoded JSON object and returns one; a ValueError of its answers 400 with its text.
        """
        if token:
            self.posts[path] = post_route(token, handler)

    @property
    def clock(self) -> Clock:
        """Time, as the kit knows it."""
        return self.runtime.clock

    async def call(
        self, op: str, work: Callable[..., T], *args: object, once: bool = False, **named: object
    ) -> T:
        """Run a blocking SDK call in the bounded pool, limited, counted, classified, retried.

        `once` is for calls that make something and carry no idempotency token: a lost answer is
        raised as `Ambiguous` and the call is not sent again here.
        """
        return await self.caller.blocking(op, lambda: work(*args, **named), once=once)

    async def acall(self, op: str, work: Callable[[], Awaitable[T]], *, once: bool = False) -> T:
        """The same for an asynchronous call. `work` makes a new awaitable for every attempt."""
        return await self.caller.awaiting(op, work, once=once)

    async def launch_once(
        self,
        order: Launch,
        find: Callable[[], Awaitable[Host | None]],
        create: Callable[[], Awaitable[Host]],
    ) -> Host:
        """Launch where the cloud takes no idempotency token.

        `find` looks for the host of this order, as `kit.find` does with one listing for all that
        look; `create` sends the one call that makes it, with `once=True`. What an earlier attempt
        made may not be visible yet: nothing is created before the consistency window has passed and
        a second look has found nothing. An effect that shows later still is removed by reconcile.
        """
        with polling():
            found = await find()
        if found is None and not order.first:
            now = self.clock.monotonic()
            since = order.last_sent_monotonic_s
            shown_by = (now if since is None else since) + self.consistency_window
            await self.clock.sleep(max(0.0, shown_by - now))
            with polling():
                found = await find()
        return await create() if found is None else found

    async def look(self, ref: str) -> Host | None:
        """The host as the next look shows it, which all who wait share; None when it shows none.

        The substrate's `list_managed(refs)` answers, once per poll interval for all refs together.
        """
        return await self.describer.look(ref)

    async def find(self, order: Launch) -> Host | None:
        """The host that an earlier attempt of this order made; all who look share one listing."""
        return await self.finder.look(order.operation_id)

    async def until_running(self, host: Host) -> Host:
        """Wait for a host that was just launched; raises Gone when it ends instead."""
        visible_by = self.clock.monotonic() + self.consistency_window
        while True:
            seen = await self.look(host.ref)
            if seen is None:
                if self.clock.monotonic() >= visible_by:
                    raise Gone(f"host {host.ref} is not there any more")
            elif seen.power is Power.RUNNING:
                return seen
            elif seen.power not in STARTS:
                raise Gone(f"host {host.ref} is {seen.power} instead of starting")

    async def until_gone(self, host: Host) -> None:
        """Wait for a host that was told to end."""
        while True:
            seen = await self.look(host.ref)
            if seen is None or seen.power in ENDED:
                return

    async def wait_for(self, look: Callable[[], Awaitable[T]], until: Callable[[T], bool]) -> T:
        """Look at an operation or a command, a poll interval apart, until it is as wanted."""
        while True:
            with polling():
                seen = await look()
            if until(seen):
                return seen
            await self.pause()

    async def batched(self, op: str, ref: str, send: Send) -> None:
        """Make one call for all who make it at about the same time: `send` gets all their refs."""
        await self.batcher.add(op, ref, send)

    def opened(self, list_managed: Callable[..., Awaitable[Sequence[Host]]]) -> None:
        """The substrate is there: looks can be taken."""

        async def everything(operations: Sequence[str]) -> Sequence[Host]:
            return await list_managed()

        self.describer.describe = list_managed
        self.finder.describe = everything

    def close(self) -> None:
        """Let go of threads, looks and batches."""
        self.describer.close()
        self.finder.close()
        self.batcher.close()
        self.caller.close()

    async def pause(self) -> None:
        """Wait one poll interval between two looks at something under way."""
        await self.clock.sleep(self.poll_interval)
