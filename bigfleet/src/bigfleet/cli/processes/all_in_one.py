"""`bigfleet all-in-one`: a coordinator and one shard in one process, with the embedded store.

They speak real gRPC on loopback, as they would on two machines, and each has its own ports, so
that nothing is counted twice. For a laptop, and for a fleet of up to about 10,000 machines.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bigfleet.cli.help_format import examples

if TYPE_CHECKING:
    from bigfleet.cli.processes.all_in_one_settings import AllInOneSettings

EXAMPLES = examples(
    "bigfleet all-in-one --provider-addr cloud=127.0.0.1:9001",
    "bigfleet all-in-one --data-dir /var/lib/bigfleet --listen :7780 --coordinator-listen :7790",
)


async def serve_all(settings: AllInOneSettings, stop: asyncio.Event) -> None:
    """Serve both until told to stop; when one fails, so does the other."""
    from bigfleet.cli.processes.coordinator import serve_coordinator
    from bigfleet.cli.processes.process import refuse_demo
    from bigfleet.cli.processes.shard import serve_shard

    refuse_demo(settings.data_dir)
    async with asyncio.TaskGroup() as group:
        group.create_task(serve_coordinator(settings.coordinator(), stop, "--coordinator-"))
        group.create_task(serve_shard(settings.shard(), stop))


def all_in_one_command() -> Any:
    """The command, with a flag for every setting."""
    from bigfleet.cli.processes.all_in_one_settings import AllInOneSettings
    from bigfleet.cli.processes.coordinator import coordinator_refusals
    from bigfleet.cli.processes.process import process_command
    from bigfleet.cli.processes.shard import shard_refusals

    refusals = (*coordinator_refusals(), *shard_refusals())
    command = process_command(AllInOneSettings, serve_all, refusals)
    command.__doc__ = (
        "Run a coordinator and one shard in one process, for a laptop or a small fleet."
    )
    return command
