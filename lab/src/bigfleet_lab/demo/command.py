"""`bigfleet demo`: start everything, say what was started, and play scenarios."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bigfleet.cli.help_format import HelpfulCommand, HelpfulGroup, examples
from bigfleet.cli.output import Form, Output, err, out, plain, print_document, table
from bigfleet_lab.demo.layout import Addresses, DemoProcess, Layout
from bigfleet_lab.demo.scenarios import SCENARIOS
from bigfleet_lab.demo.summary import SECONDS, at_dashboard, what_was_done

EXAMPLES: Final = examples(
    "bigfleet demo",
    "bigfleet demo --dashboard-addr 127.0.0.1:9700",
    "bigfleet demo play saturate",
    "bigfleet demo scenarios",
)
SCENARIOS_EXAMPLES: Final = examples(
    "bigfleet demo scenarios", "bigfleet demo scenarios --output json"
)
PLAY_EXAMPLES: Final = examples("bigfleet demo play saturate", "bigfleet demo play zone")
HONEST: Final = (
    "Simulated: the machines (120 of them, behind a real provider process) and the three clusters "
    "(real operator sessions, no pods). Real: coordinator, shard, engine, provider protocol, "
    "dashboard. Holds are shortened so that things happen in seconds."
)
_UP_WITHIN: Final = 120.0
_FOLDER: Final = Path(".bigfleet/demo")
"""Beside what `bigfleet all-in-one` and the parts alone keep in `.bigfleet`."""
_TABLE_WIDTH: Final = 72
"""Columns of a terminal below which a table is a list."""

app = typer.Typer(
    add_completion=False,
    cls=HelpfulGroup,
    invoke_without_command=True,
    help="Run the whole system on this machine, with a simulated cloud and simulated clusters.",
    epilog=EXAMPLES,
)
DataDir = Annotated[Path, typer.Option("--data-dir", help="Where everything is kept.")]


def _option(words: str) -> Any:
    return typer.Option(help=words, metavar="HOST:PORT")


@app.callback()
def run(
    ctx: typer.Context,
    data_dir: DataDir = _FOLDER,
    seed: Annotated[int, typer.Option(help="Of demand and chance.", min=0, metavar="N")] = 1,
    dashboard_addr: Annotated[str, _option("The page.")] = Addresses().dashboard,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host name that browsers use for the page, beside its address; may be repeated.",
            metavar="NAME",
        ),
    ] = None,
    coordinator_addr: Annotated[str, _option("The coordinator.")] = Addresses().coordinator,
    coordinator_metrics_addr: Annotated[
        str, _option("Its /metrics.")
    ] = Addresses().coordinator_http,
    shard_addr: Annotated[str, _option("The shard.")] = Addresses().shard,
    shard_metrics_addr: Annotated[str, _option("Its /metrics.")] = Addresses().shard_http,
    provider_addr: Annotated[str, _option("The simulated cloud.")] = Addresses().provider,
    provider_metrics_addr: Annotated[str, _option("Its /metrics.")] = Addresses().provider_http,
    output: Annotated[
        Output,
        typer.Option(
            "--output",
            "-o",
            help="How to say where everything is: table, json, yaml.",
            metavar="FORM",
        ),
    ] = Output.TABLE,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say the dashboard's address alone.")
    ] = False,
) -> None:
    """Run coordinator, shard, simulated cloud, three simulated clusters and dashboard."""
    if ctx.invoked_subcommand is not None:
        return
    at = Addresses(
        dashboard_addr, coordinator_addr, coordinator_metrics_addr, shard_addr,
        shard_metrics_addr, provider_addr, provider_metrics_addr,
    )  # fmt: skip
    layout = Layout(data_dir, at, seed, tuple(allowed_host or ()))
    asyncio.run(_run(layout, output, quiet=quiet))


@app.command(cls=HelpfulCommand, epilog=SCENARIOS_EXAMPLES)
def scenarios(
    output: Form = Output.TABLE,
) -> None:
    """List what can be made to happen."""
    if output is not Output.TABLE:
        fields = ("name", "title", "watch", "look")
        print_document([{f: getattr(s, f) for f in fields} for s in SCENARIOS], output)
        return
    if out.width < _TABLE_WIDTH:
        for each in SCENARIOS:
            out.print(plain(f"{each.name}: {each.title}", "bold"))
            out.print(plain(f"{each.watch} ({each.look})\n"))
        return
    view = table("name", "what happens", "what is seen of it", "screen")
    for each in SCENARIOS:
        view.add_row(plain(each.name), plain(each.title), plain(each.watch), plain(each.look))
    out.print(view)


@app.command(cls=HelpfulCommand, epilog=PLAY_EXAMPLES)
def play(
    name: Annotated[
        str,
        typer.Argument(
            help="A scenario; `scenarios` lists them.",
            autocompletion=lambda: [(each.name, each.title) for each in SCENARIOS],
        ),
    ],
    data_dir: DataDir = _FOLDER,
    seconds: Annotated[
        float,
        typer.Option(help="When to say what BigFleet did about it; 0 for not at all.", min=0),
    ] = SECONDS,
    output: Form = Output.TABLE,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Make something happen to a running demo, and say what BigFleet did about it and why."""
    from bigfleet_lab.demo.control import ask

    answer = asyncio.run(ask(data_dir / "demo.sock", {"do": "play", "name": name}))
    if output is not Output.TABLE:
        print_document(answer, output)
        return
    if quiet:
        return
    out.print(plain(f"{answer['playing']}. {answer['watch']}"), soft_wrap=True)
    out.print(plain(f"On the dashboard: {answer['look']}"))
    if seconds:
        asyncio.run(_follow(str(answer["dashboard"]), float(answer["played_at"]), seconds))


