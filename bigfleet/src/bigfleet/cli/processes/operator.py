"""`bigfleet operator`: the operator of one cluster as a process."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

from bigfleet.cli.help_format import examples

if TYPE_CHECKING:
    from bigfleet.operator.settings import OperatorSettings

EXAMPLES = examples(
    "bigfleet operator --cluster-id shop --shard-addr s-1:7780 --bootstrap-template kubeadm",
    "bigfleet operator --config operator.yaml",
)


async def serve_operator(settings: OperatorSettings, stop: asyncio.Event) -> None:
    """Serve an operator until told to stop."""
    from bigfleet.cli.processes.process import version
    from bigfleet.operator.server import RunningOperator, serve

    def running(_running: RunningOperator) -> None:
        gc.collect()
        gc.freeze()

    await serve(settings, stop, version(), running)


def operator_command() -> Any:
    """The command, with a flag for every setting."""
    from bigfleet.cli.processes.process import process_command
    from bigfleet.kube import KubeError
    from bigfleet.observe.tracing import TracingError
    from bigfleet.operator.errors import OperatorError
    from bigfleet.operator.settings import OperatorSettings
    from bigfleet.wire.errors import WireError
    from bigfleet_base.http import HttpError

    refusals = (OperatorError, KubeError, HttpError, WireError, TracingError)
    command = process_command(OperatorSettings, serve_operator, refusals)
    command.__doc__ = "Run a cluster's operator: demand to the shard, machines into the cluster."
    return command
