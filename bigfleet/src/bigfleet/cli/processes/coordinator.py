"""`bigfleet coordinator`: one coordinator as a process."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Final

from bigfleet.cli.help_format import examples

if TYPE_CHECKING:
    from bigfleet.coordinator.server.settings import CoordinatorSettings

SWITCH_SECONDS: Final = 0.0005
EXAMPLES = examples(
    "bigfleet coordinator --data-dir /var/lib/bigfleet",
    "bigfleet coordinator --id c-1 --advertise-addr c-1:7790 --store etcd://e-1:2379,e-2:2379",
)


async def serve_coordinator(
    settings: CoordinatorSettings, stop: asyncio.Event, flags: str = "--"
) -> None:
    """Serve a coordinator until told to stop; `flags` is what the names of its flags begin with."""
    from bigfleet.cli.processes.process import version
    from bigfleet.coordinator.server.process import CoordinatorOptions, serve
    from bigfleet.coordinator.store.factory import open_store

    serving = CoordinatorOptions(
        replica=settings.replica,
        place=settings.store_place(),
        listen=settings.listen,
        advertise=settings.advertise_addr,
        metrics_addr=settings.metrics_addr,
        tls=settings.tls_files(),
        export_dir=settings.snapshot_export_dir,
        version=version(),
        flags=flags,
    )
    # While a round is planned in its thread, answers must not wait long for the interpreter: a
    # report passes through it a few times, and each time would wait 5 ms by default.
    sys.setswitchinterval(SWITCH_SECONDS)
    await serve(serving, stop, open_store)


def coordinator_refusals() -> tuple[type[Exception], ...]:
    """What a coordinator ends with in one line."""
    from bigfleet.coordinator.state import StateError
    from bigfleet.coordinator.store.errors import StoreError
    from bigfleet.wire.errors import WireError
    from bigfleet_base.http import HttpError

    return (StoreError, StateError, HttpError, WireError)


def coordinator_command() -> Any:
    """The command, with a flag for every setting."""
    from bigfleet.cli.processes.process import process_command
    from bigfleet.coordinator.server.settings import CoordinatorSettings

    command = process_command(CoordinatorSettings, serve_coordinator, coordinator_refusals())
    command.__doc__ = "Run a coordinator: which shard has what, and machines that change shards."
    return command
