"""Commands that run a component until they are told to stop.

Their flags are the component's settings: declared once there, shown here. `--config` names a file
with the same keys.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
import uvloop

from bigfleet.cli.errors import CommandError, FailureError, InputError
from bigfleet.observe.logs import configure_logs
from bigfleet.observe.settings import ProcessSettings, SettingFlag, SettingsError

S = TypeVar("S", bound=ProcessSettings)
Serve = Callable[[S, asyncio.Event], Coroutine[Any, Any, None]]
_log = logging.getLogger("bigfleet")
EXIT_SECONDS: Final = 4.5
"""From a signal to the end of the process at the latest."""


class ExitDeadline:
    """Ends the process some time after a signal, whatever a thread of it still does.

    What was acknowledged is on disk before it is acknowledged, so the process may end at any
    moment, as by a power cut; an orderly end is only kinder to peers, who would wait for time-outs.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """Count from now; a second signal changes nothing."""
        if self._timer is None:
            self._timer = threading.Timer(self._seconds, self._end)
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """The orderly end is through."""
        if self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        _log.error(
            "the process ends although a part of it still works; nothing acknowledged is lost",
            extra={"waited_seconds": self._seconds},
        )
        logging.shutdown()
        os._exit(1)


def process_command(
    settings: type[S], serve: Serve[S], refusals: tuple[type[Exception], ...]
) -> Any:
    """A command whose flags are the settings; `refusals` end it with one line."""

    def command(**given: object) -> None:
        file = given.pop("config", None)
        try:
            loaded = settings.load(given, None if file is None else Path(str(file)))
        except SettingsError as error:
            raise InputError(str(error)) from error
        configure_logs(getattr(loaded, "log_format", "text"), getattr(loaded, "log_level", "info"))
        deadline = ExitDeadline(EXIT_SECONDS)
        try:
            uvloop.run(_until_signalled(loaded, serve, deadline))
        except CommandError:
            raise
        except Exception as error:
            leaves = _leaves(error)
            if all(isinstance(leaf, refusals) for leaf in leaves):
                problems = "; ".join(dict.fromkeys(map(str, leaves)))
                raise FailureError(problems) from error
            for leaf in leaves:
                why = f"{type(leaf).__name__}: {leaf}"
                _log.error("component exited", extra={"error": why}, exc_info=leaf)
            raise FailureError("a part of the component failed; its log says which") from error
        finally:
            deadline.cancel()

    parameters = [_parameter(flag) for flag in settings.flags()]
    parameters.append(
        _option("config", Path | None, "A YAML file with the same keys.", metavar="FILE")
    )
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


async def _until_signalled(settings: S, serve: Serve[S], deadline: ExitDeadline) -> None:
    stop = asyncio.Event()

    def begin_stop(number: signal.Signals) -> None:
        _log.info("signal received, shutting down", extra={"signal": number.name})
        deadline.begin()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, begin_stop, number)
    await serve(settings, stop)


def _parameter(flag: SettingFlag) -> inspect.Parameter:
    words = f"{flag.meaning} [default: {flag.default}]" if flag.default else flag.meaning
    if flag.is_switch:
        return _option(flag.field, bool | None, words, f"{flag.name}/--no-{flag.name[2:]}")
    kind: Any = list[str] | None if flag.is_repeatable else str | None
    return _option(flag.field, kind, words, flag.name, metavar=flag.value)


def _option(
    field: str, kind: Any, words: str, *names: str, metavar: str | None = None
) -> inspect.Parameter:
    option = typer.Option(*names, help=words, show_default=False, metavar=metavar)
    return inspect.Parameter(
        field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option]
    )


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]


def version() -> str:
    """The version of this distribution."""
    return distribution_version("bigfleet")


# The mark by which a demo's data folder is told from that of a fleet: neither opens the other's.
#
# A demo writes the mark (`bigfleet_lab.demo.state`); commands of a fleet refuse such a folder.

FORM_FILE: Final = "form"
"""A demo's folder has this file; it holds the form of the state beside it."""


def refuse_demo(folder: Path) -> None:
    """Raise when a demo keeps its state in this folder."""
    if (folder / FORM_FILE).exists():
        raise InputError(
            f"{folder} holds the state of a demo (`bigfleet demo`), and a fleet would go on with "
            "its clusters and machines: choose another --data-dir, or move it away"
        )
