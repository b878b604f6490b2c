"""What tests of a provider need: a shard to call it, and its executable as a process.

`Shard` speaks to a provider inside the process or over gRPC and stamps every attempt with a new
token, like the real one. `ProviderProcess` boots an executable on a free port and ends it.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import grpc
import grpc.aio

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2_grpc as rpc
from bigfleet_providerkit.machines.state import State
from bigfleet_providerkit.service.server import LARGEST_MESSAGE
from bigfleet_providerkit.service.service import ProviderService

POLL = 0.01
CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    # What is tested is on this machine, whatever proxies there are.
    ("grpc.enable_http_proxy", 0),
)


class Remote:
    """The six calls over a channel, with the same names as in process."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub: rpc.CapacityProviderAsyncStub = rpc.CapacityProviderStub(channel)

    async def create(self, request: pb.CreateRequest) -> pb.TransitionAck:
        """Create."""
        return await self._stub.Create(request, timeout=30)

    async def configure(self, request: pb.ConfigureRequest) -> pb.TransitionAck:
        """Configure."""
        return await self._stub.Configure(request, timeout=30)

    async def drain(self, request: pb.DrainRequest) -> pb.TransitionAck:
        """Drain."""
        return await self._stub.Drain(request, timeout=30)

    async def delete(self, request: pb.DeleteRequest) -> pb.TransitionAck:
        """Delete."""
        return await self._stub.Delete(request, timeout=30)

    async def get(self, request: pb.MachineRef) -> pb.Machine:
        """Get."""
        return await self._stub.Get(request, timeout=30)

    async def list(self, request: pb.ListFilter) -> pb.MachineList:
        """List."""
        return await self._stub.List(request, timeout=120)


class Shard:
    """A shard of a test: one identity, one epoch, a new sequence number for every attempt."""

    def __init__(
        self, provider: ProviderService | Remote, shard: str = "shard-a", epoch: int = 1
    ) -> None:
        self.provider = provider
        self.shard = shard
        self.epoch = epoch
        self.sequence = 0

    def stamp(self) -> dict[str, int | str]:
        """A token that was never used before."""
        self.sequence += 1
        return {
            "shard_id": self.shard, "shard_epoch": self.epoch, "sequence_number": self.sequence,
        }  # fmt: skip

    async def create(self, machine: str) -> pb.TransitionAck:
        """Ask for a host."""
        return await self.provider.create(pb.CreateRequest(machine_id=machine, **self.stamp()))  # type: ignore[arg-type]

    async def configure(
        self,
        machine: str,
        cluster: str = "cluster-a",
        metadata: Mapping[str, str] | None = None,
        blob: bytes = b"join",
    ) -> pb.TransitionAck:
        """Bind a machine to a cluster."""
        request = pb.ConfigureRequest(
            machine_id=machine, cluster_id=cluster, bootstrap_blob=blob,
            shard_metadata=metadata or {}, **self.stamp(),  # type: ignore[arg-type]
        )  # fmt: skip
        return await self.provider.configure(request)

    async def drain(self, machine: str, grace: int = 0) -> pb.TransitionAck:
        """Take a machine out of its cluster."""
        request = pb.DrainRequest(
            machine_id=machine, grace_period_seconds=grace, **self.stamp()  # type: ignore[arg-type]
        )  # fmt: skip
        return await self.provider.drain(request)

    async def delete(self, machine: str) -> pb.TransitionAck:
        """Give the host back."""
        return await self.provider.delete(pb.DeleteRequest(machine_id=machine, **self.stamp()))  # type: ignore[arg-type]

    async def get(self, machine: str) -> pb.Machine:
        """One machine as it is now."""
        return await self.provider.get(pb.MachineRef(id=machine))

    async def state(self, machine: str) -> State:
        """The state of one machine."""
        return State((await self.get(machine)).state)

    async def machines(self, *states: State) -> list[pb.Machine]:
        """All machines, or those in some states."""
        wanted = [pb.MachineState.ValueType(int(state)) for state in states]
        return list((await self.provider.list(pb.ListFilter(states=wanted))).machines)

    async def until(self, machine: str, state: State, seconds: float = 20.0) -> pb.Machine:
        """Wait for a state in real time; fails with what was seen instead."""
        ends = time.monotonic() + seconds
        while True:
            seen = await self.get(machine)
            if seen.state == int(state):
                return seen
            if time.monotonic() > ends:
                raise AssertionError(
                    f"{machine} is {State(seen.state).word}, not {state.word}, after {seconds} s: "
                    f"{seen.last_error}"
                )
            await asyncio.sleep(POLL)


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    """A port of the loopback interface that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    yield port


async def eventually(
    condition: Callable[[], Awaitable[bool]], seconds: float = 20.0, what: str = "the condition"
) -> None:
    """Wait for a condition in real time."""
    ends = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > ends:
            raise AssertionError(f"{what} did not come true within {seconds} s")
        await asyncio.sleep(POLL)


class ProviderProcess:
    """A provider's executable, booted on a free port."""

    def __init__(
        self,
        command: Sequence[str],
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        with free_port() as port:
            self.port = port
        self.address = f"127.0.0.1:{port}"
        self._log = log
        env = {**os.environ, "BIGFLEET_PROVIDER_METRICS_ADDR": "0", **(environment or {})}
        errors = log.open("ab") if log else subprocess.DEVNULL
        self.process = subprocess.Popen(
            [*command, f"--addr={self.address}", *arguments],
            stdout=subprocess.DEVNULL, stderr=errors, env=env,
        )  # fmt: skip
        if log and not isinstance(errors, int):
            errors.close()

    @staticmethod
    def module(name: str) -> list[str]:
        """The command that runs a module with this Python."""
        return [sys.executable, "-m", name]

    def wait_open(self, seconds: float = 20.0) -> "ProviderProcess":
        """Wait until the port answers."""
        ends = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            code = self.process.poll()
            if code is not None or time.monotonic() > ends:
                raise AssertionError(f"the provider did not open its port (exit {code})")
            time.sleep(POLL)

    def channel(self) -> grpc.aio.Channel:
        """A plaintext channel to it."""
        return grpc.aio.insecure_channel(self.address, options=CHANNEL_OPTIONS)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 15.0) -> int:
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)

    def __enter__(self) -> "ProviderProcess":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.kill()
