"""What each transition does on the substrate.

    create      launch
    configure   hook on the host, node Ready, binding tag
    drain       hook on the host, binding tag cleared
    delete      terminate

Each may be run again from the start: the substrate's methods are idempotent, and so is the hook. A
binding tag that cannot be written does not fail a transition: reconcile puts it right.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from bigfleet_providerkit.backend.hosts import binding_of, host_of, notes_of, order_for
from bigfleet_providerkit.backend.state.ledger import Ledger, Work
from bigfleet_providerkit.calls.retry import budget, retrying, within
from bigfleet_providerkit.catalogue.offering_catalogue import OfferingCatalogue
from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.codec.tags import TagCodec
from bigfleet_providerkit.errors import (
    Ambiguous,
    Gone,
    NothingSent,
    Retryable,
    SubstrateError,
)
from bigfleet_providerkit.hostexec.contract import HookCall, check_result, command_for
from bigfleet_providerkit.machines.record import Record, Shape
from bigfleet_providerkit.machines.state import Kind
from bigfleet_providerkit.options.settings import Settings
from bigfleet_providerkit.readiness.judge import Judge
from bigfleet_providerkit.store.rows import NotesRow
from bigfleet_providerkit.substrate import CommandKind, Host, Substrate


class Steps:
    """The work of the four transitions."""

    def __init__(
        self,
        substrate: Substrate,
        ledger: Ledger,
        catalogue: OfferingCatalogue,
        judge: Judge,
        settings: Settings,
        runtime: Runtime,
        codec: TagCodec,
        *,
        longest_name: int,
    ) -> None:
        self._substrate = substrate
        self._ledger = ledger
        self._catalogue = catalogue
        self._judge = judge
        self._settings = settings
        self._runtime = runtime
        self._codec = codec
        self._longest_name = longest_name
        self.doing: dict[str, str] = {}
        self.on_ready: Callable[[Host, Record], None] = lambda host, record: None

    async def perform(self, record: Record, work: Work, secret: bytes) -> Host | None:
        """The whole work of a transition; the host for a Create."""
        match work.kind:
            case Kind.CREATE:
                return await self._create(record, work, first=True)
            case Kind.CONFIGURE:
                await self._configure(record, work, secret)
            case Kind.DRAIN:
                await self._drain(record, work)
            case Kind.DELETE:
                self.doing[work.operation] = "waiting for the host to be gone"
                await self.remove(host_of(record, self._ledger))
        return None

    async def resume(self, record: Record, work: Work) -> Host | None:
        """The work of a transition that a stop cut off. Only Configure cannot start again."""
        if work.kind is Kind.CREATE:
            return await self._create(record, work, first=False)
        if work.kind is not Kind.CONFIGURE:
            return await self.perform(record, work, b"")
        host = host_of(record, self._ledger)

        async def done_on_host() -> bool:
            call = self._call(record, work, CommandKind.PROBE, limit=30.0)
            result = await self._substrate.run_on_host(host, command_for(call))
            return result.exit_code == 0

        await self._judge.resumed(host, record.id, record.cluster, done_on_host)
        self.on_ready(host, record)
        await self.tag(record, record.cluster)
        return None

    async def remove(self, host: Host) -> None:
        """Terminate a host; absent is success."""

        async def attempt() -> None:
            try:
                await self._substrate.terminate(host)
            except Gone:
                return

        await retrying(self._runtime, attempt)

    async def remove_aside(self, host: Host) -> None:
        """The same outside of a transition, in the time that a Delete has."""
        await within(self._runtime, self._settings.timeouts.delete, self.remove(host))

    async def power_on(self, host: Host) -> None:
        """Bring a host back, in the time that a Create has."""
        work = self._substrate.ensure_running(host)
        await within(self._runtime, self._settings.timeouts.create, work)

    async def tag(self, record: Record, cluster: str | None) -> None:
        """Write the tag set of a machine's host, as far as that is possible now."""
        host = host_of(record, self._ledger)
        self._codec.know([cluster] if cluster else [])
        try:
            await self._substrate.set_binding(
                host, binding_of(record, cluster, host.pin, self._catalogue)
            )
        except SubstrateError:
            # Reconcile compares tags with records and writes them again.
            return

    def know(self, machines: Iterable[str]) -> None:
        """Ids whose tags may be hashes are recognised from now on."""
        self._codec.know(machines)

    def refined(self, record: Record) -> Shape:
        """The shape of a machine as it is known when its host runs."""
        return self._catalogue.refreshed(record)

    def reported(self, record: Record) -> dict[str, str]:
        """The smallest that Nodes of a machine's type reported lately; empty while none did."""
        offering = self._catalogue.offering_of(record.id)
        return self._catalogue.reports.written(offering.type_word) if offering is not None else {}

    def price_source(self, record: Record) -> str:
        """Where the price of a machine comes from; empty for one outside the offerings."""
        offering = self._catalogue.offering_of(record.id)
        return str(self._catalogue.quote(offering)) if offering is not None else ""

    def remembered(self, host: Host) -> NotesRow:
        """What the store keeps about a host."""
        return notes_of(host, self._runtime.clock.now())

    async def _create(self, record: Record, work: Work, *, first: bool) -> Host:
        """Launch, and launch again with an order that says so: the first may have had an effect."""
        self.doing[work.operation] = "waiting for the host to run"
        order = order_for(
            record, work, self._catalogue, self._codec,
            hook=self._settings.hook, longest_name=self._longest_name,
            form=self._settings.first_boot,
        )  # fmt: skip
        order = replace(order, first=first)

        async def attempt() -> Host:
            nonlocal order
            try:
                return await self._substrate.launch(order)
            except Ambiguous as error:
                order = replace(order, first=False, last_sent_monotonic_s=error.sent_monotonic_s)
                raise
            except (Gone, Retryable) as error:
                now = self._runtime.clock.monotonic()
                order = replace(order, first=False, last_sent_monotonic_s=now)
                if isinstance(error, Gone):
                    raise self._perhaps_not_yet(error, work.started) from error
                raise

        try:
            return await retrying(self._runtime, attempt)
        except Retryable as error:
            limit = budget.get()
            if error.throttled and first and limit is not None and not limit.sent:
                raise NothingSent(f"{NothingSent.opening}: {error}") from error
            raise

    async def _configure(self, record: Record, work: Work, secret: bytes) -> None:
        self.doing[work.operation] = "waiting for the hook to join the cluster"
        await self._hook(record, work, CommandKind.CONFIGURE, secret)
        self.doing[work.operation] = "waiting for the node to be Ready"
        limit = budget.get()
        until = limit.ends if limit else self._runtime.clock.monotonic()
        host = host_of(record, self._ledger)
        await self._judge.wait(host, record.id, record.cluster, until)
        self.on_ready(host, record)
        await self.tag(record, record.cluster)

    async def _drain(self, record: Record, work: Work) -> None:
        self.doing[work.operation] = "waiting for the hook to leave the cluster"
        await self._hook(record, work, CommandKind.DRAIN, b"")
        await self.tag(record, None)

    async def _hook(self, record: Record, work: Work, kind: CommandKind, secret: bytes) -> None:
        host = host_of(record, self._ledger)

        async def attempt() -> None:
            limit = max(1.0, work.deadline - self._runtime.clock.now())
            command = command_for(self._call(record, work, kind, limit=limit, secret=secret))
            try:
                result = await self._substrate.run_on_host(host, command)
            except Gone as error:
                raise self._perhaps_not_yet(error, host.created) from error
            check_result(kind, result)

        await retrying(self._runtime, attempt)

    def _perhaps_not_yet(self, error: Gone, since: float) -> SubstrateError:
        """A host that was just launched may not be visible everywhere yet."""
        if self._runtime.clock.now() - since < self._settings.consistency_window:
            return Retryable(f"the host is not visible yet: {error}")
        return error

    def _call(
        self, record: Record, work: Work, kind: CommandKind, *, limit: float, secret: bytes = b""
    ) -> HookCall:
        offering = self._catalogue.offering_of(record.id)
        host = host_of(record, self._ledger)
        return HookCall(
            kind=kind,
            hook=self._settings.hook,
            label=record.label,
            machine_id=record.id,
            operation_id=work.operation,
            limit=limit,
            cluster=record.cluster,
            grace=work.grace,
            taints=(*record.shape.taints, *(offering.startup_taints if offering else ())),
            secret=secret,
            provider_id=host.provider_id or host.ref,
        )
