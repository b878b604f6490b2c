"""What the kit hands to a provider when it opens its substrate.

`Kit.call` and `Kit.acall` are the only way a substrate should reach its cloud: there the limiter,
the metrics, the classes of errors and the retries are applied, once. The rest is what a substrate
needs to know about the process it lives in.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from bigfleet_providerkit.clock import Clock, Runtime
from bigfleet_providerkit.codec.tags import TagCodec
from bigfleet_providerkit.substrate import Host

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from bigfleet_providerkit.calls.caller import Caller
    from bigfleet_providerkit.offerings.offering import Offering

T = TypeVar("T")


class Shelf(Protocol):
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
    `offerings` are those of the start, for a substrate that checks whether it can hold them.
    """

    label: str
    runtime: Runtime
    log: "FilteringBoundLogger"
    caller: "Caller"
    codec: TagCodec
    shelf: Shelf
    poll_interval: float
    consistency_window: float
    create_operation: Callable[[str], str]
    pin_host: Callable[[Host, str], None]
    offerings: "Sequence[Offering]"

    @property
    def clock(self) -> Clock:
        """Time, as the kit knows it."""
        return self.runtime.clock

    async def call(self, op: str, work: Callable[..., T], *args: object, **named: object) -> T:
        """Run a blocking SDK call in the bounded pool, limited, counted, classified, retried."""
        return await self.caller.blocking(op, lambda: work(*args, **named))

    async def acall(self, op: str, work: Callable[[], Awaitable[T]]) -> T:
        """The same for an asynchronous call. `work` makes a new awaitable for every attempt."""
        return await self.caller.awaiting(op, work)

    async def pause(self) -> None:
        """Wait one poll interval between two looks at something under way."""
        await self.clock.sleep(self.poll_interval)
