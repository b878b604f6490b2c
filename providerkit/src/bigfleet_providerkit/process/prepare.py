"""What happens before a provider serves: checks, offerings, catalogue, kit, substrate.

All that is missing is named at once, credentials first. Prices and shapes are asked for together
for 15 s; after that the seed serves, unless an offering has no seed price at all.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.backend.hosts import example_orders
from bigfleet_providerkit.backend.state.host_key_pins import HostKeyPins
from bigfleet_providerkit.backend.state.kv_shelf import StoreShelf
from bigfleet_providerkit.backend.state.ledger import Ledger
from bigfleet_providerkit.backend.state.load import LoadedState
from bigfleet_providerkit.calls.batcher import Batcher
from bigfleet_providerkit.calls.caller import Caller
from bigfleet_providerkit.calls.describer import Describer
from bigfleet_providerkit.calls.quotas import limiters_of
from bigfleet_providerkit.capacity.table import CapacityTable
from bigfleet_providerkit.catalogue.offering_catalogue import OfferingCatalogue
from bigfleet_providerkit.catalogue.price_refresh import PriceRefresh
from bigfleet_providerkit.catalogue.sources import Source
from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.codec.tags import TagCodec
from bigfleet_providerkit.errors import OptionError, StartError, SubstrateError, error_line
from bigfleet_providerkit.hostexec.hostkey import HostKey, mint_host_key, new_seed
from bigfleet_providerkit.hostexec.userdata import first_boot
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.interruption.book import InterruptionBook
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.memory.substrate import MemorySubstrate
from bigfleet_providerkit.offerings.mix import default_offerings
from bigfleet_providerkit.offerings.offering import Offering
from bigfleet_providerkit.offerings.parse import Dialect, read_offerings
from bigfleet_providerkit.options.model import EUR_USD_DATED, KitOptions
from bigfleet_providerkit.options.settings import Settings
from bigfleet_providerkit.prices.book import PriceBook
from bigfleet_providerkit.prices.file import read_prices
from bigfleet_providerkit.spec import ProviderSpec
from bigfleet_providerkit.substrate import (
    AcceptsOfferings,
    PriceKey,
    RenewsCredentials,
    Substrate,
)

O = TypeVar("O", bound=KitOptions)  # noqa: E741 - the options model of one provider
ASK_FOR = 15.0
FIND_WINDOW = 0.1
ASK_AT_MOST = 90.0
SEED_IS_OLD = timedelta(days=180)


async def check_start(spec: ProviderSpec[O], options: O, *, fake: bool, store_given: bool) -> None:
    """Refuse a start that lacks something, with everything it lacks."""
    if fake:
        return
    problems = []
    try:
        await spec.credentials(options)
    except OptionError as error:
        problems.append(str(error))
    missing = options.missing()
    if missing:
        plural = "s" if len(missing) > 1 else ""
        problems.append(f"missing option{plural}: {', '.join(missing)}")
    if options.state is None and not store_given:
        problems.append("--state is required with a real substrate; give a path on a durable disk")
    if problems:
        raise OptionError("; ".join(problems))


def dialect_of(spec: ProviderSpec[O]) -> Dialect:
    """How offerings are written for this provider."""
    return Dialect(
        spec.type_names, spec.zone_names, spec.extra_fields, spec.capacity_types, spec.size_of
    )


def read_all_offerings(spec: ProviderSpec[O], options: O) -> list[Offering]:
    """The offerings of a start: those given, or the default mix."""
    dialect = dialect_of(spec)
    if options.offerings is not None:
        return read_offerings(options.offerings, dialect)
    return default_offerings(spec.buckets(options), options.seed_count, dialect)


def make_kit(
    spec: ProviderSpec[O],
    options: O,
    settings: Settings,
    runtime: Runtime,
    log: FilteringBoundLogger,
    metrics: Metrics,
    loaded: LoadedState,
    catalogue: OfferingCatalogue,
) -> Kit:
    """What the substrate gets."""
    limits = spec.limits
    codec = TagCodec(
        settings.label,
        separator=limits.separator,
        longest_key=limits.tag_key,
        longest_value=limits.tag_value,
        alphabet=limits.tag_alphabet,
    )
    limiters = limiters_of(spec.calls, options.api_rate, runtime.clock)
    caller = Caller(runtime, metrics, spec.classify, limiters, options.api_concurrency)
    kv_shelf = StoreShelf(loaded.ledger.store, loaded.hosts)
    return Kit(
        settings.label, runtime, log, caller,
        Describer(runtime, settings.poll_interval),
        Describer(runtime, FIND_WINDOW, lambda host: host.operation_id),
        Batcher(runtime), codec, kv_shelf,
        settings.poll_interval, settings.consistency_window,
        create_operation=lambda machine: _create_operation(loaded.ledger, machine),
        pin_host=HostKeyPins(loaded.ledger, log).keep,
        offered=lambda: catalogue.offerings,
        own_operation=loaded.ledger.ids.ours,
        example_orders=lambda: example_orders(
            catalogue, codec, settings.hook, limits.name, settings.first_boot
        ),
    )  # fmt: skip


def _create_operation(ledger: Ledger, machine: str) -> str:
    record = ledger.inventory.get(machine)
    return record.create_op if record is not None else ""


async def open_substrate(spec: ProviderSpec[O], options: O, kit: Kit, *, fake: bool) -> Substrate:
    """The provider's own substrate, or the one in memory."""
    if fake and not spec.always_fake:
        memory = MemorySubstrate(
            kit, slow=options.slow_ms / 1000, fail_rate=options.fail_rate, seed=options.fake_seed
        )
        kit.opened(memory.list_managed)
        return memory
    try:
        substrate = await spec.open(options, kit)
    except SubstrateError as error:
        raise StartError(f"the substrate cannot be opened: {error_line(error)}") from error
    if isinstance(substrate, RenewsCredentials):
        kit.caller.renew = substrate.renew_credentials
    kit.opened(substrate.list_managed)
    return substrate


