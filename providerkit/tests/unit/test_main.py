"""How the executable of a provider runs it (ADR 0050)."""

import asyncio
import importlib
from importlib.metadata import entry_points

import pytest

from bigfleet_providerkit.memory.fault import SPEC


def test_a_provider_is_served_on_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    # The package's `main` is the function; the module of that name is what is patched.
    module = importlib.import_module("bigfleet_providerkit.main")
    seen = []

    async def live(*_: object) -> int:
        seen.append(type(asyncio.get_running_loop()).__module__)
        return 0

    monkeypatch.setattr(module, "live", live)

    assert module.run(SPEC, [], {}) == 0
    assert seen == ["uvloop"]


def test_a_provider_calls_itself_what_its_executable_is_called(
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = importlib.import_module("bigfleet_providerkit.main")
    assert module.run(SPEC, ["--help"], {}) == 0
    scripts = {script.name for script in entry_points(group="console_scripts")}
    usage, program, *_ = capsys.readouterr().out.split()
    assert (usage, program) == ("usage:", "bigfleet-fault-provider")
    assert program in scripts
