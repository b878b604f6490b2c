"""How a command runs a component (ADR 0050)."""

import asyncio

import pytest

from bigfleet.cli.processes import process
from bigfleet.observe.settings import ProcessSettings


def test_a_component_is_served_on_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    async def serve(_settings: ProcessSettings, _stop: asyncio.Event) -> None:
        seen.append(type(asyncio.get_running_loop()).__module__)

    monkeypatch.setattr(process, "configure_logs", lambda *_: None)
    process.process_command(ProcessSettings, serve, ())()

    assert seen == ["uvloop"]