def make_catalogue(
    spec: ProviderSpec[O], options: O, settings: Settings, offerings: Sequence[Offering]
) -> OfferingCatalogue:
    """Prices, shapes and forecasts, from the shipped tables."""
    region = spec.region(options) or settings.label
    rate = options.eur_usd if spec.currency == "EUR" else 1.0
    interruption = InterruptionBook(spec.interruption)
    if options.interruption_priors is not None:
        text = _read(options.interruption_priors, "--interruption-priors")
        interruption.extend(text, options.interruption_priors)
    given: Mapping[PriceKey, float] = {}
    if options.prices is not None:
        given = read_prices(_read(options.prices, "--prices"), options.prices)
    user_data = ""
    if options.base_user_data is not None:
        user_data = _read(options.base_user_data, "--base-user-data")
    region_of = spec.region_of
    catalogue = OfferingCatalogue(
        settings.label,
        region,
        offerings,
        PriceBook(spec.prices, region, rate, factor=options.price_factor, given=given),
        CapacityTable(spec.shapes),
        interruption,
        reserve=(lambda shape: options.reserve) if options.reserve else spec.reserve,
        reserve_given=bool(options.reserve),
        image=options.image,
        user_data=user_data,
        region_of=None if region_of is None else lambda zone: region_of(options, zone),
        tags=options.tags,
        extra={name: str(value) for name in spec.extra_fields
               if (value := getattr(options, name, None)) not in (None, "")},
    )  # fmt: skip
    check_user_data(spec, options, catalogue, offerings)
    return catalogue


def check_user_data(
    spec: ProviderSpec[O], options: O, catalogue: OfferingCatalogue, offerings: Sequence[Offering]
) -> None:
    """Refuse user data that this cloud does not take."""
    key = mint_host_key(new_seed()) if spec.pinned_host_keys else HostKey()
    for text in {catalogue.user_data(None), *(offering.user_data for offering in offerings)}:
        size = len(first_boot(text, options.bootstrap_hook, key, spec.first_boot).encode())
        if size > spec.limits.user_data:
            raise OptionError(
                f"user data with the hook has {size} bytes; {spec.limits.user_data} fit here: "
                "shorten --base-user-data or the offering's user_data"
            )


async def check_offerings(
    spec: ProviderSpec[O],
    options: O,
    catalogue: OfferingCatalogue,
    kit: Kit,
    substrate: Substrate,
    offerings: Sequence[Offering],
) -> None:
    """Everything that depends on the offerings and can be wrong before the first Create."""
    check_user_data(spec, options, catalogue, offerings)
    ids = (slot for offering in offerings for slot in offering.slot_ids(catalogue.label))
    kit.codec.check(max(ids, key=len, default=""))
    kit.codec.check_given(options.tags, "--tags")
    for number, offering in enumerate(offerings, 1):
        kit.codec.check_given(offering.tags, f"offering {number}: tags")
    if isinstance(substrate, AcceptsOfferings):
        await substrate.accept(offerings)


def _read(path: str, option: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{option} {path} cannot be read: {error}") from error


def log_prices(
    spec: ProviderSpec[O],
    options: O,
    catalogue: OfferingCatalogue,
    log: FilteringBoundLogger,
    now: float,
) -> None:
    """Say where prices come from, and warn of tables and rates that are half a year old."""
    log.info("prices", slots_by_source=catalogue.provenance())
    today = datetime.fromtimestamp(now, UTC).date()
    if today - spec.prices.dated > SEED_IS_OLD:
        log.warning("the seed prices are old", dated=spec.prices.dated.isoformat())
    shipped = "eur_usd" not in options.model_fields_set
    if spec.currency == "EUR" and shipped and today - EUR_USD_DATED > SEED_IS_OLD:
        log.warning(
            "the rate from euro to dollar is old; give --eur-usd",
            rate=options.eur_usd, dated=EUR_USD_DATED.isoformat(),
        )  # fmt: skip


def sources_of(spec: ProviderSpec[O], options: O, substrate: Substrate) -> list[Source]:
    """The sources of a provider; `--price-refresh` sets the period of its prices."""
    if isinstance(substrate, MemorySubstrate):
        # Tests set its prices and read them themselves.
        return [Source("prices", 0.0, lambda memory: memory.source_data())]
    given = options.price_refresh
    return [
        replace(source, every=given) if given is not None and source.name == "prices" else source
        for source in spec.sources(options)
    ]


async def live_catalogue(
    refresh: PriceRefresh,
    catalogue: OfferingCatalogue,
    log: FilteringBoundLogger,
    offerings: Sequence[Offering],
) -> None:
    """Ask for live prices and shapes; wait longer only when an offering has no price without."""
    task = asyncio.get_running_loop().create_task(refresh.read_all())
    await asyncio.wait({task}, timeout=ASK_FOR)
    if not task.done() and not _priced(catalogue, offerings):
        log.warning("waiting for the live price list: an offering has no seed price")
        await asyncio.wait({task}, timeout=ASK_AT_MOST - ASK_FOR)
    if not task.done():
        task.cancel()
        log.warning("the live price list was not read in time; the seed prices serve")
        return
    task.result()


def _priced(catalogue: OfferingCatalogue, offerings: Sequence[Offering]) -> bool:
    try:
        for offering in offerings:
            catalogue.quote(offering)
    except OptionError:
        return False
    return True
