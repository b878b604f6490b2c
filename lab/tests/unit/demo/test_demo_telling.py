"""What BigFleet did about a scenario, as the terminal says it."""

import asyncio
import json
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bigfleet_lab.demo.control import Control, listen
from bigfleet_lab.demo.summary import MOST_LINES, at_dashboard, decided, what_was_done
from bigfleet_lab.demo.supervisor import Supervisor
from commandline import run

WHY = "Machines would fit, but all of them serve needs that are as important or more important."


def decision(
    kind: str, cluster: str = "atlas", reason: str = "r", at: int = 10**20
) -> dict[str, Any]:
    return {"kind": kind, "cluster": cluster or None, "reason": reason, "unix_nanos": at}


def need(key: str, cluster: str, reason: str = "PRIORITY_STARVED") -> dict[str, Any]:
    return {"key": key, "cluster": cluster, "priority_class": "batch", "reason": reason}


def pages(decisions: list[dict[str, Any]], needs: list[dict[str, Any]]) -> Mapping[str, Any]:
    """What a dashboard answers."""
    return {
        "/api/v1/decisions?limit=1000": {"decisions": decisions},
        "/api/v1/needs?verdict=unmet&limit=1000": {"needs": needs},
        **{f"/api/v1/needs/{each['key']}": {"why": [WHY]} for each in needs},
    }


@contextmanager
def dashboard(known: Mapping[str, Any]) -> Iterator[str]:
    """A web server that knows these pages; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path in known else 404)
            self.end_headers()
            self.wfile.write(json.dumps(known.get(self.path, {})).encode())

        def log_message(self, format: str, *args: object) -> None:
            """No person reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_equal_decisions_are_one_line_with_the_reason() -> None:
    taken = [decision("Preempt", "atlas", "priority 1000 takes it")] * 3
    given = [decision("Bootstrap", "cirrus", "cheapest idle machine")]
    assert decided([*given, *taken, decision("Delete", "", "idle for 20 s")]) == [
        "Preempt 3 machines of atlas: priority 1000 takes it",
        "Bootstrap 1 machine for cirrus: cheapest idle machine",
        "Delete 1 machine: idle for 20 s",
    ]


def test_a_drain_is_told_once_with_what_it_carries_out() -> None:
    said = decided([decision("Preempt"), decision("Drain"), decision("Drain", "cirrus", "asked")])
    assert said == ["Preempt 1 machine of atlas: r", "Drain 1 machine of cirrus: asked"]


def test_lines_are_few_and_every_kind_is_among_them() -> None:
    many = [decision("Bootstrap", f"c-{n}") for n in range(50) for _ in range(2)]
    said = decided([*many, decision("Preempt"), decision("Keep")])
    assert len(said) == MOST_LINES + 1
    assert said[0].startswith("Preempt")
    assert any(line.startswith("Keep") for line in said)
    assert said[-1] == f"and {102 - 2 - 2 * (MOST_LINES - 2)} more"


def test_where_nothing_was_decided_that_is_said() -> None:
    assert decided([]) == ["Nothing had to be decided so far."]


async def test_only_what_came_after_the_scenario_is_told_and_what_is_unmet() -> None:
    decisions = [decision("Provision", at=2 * 10**9), decision("Reclaim", at=10**9 - 1)]
    needs = [need("a", "cirrus"), need("b", "atlas"), need("c", "atlas", "STOCK_OUT")]
    with dashboard(pages(decisions, needs)) as address:
        said = await what_was_done(at_dashboard(address), 1.0)
    assert said == [
        "Provision 1 machine for atlas: r",
        f"Unmet: 2 needs of atlas, cirrus (batch): {WHY}",
        f"Unmet: 1 need of atlas (batch): {WHY}",
    ]


async def test_a_need_that_is_gone_by_now_is_told_by_the_name_of_its_reason() -> None:
    known = pages([], [need("a", "atlas")])
    with dashboard({path: page for path, page in known.items() if path[-2:] != "/a"}) as address:
        said = await what_was_done(at_dashboard(address), 1.0)
    assert said[-1] == "Unmet: 1 need of atlas (batch): PRIORITY_STARVED"


async def test_a_dashboard_that_does_not_answer_is_told_and_no_failure() -> None:
    with dashboard({}) as address:
        pass
    (said,) = await what_was_done(at_dashboard(address), 1.0)
    assert said.startswith("The dashboard cannot be asked what was decided: ")


@pytest.mark.parametrize("seconds", ["0.01", "0"])
async def test_a_terminal_that_plays_a_scenario_is_told_what_came_of_it(seconds: str) -> None:
    decided_then = [decision("Preempt", "atlas", "priority 1000 takes it")]
    with (
        tempfile.TemporaryDirectory(prefix="bf-") as folder,
        dashboard(pages(decided_then, [])) as address,
    ):
        unknown = Supervisor((), lambda name: Path(folder) / name, lambda _: None)
        control = Control(unknown, address)
        server = await listen(control, Path(folder) / "demo.sock")
        words = ("demo", "play", "spot", "--data-dir", folder, "--seconds", seconds)
        result = await asyncio.to_thread(run, *words)
        control.close()
        server.close()
    assert result.exit_code == 0
    told = "  Preempt 1 machine of atlas: priority 1000 takes it\n"
    assert result.stdout.endswith(told) is (seconds != "0")
