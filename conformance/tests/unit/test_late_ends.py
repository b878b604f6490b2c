"""A provider that refuses to start and is slow to end was refused, however busy the machine is."""

import asyncio
import sys
from pathlib import Path

import pytest

from bigfleet_conformance.errors import BootError
from bigfleet_conformance.registry import LaneName
from bigfleet_conformance.runner import process
from bigfleet_conformance.runner.process import Executable
from bigfleet_conformance.runner.source import BootPlan

REFUSES = """
import os, sys, time
print("the state cannot be used", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
sys.exit(3)
"""
HANGS = "import time; time.sleep(60)"
PLAN = BootPlan(LaneName.CORE, 0, 4)


async def boot(script: str, tmp_path: Path, may_end: Path) -> BootError:
    command = (sys.executable, "-c", script, str(may_end))
    with pytest.raises(BootError) as found:
        await Executable(command, tmp_path / "logs").boot(PLAN)
    return found.value


async def test_a_refusal_that_comes_late_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = tmp_path / "may-end"

    async def let_it_end(child: asyncio.subprocess.Process) -> bool:
        may_end.touch()
        return await ends_soon(child)

    ends_soon = process._ends_soon
    monkeypatch.setattr(process, "_ends_soon", let_it_end)
    monkeypatch.setattr(process, "BOOT_LIMIT_S", 0.3)
    error = await boot(REFUSES, tmp_path, may_end)
    assert error.exit_code == 3
    assert "ended with exit code 3" in str(error)


async def test_a_provider_that_neither_serves_nor_ends_has_no_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "BOOT_LIMIT_S", 0.1)
    monkeypatch.setattr(process, "LATE_END_S", 0.1)
    error = await boot(HANGS, tmp_path, tmp_path)
    assert error.exit_code is None
    assert "did not open port" in str(error)
