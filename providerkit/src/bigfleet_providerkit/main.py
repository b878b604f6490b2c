"""`main(spec)`: the executable of a provider.

Options, commands, signals and exit codes: 0 for a graceful end, 2 for bad input, 1 for a failure,
each with one line that names it. Everything in between is `running`.
"""

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import NoReturn, TypeVar

import uvloop
from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.errors import OptionError, StartError
from bigfleet_providerkit.logs.setup import make_logger
from bigfleet_providerkit.options.help import help_text, print_text
from bigfleet_providerkit.options.model import KitOptions
from bigfleet_providerkit.options.parse import parse_options
from bigfleet_providerkit.spec import ProviderSpec
from bigfleet_providerkit.version import __version__

O = TypeVar("O", bound=KitOptions)  # noqa: E741 - the options model of one provider
COMMANDS = ("check", "inspect", "sweep", "release")
FORMS = ("table", "json")
"""How `check` prints; the other commands show what the running provider answers, which is JSON."""
STOP_WITHIN = 9.0
SWITCH_INTERVAL = 0.001


def main(
    spec: ProviderSpec[O],
    argv: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> NoReturn:
    """Run a provider and end the process."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        sys.exit(run(spec, words, os.environ if environ is None else environ))
    except StartError as error:
        print(f"{spec.name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def run(spec: ProviderSpec[O], argv: list[str], environ: Mapping[str, str]) -> int:
    """Do what the command line says; the exit code."""
    plain = {word.lstrip("-") for word in argv if word.startswith("-")}
    program = spec.program or f"bigfleet-provider-{spec.name}"
    if "version" in plain:
        print_text(f"{program} {spec.version} (providerkit {__version__})")
        return 0
    if plain & {"help", "h"}:
        print_text(help_text(program, f"The BigFleet capacity provider {spec.name}.", spec.options))
        return 0
    confirmed = "yes" in plain
    given = [word for word in argv if word.lstrip("-") != "yes"] if confirmed else argv
    form, given = _form_of(given)
    options, words = parse_options(spec.options, given, environ)
    if words and words[0] not in COMMANDS:
        raise OptionError(f"unknown command {words[0]!r}; choose from {', '.join(COMMANDS)}")
    if not words:
        return uvloop.run(live(spec, options))
    if words[0] == "check":
        return uvloop.run(check(spec, options, form))
    from bigfleet_providerkit.admin.client import ask

    answer = ask(options.state, [*words, "yes"] if confirmed else words)
    print(json.dumps(answer, indent=2))
    return 1 if "error" in answer else 0


def _form_of(argv: list[str]) -> tuple[str, list[str]]:
    """How a command prints its result, and the words without that."""
    if not any(word in COMMANDS for word in argv):
        return FORMS[0], argv
    form, rest, words = FORMS[0], list[str](), iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name.lstrip("-") == "output" and name != "output":
            form = value if equals else next(words, "")
        else:
            rest.append(word)
    if form not in FORMS:
        raise OptionError(f"--output is {' or '.join(FORMS)}, not {form!r}")
    return form, rest


def settle_down() -> None:
    """Tune the interpreter for a process that now only serves.

    What was loaded stays, so the collector need not look at it again and again. The threads of
    store and planner wait for the interpreter a few times per step; 5 ms each would be felt.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    sys.setswitchinterval(SWITCH_INTERVAL)


async def live(spec: ProviderSpec[O], options: O) -> int:
    """Serve; an unforeseen error is logged like every other."""
    log = make_logger(options.log_level, options.log_format)
    try:
        return await serve(spec, options, log)
    except StartError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        log.error("component exited", error=why, exc_info=error)
        return 1


async def serve(spec: ProviderSpec[O], options: O, log: FilteringBoundLogger) -> int:
    """Serve until a signal comes."""
    from bigfleet_providerkit.process.running_provider import start

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stopped(name: str) -> None:
        log.info("signal received, shutting down", signal=name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped, number.name)
    starting = loop.create_task(start(spec, options, log=log))
    signalled = loop.create_task(stop.wait())
    await asyncio.wait({starting, signalled}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting}, timeout=STOP_WITHIN)
        log.info("provider stopped")
        return 0
    running = await starting
    settle_down()
    reloads: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        try:
            await running.reload_offerings()
        except StartError as error:
            log.error("offerings not taken; the old ones stay", error=str(error))

    def hangup() -> None:
        task = loop.create_task(reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGHUP, hangup)
    await signalled
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(running.stop(), STOP_WITHIN)
    log.info("provider stopped")
    return 0


async def check(spec: ProviderSpec[O], options: O, form: str) -> int:
    """Try everything a start would need, short of serving."""
    from bigfleet_providerkit.process.running_provider import try_out

    found = await try_out(spec, options, make_logger("warning", options.log_format))
    if form == "json":
        print(json.dumps({"provider": spec.name, **asdict(found)}, indent=2))
    else:
        print(f"{spec.name}: options, credentials and offerings are fine: {found}")
    return 0
