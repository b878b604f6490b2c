"""The library every BigFleet capacity provider is built on.

    offerings x managed hosts x operations  ->  machines (slots), each with at most one host

A provider writes one `Substrate` (six methods about its cloud) and one `ProviderSpec`, and calls
`main(spec)`. Everything else is here:

    main(spec)                    the executable: options, signals, exit codes, admin commands
    start(spec, options, ...)     the same provider inside a process that is already running:
                                  on the caller's event loop, with the caller's clock, chance and
                                  store, with or without sockets. Tests, the in-tree fake and
                                  simulated fleets use it:

        runtime = Runtime.virtual(seed=7)
        running = await start(spec, spec.options(state="memory", use_fake_backend=True),
                              runtime=runtime, listen=False)
        ack = await running.service.create(CreateRequest(machine_id=..., ...))   # or Refusal
        await runtime.clock.advance(2.0)
        machines = running.service.machines()
        await running.stop()

    RunningProvider.service       the six RPCs as coroutines over protobuf values; raise `Refusal`
    RunningProvider.address       host:port of the gRPC server, "" without one
    RunningProvider.substrate     the opened Substrate; with the fake a MemorySubstrate, whose
                                  methods lose hosts, run out of stock, set prices, delay and fail
    RunningProvider.reconcile()   one pass now, and heal(), for tests that do not wait for the loop
    RunningProvider.stop()        a graceful stop; crash() ends it as SIGKILL would

    Substrate raises Retryable, OutOfCapacity, QuotaExceeded, Unauthorized, InvalidRequest, Gone

The rooms, from the top. What is not named above is private.

    main, process      command line; the parts of one provider, started and stopped
    service, admin     the six RPCs; the local socket of inspect, sweep and release
    backend            transitions, reconcile, healing, resume
    catalogue          slots with shapes and prices: offerings, prices, capacity, interruption
    hostexec           running the hook on a host: ssh, agent, guest, command
    readiness, calls   whether a node is Ready; limiter, retries and metrics of API calls
    store, machines    what was acknowledged, durable; slots, states and fences as pure values
    options, codec     flags and environment; names and tags
    http, tls          metrics and probes; certificates
    logs, tracing      log lines; traces
    memory             the fake behind --use-fake-backend
"""

# The floor of TLS has to be set before anything imports grpc.
import bigfleet_providerkit.tls.floor  # noqa: F401 - it acts by being imported

# isort: split
from bigfleet_providerkit.catalogue.sources import Source, SourceData
from bigfleet_providerkit.clock import Clock, Runtime, SystemClock, VirtualClock
from bigfleet_providerkit.errors import (
    Ambiguous,
    Code,
    Gone,
    InvalidRequest,
    OptionError,
    OutOfCapacity,
    QuotaExceeded,
    Refusal,
    Retryable,
    StartError,
    SubstrateError,
    Unauthorized,
)
from bigfleet_providerkit.machines.state import CapacityType, State
from bigfleet_providerkit.main import main
from bigfleet_providerkit.memory.substrate import MemorySubstrate
from bigfleet_providerkit.offerings.offering import Offering
from bigfleet_providerkit.options.model import KitOptions, Opt
from bigfleet_providerkit.process.running_provider import RunningProvider, start
from bigfleet_providerkit.spec import (
    Bucket,
    CallRate,
    InterruptionTable,
    Limits,
    PriceTable,
    ProviderSpec,
    Timeouts,
)
from bigfleet_providerkit.substrate import (
    Binding,
    Capacity,
    CommandKind,
    Host,
    HostCommand,
    HostResult,
    Launch,
    Litter,
    Notice,
    NoticeKind,
    Power,
    PriceKey,
    Substrate,
)
from bigfleet_providerkit.version import __version__

__all__ = [
    "Ambiguous",
    "Binding",
    "Bucket",
    "CallRate",
    "Capacity",
    "CapacityType",
    "Clock",
    "Code",
    "CommandKind",
    "Gone",
    "Host",
    "HostCommand",
    "HostResult",
    "InterruptionTable",
    "InvalidRequest",
    "KitOptions",
    "Launch",
    "Limits",
    "Litter",
    "MemorySubstrate",
    "Notice",
    "NoticeKind",
    "Offering",
    "Opt",
    "OptionError",
    "OutOfCapacity",
    "Power",
    "PriceKey",
    "PriceTable",
    "ProviderSpec",
    "QuotaExceeded",
    "Refusal",
    "Retryable",
    "RunningProvider",
    "Runtime",
    "Source",
    "SourceData",
    "StartError",
    "State",
    "Substrate",
    "SubstrateError",
    "SystemClock",
    "Timeouts",
    "Unauthorized",
    "VirtualClock",
    "__version__",
    "main",
    "start",
]
