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

    Running.service               the six RPCs as coroutines over protobuf values, raising `Refusal`
    Running.address               host:port of the gRPC server, "" without one
    Running.substrate             the opened Substrate; with the fake a MemorySubstrate, whose
                                  methods lose hosts, run out of stock, set prices, delay and fail
    Running.reconcile(), .heal()  one pass now, for tests that do not wait for the loop
    Running.stop(), .crash()      a graceful stop; an end as by SIGKILL

    Substrate raises Retryable, OutOfCapacity, QuotaExceeded, Unauthorized, InvalidRequest, Gone

The layers, from the top: main and running put parts together; service answers RPCs; backend runs
transitions, reconciles, heals and resumes; store keeps what was acknowledged; machines are pure
values and functions. options, offerings, prices, capacity, interruption, calls, hostexec, codec,
tls, http, logs, admin and memory stand beside them. What is not named here is private.
"""

# The floor of TLS has to be set before anything imports grpc.
import bigfleet_providerkit.tls.floor  # noqa: F401 - it acts by being imported

# isort: split
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
from bigfleet_providerkit.running import Running, start
from bigfleet_providerkit.sources import Market, Source
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
    "Market",
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
    "Running",
    "Runtime",
    "Source",
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
