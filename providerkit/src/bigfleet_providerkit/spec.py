"""What a provider declares about itself, as one value.

`ProviderSpec` is everything `main` needs: the options, how to open the substrate, how to read its
errors, which capacity it has, its time-outs, limits and dated seed tables. It holds no behaviour of
its own; the kit's parts read from it what concerns them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from bigfleet_providerkit.catalogue.sources import Source
from bigfleet_providerkit.errors import SubstrateError
from bigfleet_providerkit.hostexec.userdata import FirstBoot
from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.options.model import KitOptions
from bigfleet_providerkit.substrate import Capacity, PriceKey, Substrate

if TYPE_CHECKING:
    from bigfleet_providerkit.kit import Kit
    from bigfleet_providerkit.offerings.offering import Offering

O = TypeVar("O", bound=KitOptions)  # noqa: E741 - the options model of one provider


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The longest each transition may take, in seconds.

    `create_of` has the Create of instance types that take longer, by pattern: `*.metal*`.
    """

    create: float = 300.0
    configure: float = 300.0
    drain: float = 600.0
    delete: float = 300.0
    create_of: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the substrate can carry. Lengths in characters, data in bytes."""

    tag_key: int = 128
    tag_value: int = 256
    tag_alphabet: str = ""
    separator: str = ":"
    name: int = 63
    user_data: int = 65_536
    blob: int = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Hourly seed prices in the provider's currency, and the day they were read.

    A key without a place holds everywhere. `spot_fraction` prices spot where only on-demand is
    known.
    """

    dated: date
    values: Mapping[PriceKey, float]
    spot_fraction: float = 0.35

    @staticmethod
    def flat(
        dated: date, on_demand: Mapping[str, float], *, spot_fraction: float = 0.35
    ) -> "PriceTable":
        """A table of on-demand prices that hold in every place."""
        keys = {PriceKey(t, "", CapacityType.ON_DEMAND): price for t, price in on_demand.items()}
        return PriceTable(dated, keys, spot_fraction)


@dataclass(frozen=True, slots=True)
class InterruptionTable:
    """Forecast probabilities by instance type, for an hour or a month; `otherwise` for the rest."""

    values: Mapping[str, float] = field(default_factory=dict)
    horizon: Literal["hour", "month"] = "hour"
    otherwise: float = 0.05


@dataclass(frozen=True, slots=True)
class Bucket:
    """One row of the default mix: an offering, and its share of `--seed-count`.

    `count` instead of a share gives a fixed number of slots beside it, numbered from `first`.
    """

    offering: Mapping[str, object]
    share: int = 1
    count: int | None = None
    first: int = 0


@dataclass(frozen=True, slots=True)
class CallRate:
    """API calls with a declared rate: `rate` a second, and `burst` at once after a pause.

    Several names share one bucket, as where a cloud counts the calls of an account or a group.
    Without a burst it is the fifth part of a second's worth, at least one call.
    """

    ops: tuple[str, ...]
    rate: float
    burst: float | None = None


def unknown_errors(error: BaseException) -> SubstrateError | None:
    """The classifier of a provider whose substrate raises the kit's own classes only."""
    return error if isinstance(error, SubstrateError) else None


async def no_credentials_needed(options: KitOptions) -> None:
    """The credentials check of a provider that needs none."""


@dataclass(frozen=True, slots=True)
class ProviderSpec(Generic[O]):
    """One provider, declared. Where zones or kinds of hosts are options, `mix` and `timeouts` are
    functions of them."""

    name: str
    version: str
    options: type[O]
    open: "Callable[[O, Kit], Awaitable[Substrate]]"
    mix: Sequence[Bucket] | Callable[[O], Sequence[Bucket]]
    prices: PriceTable
    shapes: Mapping[str, Capacity] = field(default_factory=dict)
    interruption: InterruptionTable = field(default_factory=InterruptionTable)
    classify: Callable[[BaseException], SubstrateError | None] = unknown_errors
    credentials: Callable[[O], Awaitable[None]] = no_credentials_needed
    region: Callable[[O], str] = lambda options: "local"
    type_names: tuple[str, ...] = ()
    zone_names: tuple[str, ...] = ()
    extra_fields: tuple[str, ...] = ()
    capacity_types: frozenset[CapacityType] = frozenset({CapacityType.ON_DEMAND, CapacityType.SPOT})
    delete_offered: "Callable[[Sequence[Offering]], bool]" = lambda offerings: True
    timeouts: Timeouts | Callable[[O], Timeouts] = field(default_factory=Timeouts)
    poll_interval: float = 2.0
    sources: Callable[[O], Sequence[Source]] = lambda options: ()
    """Where live prices, shapes and forecasts are read, and how often."""
    region_of: Callable[[O, str], str] | None = None
    """The region of a zone, where one process serves several; `region` otherwise."""
    size_of: "Callable[[Offering], str]" = lambda offering: ""
    """What sets offerings of one type apart that differ in size, for example `2o12g`."""
    heal_after: float | None = None
    """After how many seconds a failed slot is cleaned, where that is not 10 min."""
    reserve: Callable[[Capacity], Mapping[str, str]] = lambda shape: {}
    """What system daemons take from a shape, cpu and memory, unless `--reserve` says otherwise."""
    currency: Literal["USD", "EUR"] = "USD"
    limits: Limits = field(default_factory=Limits)
    consistency_window: float = 15.0
    calls: tuple[str | CallRate, ...] = ()
    pinned_host_keys: bool = False
    first_boot: FirstBoot = "cloud-init"
    """What user data is written for: cloud-init, or `shell` for images that run a script."""
    always_fake: bool = False
    program: str = ""
    """How the executable is called, where that is not bigfleet-provider- and the name."""

    @property
    def call_names(self) -> tuple[str, ...]:
        """The names of all API calls."""
        return tuple(
            name for call in self.calls for name in ((call,) if isinstance(call, str) else call.ops)
        )

    def buckets(self, options: O) -> Sequence[Bucket]:
        """The default mix."""
        return self.mix(options) if callable(self.mix) else self.mix

    def declared_timeouts(self, options: O) -> Timeouts:
        """The time-outs that no option has changed."""
        return self.timeouts(options) if callable(self.timeouts) else self.timeouts

    def default_label(self, options: O) -> str:
        """The label used when `--provider` is not given."""
        region = self.region(options)
        return f"{self.name}-{region}".lower() if region else self.name
