"""A start that hangs, is called off, or cannot reach its cloud."""

import asyncio
import dataclasses
import os
import signal
from pathlib import Path

import pytest

from bigfleet_providerkit import KitOptions, MemorySubstrate, StartError, Unauthorized, start
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.logs.setup import silent_logger
from bigfleet_providerkit.main import serve
from kitworld import SPEC


async def test_a_signal_ends_a_start_that_waits_for_its_cloud(tmp_path: Path) -> None:
    async def told_to_stop_meanwhile(options: KitOptions, kit: Kit) -> MemorySubstrate:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()
        raise AssertionError("it is never set")

    spec = dataclasses.replace(SPEC, open=told_to_stop_meanwhile)
    state = str(tmp_path / "state.db")
    async with asyncio.timeout(10):
        assert await serve(spec, KitOptions(state=state), silent_logger()) == 0
    # The store was let go, and the next start finds it free.
    options = KitOptions(state=state, use_fake_backend=True)
    await (await start(SPEC, options, listen=False)).stop()


async def test_a_cloud_that_refuses_at_start_is_one_sentence() -> None:
    async def refused(options: KitOptions, kit: Kit) -> MemorySubstrate:
        raise Unauthorized("ListAvailabilityDomains: the policy lacks inspect compartments")

    spec = dataclasses.replace(SPEC, open=refused)
    with pytest.raises(StartError, match="Unauthorized: ListAvailabilityDomains: the policy"):
        await start(spec, KitOptions(state="memory"), listen=False)
