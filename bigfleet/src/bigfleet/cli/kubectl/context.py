"""What every command of `kubectl bigfleet` has: its options, the API server and the shard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import typer

from bigfleet.cli.ctl.context import Options
from bigfleet.cli.errors import FailureError
from bigfleet.cli.extras import KUBERNETES, require
from bigfleet.cli.output import stage

if TYPE_CHECKING:
    from bigfleet.kube import KubeClient

T = TypeVar("T")

PROGRAM: Final = "kubectl bigfleet"


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """The options of the program, as given."""

    namespace: str = ""
    context: str = ""
    kubeconfig: str = ""
    cluster_id: str = ""
    fleet: Options = field(default_factory=lambda: Options(timeout="5s"))
    """How to reach the shard, and how to print."""


def _connect(options: PluginOptions) -> KubeClient:
    from bigfleet.kube import KubeClient, load
    from bigfleet.kube.exec_login import run_helper

    config = load(options.kubeconfig or None, options.context or None, run_helper)
    return KubeClient.connect(config, user_agent="kubectl-bigfleet")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One run of the program. Tests replace the API server and the clock."""

    options: PluginOptions = field(default_factory=PluginOptions)
    connect: Callable[[PluginOptions], KubeClient] = _connect
    now_unix_s: Callable[[], float] = time.time


def plugin_of(ctx: typer.Context) -> Plugin:
    """What the program was started with."""
    found = ctx.find_object(Plugin)
    return Plugin() if found is None else found


def run(plugin: Plugin, body: Callable[[KubeClient, str], Awaitable[T]], doing: str) -> T:
    """Do one thing with the API server and the namespace that was chosen."""
    require(PROGRAM, "kubectl", *KUBERNETES)
    from bigfleet.kube import KubeError

    async def whole() -> T:
        async with plugin.connect(plugin.options) as client:
            return await body(client, plugin.options.namespace or client.namespace)

    with stage(doing, quiet=plugin.options.fleet.quiet):
        try:
            return asyncio.run(whole())
        except KubeError as error:
            raise FailureError(f"the API server: {error}") from error
