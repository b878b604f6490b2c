"""`bigfleet shard`: one shard as a process."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import TYPE_CHECKING, Any

from bigfleet.cli.help_format import examples

if TYPE_CHECKING:
    from bigfleet.shard.server.settings import ShardSettings

SWITCH_SECONDS = 0.002
COLLECT_AFTER = (10_000, 20, 20)
"""Objects between two collections. What waits for one is little: almost everything here is freed
by its count, and a look at all that lives would hold up every session."""
EXAMPLES = examples(
    "bigfleet shard --shard-id s-1 --provider-addr cloud=127.0.0.1:9001@eu",
    "bigfleet shard --config shard.yaml --dry-run",
)


async def serve_shard(settings: ShardSettings, stop: asyncio.Event) -> None:
    """Serve a shard until told to stop."""
    from bigfleet.cli.processes.process import version
    from bigfleet.engine_warm_up import warm_up
    from bigfleet.observe.tracing import open_spans
    from bigfleet.shard.server.process import ServedShard, ServerOptions, serve

    serving = ServerOptions(
        listen=settings.listen,
        metrics_addr=settings.metrics_addr,
        data_dir=settings.data_dir,
        tls=settings.tls_files(),
        audit_log=settings.audit_log,
        version=version(),
        paused=settings.pause,
        spans=open_spans(
            settings.otlp_endpoint,
            settings.trace_ratio,
            service="bigfleet-shard",
            version=version(),
            instance=settings.shard_id,
        ),
    )

    # While a decision is made in its thread, the thread that serves sessions must not wait long for
    # the interpreter: a Hello passes through it a dozen times.
    sys.setswitchinterval(SWITCH_SECONDS)

    def listening(_listening: ServedShard) -> None:
        # What was built to start is there to stay; collections need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECT_AFTER)

    await serve(settings.tuning(), serving, stop, listening, warm_up)


def shard_refusals() -> tuple[type[Exception], ...]:
    """What a shard ends with in one line."""
    from bigfleet.observe.tracing import TracingError
    from bigfleet.shard.errors import ShardError
    from bigfleet.shard.state.disk import DiskError
    from bigfleet.shard.state.errors import ReconcileError
    from bigfleet.wire.errors import WireError
    from bigfleet_base.http import HttpError

    return (DiskError, ShardError, ReconcileError, HttpError, WireError, TracingError)


def shard_command() -> Any:
    """The command, with a flag for every setting."""
    from bigfleet.cli.processes.process import process_command
    from bigfleet.shard.server.settings import ShardSettings

    command = process_command(ShardSettings, serve_shard, shard_refusals())
    command.__doc__ = "Run a shard: decide which machines serve which cluster, and see to it."
    return command
