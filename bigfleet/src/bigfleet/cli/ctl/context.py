"""What every command of bigfleetctl is given: the options, the clock, and a person to ask.

`Edge` is what a test replaces. `run` opens the fleet, does one thing with it in one event loop, and
closes it; what it costs to import gRPC is paid there and not before.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import typer

from bigfleet.cli.errors import FailureError, InputError
from bigfleet.cli.output import Output, stage
from bigfleet_base.addresses import AddressError, dialled

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet

T = TypeVar("T")

DEFAULT_COORDINATOR: Final = "127.0.0.1:7790"


def _ask_on_terminal(question: str) -> bool:
    if not sys.stdin.isatty():
        raise InputError(f"{question} stdin is not a terminal; pass --yes to confirm")
    return typer.confirm(question)


@dataclass(frozen=True, slots=True)
class Edge:
    """The world outside: time, and the person at the terminal."""

    now: Callable[[], int] = time.time_ns
    """Unix nanoseconds."""
    confirm: Callable[[str], bool] = _ask_on_terminal
    rest: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Between two tries of something that should last."""


@dataclass(frozen=True, slots=True)
class Options:
    """The global options, as given."""

    coordinators: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()
    timeout: str = "10s"
    tls_cert: str = ""
    tls_key: str = ""
    tls_ca: str = ""
    output: Output = Output.TABLE
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Ctl:
    """One run of bigfleetctl."""

    options: Options = field(default_factory=Options)
    edge: Edge = field(default_factory=Edge)

    @property
    def output(self) -> Output:
        """How results are printed."""
        return self.options.output

    @property
    def is_table(self) -> bool:
        """Whether a person reads the result."""
        return self.options.output is Output.TABLE

    def confirmed(self, question: str, yes: bool) -> None:
        """Go on if told so beforehand or now."""
        if not yes and not self.edge.confirm(question):
            raise FailureError("nothing was changed")


def ctl_of(ctx: typer.Context) -> Ctl:
    """What the program was started with."""
    found = ctx.find_object(Ctl)
    return Ctl() if found is None else found


def addresses(given: list[str] | None, option: str) -> tuple[str, ...]:
    """The addresses of an option that may be repeated, or name several joined by commas."""
    found: list[str] = []
    for text in given or ():
        for part in text.split(","):
            address = part.strip()
            if not address:
                continue
            try:
                dialled(address, f"{option} host:port")
            except AddressError as error:
                raise InputError(str(error)) from None
            if address not in found:
                found.append(address)
    return tuple(found)


def run(ctl: Ctl, body: Callable[[Fleet], Awaitable[T]], doing: str = "asking") -> T:
    """Do one thing with the fleet, with a sign of life when it takes long and has a name."""
    from bigfleet.cli.ctl.calls.channels import connection
    from bigfleet.cli.ctl.calls.fleet_client import Fleet

    wires = connection(ctl.options)

    async def whole() -> T:
        async with Fleet(ctl.options, wires) as fleet:
            return await body(fleet)

    with stage(doing, quiet=ctl.options.quiet or not doing):
        try:
            return asyncio.run(_until_terminated(whole()))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


async def _until_terminated(work: Coroutine[object, object, T]) -> T:
    """SIGTERM cancels the work, as Ctrl-C does. An exception from a signal's handler would not do:
    it may be raised inside a callback of gRPC's, where it is lost.
    """
    loop, doing = asyncio.get_running_loop(), asyncio.ensure_future(work)
    loop.add_signal_handler(signal.SIGTERM, doing.cancel)
    try:
        return await doing
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
