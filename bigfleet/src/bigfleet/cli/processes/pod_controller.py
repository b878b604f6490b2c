"""`bigfleet pod-controller`: the pod controller of one cluster as a process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bigfleet.cli.help_format import examples

if TYPE_CHECKING:
    from bigfleet.podcontroller.settings import PodControllerSettings

EXAMPLES = examples(
    "bigfleet pod-controller",
    "bigfleet pod-controller --kubeconfig ~/.kube/config --adopt-foreign-nodes=false",
    "bigfleet pod-controller --priority-class-defaults penalties.yaml",
)


async def serve_pod_controller(settings: PodControllerSettings, stop: asyncio.Event) -> None:
    """Serve a pod controller until told to stop."""
    from bigfleet.cli.processes.process import version
    from bigfleet.podcontroller.server import serve

    await serve(settings, stop, version())


def pod_controller_command() -> Any:
    """The command, with a flag for every setting."""
    from bigfleet.cli.processes.process import process_command
    from bigfleet.kube import KubeError
    from bigfleet.podcontroller.errors import PodControllerError
    from bigfleet.podcontroller.settings import PodControllerSettings
    from bigfleet_base.http import HttpError

    refusals = (PodControllerError, KubeError, HttpError)
    command = process_command(PodControllerSettings, serve_pod_controller, refusals)
    command.__doc__ = "Run a pod controller: one CapacityRequest for every Pod that is demand."
    return command
