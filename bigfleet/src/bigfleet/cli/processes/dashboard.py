"""`bigfleet dashboard`: the page and its server as a process.

They are a distribution of their own; without it the command says how to get it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bigfleet.cli.errors import FailureError, InputError
from bigfleet.cli.help_format import examples

if TYPE_CHECKING:
    from bigfleet.cli.processes.dashboard_settings import DashboardSettings

EXAMPLES = examples(
    "bigfleet dashboard --coordinator 127.0.0.1:7790",
    "bigfleet dashboard --shard 127.0.0.1:7780",
    "bigfleet dashboard --auth-header X-Forwarded-User --allowed-host fleet.example.org",
    "bigfleet dashboard --listen :8700 --allow-plaintext --allowed-host fleet.example.org",
)


async def serve_dashboard(settings: DashboardSettings, stop: asyncio.Event) -> None:
    """Serve the page until told to stop."""
    from bigfleet_dashboard.errors import ConfigError
    from bigfleet_dashboard.server import serve

    try:
        config = settings.config()
    except ConfigError as error:
        raise InputError(str(error)) from error
    await serve(config, stop)


def dashboard_command() -> Any:
    """The command, with a flag for every setting."""
    try:
        from bigfleet_dashboard.errors import ConfigError
    except ImportError:
        raise FailureError(
            "the dashboard is not installed: pip install 'bigfleet[dashboard]'"
        ) from None
    from bigfleet.cli.processes.dashboard_settings import DashboardSettings
    from bigfleet.cli.processes.process import process_command

    command = process_command(DashboardSettings, serve_dashboard, (ConfigError,))
    command.__doc__ = "Serve the dashboard: what the fleet does and why, read-only."
    return command