async def _follow(dashboard: str, since: float, seconds: float) -> None:
    """Wait, with a sign of life on a terminal, and say what was done."""
    watching = f"watching for {seconds:g} s what BigFleet does about it"
    with out.status(watching) if out.is_terminal else contextlib.nullcontext():
        await asyncio.sleep(seconds)
    await _say_what_was_done(dashboard, since)


async def _say_what_was_done(dashboard: str, since: float) -> None:
    out.print(plain("What BigFleet did, and why:", "bold"))
    for line in await what_was_done(at_dashboard(dashboard), since):
        out.print(plain(f"  {line}"), soft_wrap=True)


async def _run(layout: Layout, output: Output, *, quiet: bool) -> None:
    from bigfleet_lab.demo.ports import refuse_taken
    from bigfleet_lab.demo.state import hold_folder, take_folder

    # The folder first: who starts a second demo by mistake is told so, and not one port after the
    # other.
    take_folder(layout.folder)
    with hold_folder(layout.folder):
        refuse_taken(layout.at.by_flag())
        await _supervise(layout, output, quiet=quiet)
    if not quiet:
        err.print(
            plain(f"Everything stopped. State stays in {layout.folder}; start again to go on.")
        )


async def _supervise(layout: Layout, output: Output, *, quiet: bool) -> None:
    """All parts and the socket, until told to stop."""
    from bigfleet_lab.demo.control import Control, listen
    from bigfleet_lab.demo.supervisor import Supervisor

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    supervisor = Supervisor(layout.parts(), layout.log, lambda line: err.print(plain(line)))
    control = Control(supervisor, layout.at.dashboard)
    server = await listen(control, layout.socket)
    telling = asyncio.create_task(_tell(layout, supervisor, control, output, quiet=quiet))
    try:
        await supervisor.run(stop)
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        control.close()
        server.close()
        layout.socket.unlink(missing_ok=True)


async def _tell(
    layout: Layout, supervisor: object, control: object, output: Output, *, quiet: bool
) -> None:
    """Say who is up, where the page is and what to try; then take scenarios by number."""
    from bigfleet_lab.demo.control import Control
    from bigfleet_lab.demo.supervisor import Supervisor

    assert isinstance(supervisor, Supervisor)
    assert isinstance(control, Control)
    spoken = output is Output.TABLE and not quiet
    if spoken:
        out.print(plain("Starting BigFleet on this machine", "bold"))

    def told(part: DemoProcess) -> None:
        if spoken:
            out.print(plain(f"  {part.name:<12} {part.address:<16} {part.what}"))

    waiting = out.status("waiting for every part") if spoken and out.is_terminal else None
    try:
        with waiting or contextlib.nullcontext():
            await supervisor.up(_UP_WITHIN, told)
    except TimeoutError:
        err.print(plain(f"Not everything came up; logs are in {layout.folder / 'logs'}", "red"))
        return
    if not spoken:
        if output is Output.TABLE:
            print(f"http://{layout.at.dashboard}/")
        else:
            print_document(layout.document(), output)
        sys.stdout.flush()
        return
    out.print(plain(f"  {'clusters':<12} {'':<16} atlas, borealis, cirrus: simulated"))
    print_welcome(layout)
    if sys.stdin.isatty():
        _take_numbers(control)


def typed(program: str) -> str:
    """How a program of ours is called from here: after `make run` its folder is in no PATH."""
    if shutil.which(program) is not None:
        return program
    beside = Path(sys.executable).with_name(program)
    here = Path.cwd()
    return str(beside.relative_to(here) if beside.is_relative_to(here) else beside)


def print_welcome(layout: Layout) -> None:
    """The address, what is simulated, and three things to try."""
    folder = "" if layout.folder == _FOLDER else f" --data-dir {layout.folder}"
    lines = (
        "",
        "1. Open the dashboard and watch the map: demand moves round the clusters by itself.",
        f"2. Make something happen: {typed('bigfleet')} demo play saturate{folder}   "
        "(or on the page, Demo)",
        f"3. Ask in words: {typed('bigfleetctl')} --coordinator {layout.at.coordinator} "
        "inspect-needs --unmet",
        "",
    )
    out.print()
    out.print(plain(f"Dashboard: http://{layout.at.dashboard}/", "bold green"))
    out.print(plain(HONEST), soft_wrap=not out.is_terminal)
    for line in lines:
        out.print(plain(line), soft_wrap=True)
    if sys.stdin.isatty():
        numbered = (f"  {n} {each.title}" for n, each in enumerate(SCENARIOS, 1))
        out.print(plain("Type a number and Enter:\n" + "\n".join(numbered)))
    out.print(plain(f"Ctrl-C stops everything. Logs and state: {layout.folder}"), soft_wrap=True)


def _take_numbers(control: object) -> None:
    from bigfleet_lab.demo.control import Control

    assert isinstance(control, Control)
    loop = asyncio.get_running_loop()
    telling: dict[int, asyncio.Task[None]] = {}

    async def tell_later(name: str) -> None:
        await asyncio.sleep(SECONDS)
        await _say_what_was_done(control.dashboard, control.played_at(name))

    def typed() -> None:
        line = sys.stdin.readline()
        if not line:
            loop.remove_reader(sys.stdin)
        with contextlib.suppress(ValueError, IndexError):
            number = int(line)
            if number > 0:
                played = control.play(SCENARIOS[number - 1].name)
                out.print(plain(f"  {played.title}. {played.watch}"), soft_wrap=True)
                if number not in telling or telling[number].done():
                    telling[number] = loop.create_task(tell_later(played.name))

    loop.add_reader(sys.stdin, typed)
