"""Reference providers for the integration tests: in this process, or as a command."""

import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reference.config import Config
from reference.provider import Provider
from reference.server import Server

SUPPORT = Path(__file__).parent.parent / "support"


@pytest.fixture
def reference_command(monkeypatch: pytest.MonkeyPatch) -> str:
    """A command line that starts the reference provider."""
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    return f"{shlex.quote(sys.executable)} -m reference"


@pytest.fixture
def foreign_command(reference_command: str) -> str:
    """A command that starts a provider on another kit, with `fault` its fault subject."""
    return f"{reference_command}.foreign"


@pytest.fixture
async def reference_address() -> AsyncIterator[str]:
    """A running reference provider with room for the core lane."""
    server = Server(Provider(Config(seed_count=256)))
    await server.start()
    yield server.address
    await server.stop()
