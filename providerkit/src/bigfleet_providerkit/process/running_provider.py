"""A provider that runs: the parts put together, started and stopped in order.

`start` works inside any event loop, with any clock, store and source of chance; `main` is a thin
layer of options and signals around it.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from prometheus_client import Gauge
from structlog.typing import FilteringBoundLogger

from bigfleet_base.http import HttpError, HttpServer, page_routes
from bigfleet_providerkit.admin.server import AdminServer
from bigfleet_providerkit.backend.resume import resume_all
from bigfleet_providerkit.backend.state.load import LoadedState, load
from bigfleet_providerkit.backend.state.slots import apply_offerings, slot_changes
from bigfleet_providerkit.catalogue.offering_catalogue import OfferingCatalogue
from bigfleet_providerkit.catalogue.price_refresh import PriceRefresh
from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.errors import OptionError, StartError, SubstrateError, error_line
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.logs.setup import silent_logger
from bigfleet_providerkit.machines.record import Shape
from bigfleet_providerkit.offerings.parse import read_offerings
from bigfleet_providerkit.options.model import KitOptions
from bigfleet_providerkit.options.settings import Settings, settings_from
from bigfleet_providerkit.process.assembly import Backend, build_backend
from bigfleet_providerkit.process.prepare import (
    check_offerings,
    check_start,
    dialect_of,
    live_catalogue,
    log_prices,
    make_catalogue,
    make_kit,
    open_substrate,
    read_all_offerings,
    sources_of,
)
from bigfleet_providerkit.service.server import GrpcServer
from bigfleet_providerkit.service.service import ProviderService
from bigfleet_providerkit.spec import ProviderSpec
from bigfleet_providerkit.store.interface import Store
from bigfleet_providerkit.store.memory import MemoryStore
from bigfleet_providerkit.store.sqlite import SqliteStore
from bigfleet_providerkit.substrate import ChecksPermissions, Closes, Serves, Substrate
from bigfleet_providerkit.tls.files import TlsFiles
from bigfleet_providerkit.tracing.traces import Traces

O = TypeVar("O", bound=KitOptions)  # noqa: E741 - the options model of one provider
FIRST_LISTING = 15.0
CALLS_END_WITHIN = 2.5
WORK_ENDS_WITHIN = 1.0


@dataclass(slots=True)
class RunningProvider(Generic[O]):
    """A provider in operation."""

    spec: ProviderSpec[O]
    options: O
    settings: Settings
    service: ProviderService
    substrate: Substrate
    metrics: Metrics
    backend: Backend
    catalogue: OfferingCatalogue
    refresh: PriceRefresh
    log: FilteringBoundLogger
    address: str = ""
    http_address: str = ""
    server: GrpcServer | None = None
    http: HttpServer | None = None
    admin: AdminServer | None = None
    traces: Traces = field(default_factory=Traces)
    not_ready: str = "starting"
    _stopped: bool = field(default=False)

    def readiness(self) -> str:
        """Why the provider is of no use now, or an empty text."""
        trouble = self.backend.ledger.store.trouble
        return self.not_ready or (f"the store cannot be written: {trouble}" if trouble else "")

    async def reconcile(self) -> bool:
        """One pass now."""
        return await self.backend.reconciler.run()

    async def heal(self) -> None:
        """Heal what is due now."""
        await self.backend.healer.run()

    async def refresh_prices(self) -> bool:
        """Ask the substrate for prices and shapes now."""
        useful = await self.refresh.read_all()
        await self.backend.loops.renew_records()
        return useful

    async def reload_offerings(self) -> int:
        """Read the offerings again (SIGHUP); the number of slots that changed."""
        if self.options.offerings is None:
            return 0
        dialect = dialect_of(self.spec)
        offerings = await asyncio.to_thread(read_offerings, self.options.offerings, dialect)
        await check_offerings(
            self.spec, self.options, self.catalogue, self.backend.kit, self.substrate, offerings
        )
        before = self.catalogue.offerings
        self.catalogue.take(offerings)
        try:
            shapes = await self._shapes_now()
        except StartError:
            self.catalogue.take(before)
            raise
        self.backend.steps.know(shapes)
        changed = await apply_offerings(self.backend.ledger, shapes, self.settings.label)
        self.log.info("offerings read again", slots=len(shapes), changed=changed)
        return changed

    async def _shapes_now(self) -> dict[str, Shape]:
        """The shapes of all slots; a type that is new here may be known by the live lists only."""
        try:
            return self.catalogue.shapes()
        except OptionError:
            await self.refresh.read_all()
            return self.catalogue.shapes()

    async def stop(self) -> None:
        """A graceful stop: no state changes, calls end, the store is closed."""
        if self._stopped:
            return
        self._stopped = True
        self.not_ready = "shutting down"
        self.service.closing = True
        if self.server is not None:
            await self.server.stop(CALLS_END_WITHIN)
        await self.service.settled()
        await self.backend.loops.stop()
        await self.backend.runner.stop(WORK_ENDS_WITHIN)
        await self._let_go()
        await self.backend.ledger.store.close()
        await asyncio.to_thread(self.traces.close)

    async def crash(self) -> None:
        """An end as by SIGKILL, for tests inside a process: nothing more is written."""
        self._stopped = True
        self.backend.ledger.store.abandon()
        await self.backend.loops.stop()
        await self.backend.runner.stop(0.0)
        if self.server is not None:
            await self.server.stop(0)
        await self._let_go()

    async def _let_go(self) -> None:
        if self.admin is not None:
            await self.admin.close()
        if self.http is not None:
            await asyncio.to_thread(self.http.close)
        await self.backend.judge.aclose()
        if isinstance(self.substrate, Closes):
            await self.substrate.aclose()
        self.backend.kit.close()


async def start(
    spec: ProviderSpec[O],
    options: O,
    *,
    runtime: Runtime | None = None,
    store: Store | None = None,
    listen: bool = True,
    log: FilteringBoundLogger | None = None,
) -> RunningProvider[O]:
    """Start a provider on this event loop. Raises StartError with one sentence for a person."""
    runtime = runtime or Runtime()
    log = log or silent_logger()
    if options.otlp_endpoint:
        runtime = replace(runtime, traces=_traces(spec, options))
    fake = options.use_fake_backend or spec.always_fake
    await check_start(spec, options, fake=fake, store_given=store is not None)
    offerings = read_all_offerings(spec, options)
    settings = settings_from(spec, options, offerings, fake=fake)
    metrics = Metrics(spec.call_names)
    async with contextlib.AsyncExitStack() as undo:
        kept = store or _store_for(options, metrics)
        loaded = load(kept, settings.label, runtime.rng)
        undo.push_async_callback(kept.close)
        catalogue = make_catalogue(spec, options, settings, offerings)
        catalogue.load_reports(loaded.reports)
        kit = make_kit(spec, options, settings, runtime, log, metrics, loaded, catalogue)
        undo.callback(kit.close)
        substrate = await open_substrate(spec, options, kit, fake=fake)
        if isinstance(substrate, Closes):
            undo.push_async_callback(substrate.aclose)
        await check_offerings(spec, options, catalogue, kit, substrate, offerings)
        refresh = PriceRefresh(
            catalogue, substrate, sources_of(spec, options, substrate), metrics, log
        )
        if not fake:
            await live_catalogue(refresh, catalogue, log, offerings)
        put, remove = slot_changes(loaded.ledger.inventory, catalogue.shapes(), settings.label)
        loaded.ledger.seed(put, remove)
        for record in loaded.ledger.inventory:
            kit.codec.know((record.id, record.cluster))
        log_prices(spec, options, catalogue, log, runtime.clock.now())
        backend = build_backend(
            spec, options, settings, substrate, loaded.ledger, catalogue, kit, metrics
        )
        service = ProviderService(
            loaded.ledger, settings, runtime.clock, metrics, backend.runner.begin
        )
        running = RunningProvider(
            spec, options, settings, service, substrate, metrics, backend, catalogue, refresh, log,
            traces=runtime.traces,
        )  # fmt: skip
        if loaded.fresh:
            await _adopt_first(running, loaded)
        if isinstance(substrate, Serves):
            await substrate.serve()
        if listen:
            await _listen(running)
        resumed = resume_all(
            loaded.ledger, backend.runner, backend.healer, settings, runtime.clock.now()
        )
        backend.loops.start(backend.healer.loop, refresh)
        if running.server is not None:
            await running.server.ready()
        running.not_ready = ""
        log.info("provider started", machines=len(loaded.ledger.inventory), resumed=resumed)
        undo.pop_all()
        return running
    raise AssertionError("the exit stack suppresses nothing")


def _store_for(options: KitOptions, metrics: Metrics) -> Store:
    if options.state in (None, "memory"):
        return MemoryStore()
    return SqliteStore(Path(str(options.state)), metrics)


async def _adopt_first(running: RunningProvider[O], loaded: LoadedState) -> None:
    """A new store, perhaps in the place of a lost one: take over what carries our label."""
    task = asyncio.get_running_loop().create_task(running.reconcile())
    await asyncio.wait({task}, timeout=FIRST_LISTING)
    adopted = sum(1 for record in loaded.ledger.inventory if record.host)
    if adopted:
        running.log.warning(
            "the store is new but hosts carry our label: fencing marks of before are gone",
            adopted=adopted, machines=len(loaded.ledger.inventory),
        )  # fmt: skip


def _traces(spec: ProviderSpec[O], options: O) -> Traces:
    try:
        from bigfleet_providerkit.tracing.otlp import OtlpSink
    except ImportError as error:
        raise StartError(
            f"--otlp-endpoint {options.otlp_endpoint}: {error}; install what it needs: "
            "bigfleet-providerkit[tracing]"
        ) from error
    return Traces(OtlpSink(options.otlp_endpoint, options.provider or spec.name, spec.version))


async def _listen(running: RunningProvider[O]) -> None:
    options, log = running.options, running.log
    credentials = None
    if options.tls_cert and options.tls_key and options.tls_ca:
        expiry = Gauge(
            "bigfleet_tls_certificate_expiry_timestamp_seconds", "end of the certificate in use",
            ("role",), registry=running.metrics.registry,
        )  # fmt: skip
        credentials = TlsFiles(options.tls_cert, options.tls_key, options.tls_ca, log, expiry)
    server = GrpcServer(
        running.service,
        running.metrics,
        log,
        credentials,
        reflection=options.reflection,
        traces=running.traces,
    )
    running.address = await server.start(options.addr)
    running.server = server
    log.info("listening", addr=running.address, transport="mTLS" if credentials else "plaintext")
    if options.metrics_addr not in ("", "0"):
        try:
            running.http = HttpServer(
                options.metrics_addr,
                {
                    **page_routes(running.metrics.page, running.readiness),
                    **running.backend.kit.posts,
                },
            )
        except HttpError as error:
            await server.stop(0)
            raise StartError(str(error)) from error
        running.http_address = running.http.address
        log.info("metrics serving", addr=running.http_address)
    path = running.backend.ledger.store.path
    if path != "memory":
        running.admin = await AdminServer.open(Path(path), running.backend, running.log)


@dataclass(frozen=True, slots=True)
class TriedOut:
    """What a start would find."""

    slots: int
    hosts: int
    label: str

    def __str__(self) -> str:
        return f"{self.slots} slots, {self.hosts} hosts with label {self.label}"


async def try_out(spec: ProviderSpec[O], options: O, log: FilteringBoundLogger) -> TriedOut:
    """Try everything a start needs without serving or changing anything; what was found."""
    fake = options.use_fake_backend or spec.always_fake
    await check_start(spec, options, fake=fake, store_given=True)
    offerings = read_all_offerings(spec, options)
    settings = settings_from(spec, options, offerings, fake=fake)
    metrics, runtime = Metrics(spec.call_names), Runtime()
    loaded = load(MemoryStore(), settings.label, runtime.rng)
    catalogue = make_catalogue(spec, options, settings, offerings)
    kit = make_kit(spec, options, settings, runtime, log, metrics, loaded, catalogue)
    substrate = await open_substrate(spec, options, kit, fake=fake)
    try:
        await check_offerings(spec, options, catalogue, kit, substrate, offerings)
        if not fake:
            sources = sources_of(spec, options, substrate)
            refresh = PriceRefresh(catalogue, substrate, sources, metrics, log)
            await live_catalogue(refresh, catalogue, log, offerings)
        slots, hosts = len(catalogue.shapes()), len(await substrate.list_managed())
        if isinstance(substrate, ChecksPermissions):
            missing = await substrate.missing_permissions()
            if missing:
                raise OptionError(f"permissions are missing: {', '.join(missing)}")
    except SubstrateError as error:
        raise StartError(error_line(error)) from error
    finally:
        if isinstance(substrate, Closes):
            await substrate.aclose()
        kit.close()
    return TriedOut(slots, hosts, settings.label)
