"""What-if for the web: the shard's state is asked for, the engine works in a process of its own.

One question is worked on at a time, and few may wait; the process starts with the first question
and loads the engine's compiled code then. A state is asked for again after a few seconds only, so
that trying several changes compares them with the same thing.
"""

from __future__ import annotations

import asyncio
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Final

import grpc
import grpc.aio

from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as rpc
from bigfleet_dashboard.errors import BadRequestError, NotFoundError, SourceError, UnavailableError
from bigfleet_dashboard.sources.channels import Channels
from bigfleet_dashboard.sources.coordinator import error_text
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.whatif.changes import read_changes
from bigfleet_dashboard.whatif.choices import Choices
from bigfleet_dashboard.whatif.planning import compare

_EXPORT_SECONDS: Final = 60.0
_ANSWER_SECONDS: Final = 120.0
_FRESH_SECONDS: Final = 10.0
_MOST_WAITING: Final = 4


class WhatIf:
    """Questions about one fleet."""

    def __init__(self, fleet: Fleet, channels: Channels) -> None:
        self._fleet, self._channels = fleet, channels
        self._pool: ProcessPoolExecutor | None = None
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._copies: dict[str, tuple[float, bytes]] = {}

    async def ask(self, shard_id: str, changes: list[object]) -> dict[str, object]:
        """What would be different."""
        read = read_changes(changes)
        if shard_id not in self._fleet.shards:
            known = ", ".join(sorted(self._fleet.shards)) or "none"
            raise NotFoundError(f"there is no shard {shard_id!r}: there are {known}")
        Choices.of(self._fleet).check(read)
        if self._waiting >= _MOST_WAITING:
            raise UnavailableError(
                "others are waiting for an answer already: try again in a moment"
            )
        self._waiting += 1
        try:
            async with self._lock:
                data = await self._copy(shard_id)
                began = time.monotonic()
                answer = await self._compute(data, changes)
        finally:
            self._waiting -= 1
        return {"shard": shard_id, **answer, "seconds": round(time.monotonic() - began, 3)}

    async def close(self) -> None:
        """No more questions."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in list((self._pool._processes or {}).values()):
                process.kill()

    async def _copy(self, shard_id: str) -> bytes:
        kept = self._copies.get(shard_id)
        if kept is not None and time.monotonic() - kept[0] < _FRESH_SECONDS:
            return kept[1]
        stub = rpc.ShardReadStub(self._channels.to(self._fleet.shards[shard_id].address))
        pieces = []
        try:
            request = pb.ExportScenarioRequest()
            async for chunk in stub.ExportScenario(request, timeout=_EXPORT_SECONDS):
                pieces.append(chunk.data)
        except grpc.aio.AioRpcError as error:
            raise UnavailableError(
                f"shard {shard_id} gave no copy of its state: {error_text(error)}"
            ) from error
        self._copies[shard_id] = (time.monotonic(), b"".join(pieces))
        return self._copies[shard_id][1]

    async def _compute(self, data: bytes, changes: list[object]) -> dict[str, object]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1, mp_context=get_context("spawn"), initializer=_ignore_interrupts
            )
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await loop.run_in_executor(self._pool, compare, data, changes)
        except (BrokenProcessPool, TimeoutError) as error:
            await self.close()
            self._pool = None
            raise UnavailableError(f"the engine did not answer: {error!r}") from error
        except SourceError as error:
            raise UnavailableError(str(error)) from error
        except ValueError as error:
            raise BadRequestError(str(error)) from error


def _ignore_interrupts() -> None:
    # Ctrl-C in a terminal reaches the whole process group; the parent ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
