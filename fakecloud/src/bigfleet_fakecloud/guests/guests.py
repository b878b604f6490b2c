"""All guests of a cloud: which hosts are up, what runs in them, and what a test changes there.

A page makes `Guests(cloud)` and lets it `follow` the collection of its hosts; from then on guests
boot, halt and go with them. What the cloud's API does inside a host is `begin` (a script, as an
operation) and `write`; SSH and agents reach guests by themselves once `serve_ssh` or `poll_agents`
was called. The folder of a guest is made with its first use, so hosts that are never used cost
nothing.
"""

import asyncio
import atexit
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bigfleet_fakecloud.cloud import Cloud
from bigfleet_fakecloud.errors import Conflict, NotFound
from bigfleet_fakecloud.guests.agent import AgentLoop
from bigfleet_fakecloud.guests.folder import GuestFolder, HookRun, Outcome
from bigfleet_fakecloud.guests.levers import KINDS, Lever, Levers
from bigfleet_fakecloud.guests.ssh import SshServer
from bigfleet_fakecloud.http.call import Call, Reply
from bigfleet_fakecloud.state import collection as objects
from bigfleet_fakecloud.state.operations import Operation

AT_ONCE = 256
UserDataOf = Callable[[objects.Resource], bytes | str]


@dataclass(slots=True)
class _Guest:
    number: int
    user_data: bytes | str
    up: bool = False
    folder: GuestFolder | None = None
    agent: AgentLoop | None = None


class Guests:
    """The insides of all hosts of a cloud. `stub_hook` False keeps the hook of the user data."""

    def __init__(self, cloud: Cloud, *, stub_hook: bool = True) -> None:
        self.levers = Levers()
        self._cloud = cloud
        self._stub_hook = stub_hook
        self._guests: dict[str, _Guest] = {}
        self._by_address: dict[str, str] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._numbers = 0
        self._lock = threading.RLock()
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="guest")
        self._base = Path(tempfile.mkdtemp(prefix="bigfleet-guests-"))
        # A cloud that is never served is never stopped.
        atexit.register(shutil.rmtree, self._base, ignore_errors=True)
        self._agents = False
        self.ssh: SshServer | None = None
        cloud.background.serve(self)
        cloud.levers["GET", "guests"] = self._show
        cloud.levers["PATCH", "guests"] = self._pull
        cloud.levers["DELETE", "guests"] = self._release

    def serve_ssh(self) -> None:
        """Answer SSH on the address of every guest; the port and the key are facts of the cloud."""
        self.ssh = SshServer(self, self._base / "client_key")
        self._cloud.facts["ssh_port"] = str(self.ssh.port)
        self._cloud.facts["ssh_key"] = str(self.ssh.client_key)
        self._cloud.background.serve(self.ssh)

    def poll_agents(self) -> None:
        """Let the agents that user data installs poll their provider."""
        self._agents = True

    def follow(self, hosts: objects.Collection, up: Collection[str], user_data: UserDataOf) -> None:
        """Boot, halt and forget guests as the states of their hosts say; `up` are those with power.

        A host that leaves these states and comes back has rebooted: its disk stays, /run is empty.
        """

        def changed(before: objects.Resource | None, after: objects.Resource | None) -> None:
            if after is None:
                if before is not None:
                    self.forget(before.ref)
            elif after.state in hosts.life.released:
                self.forget(after.ref)
            elif after.state in up:
                self.boot(after.ref, user_data(after))
            elif before is not None and before.state in up:
                self.halt(after.ref)

        hosts.listen(changed)

    def boot(self, ref: str, user_data: bytes | str = "") -> None:
        """A host has power. Its user data works at the first boot only."""
        with self._lock:
            guest = self._guests.get(ref)
            if guest is None:
                guest = self._add(ref, user_data)
            elif guest.folder is None and not guest.user_data:
                # Its address was shown before it booted.
                guest.user_data = user_data
            if guest.up:
                return
            if guest.folder is None:
                # It may have got its address before its power.
                guest.user_data = user_data
            guest.up = True
            if guest.folder is not None:
                guest.folder.restart()
            if self._agents:
                guest.agent = AgentLoop(partial(self.folder, ref), partial(self._run_raw, ref))
                self._cloud.background.begin(guest.agent.run)

    def halt(self, ref: str) -> None:
        """A host lost its power: what runs in it ends, and it answers no longer."""
        with self._lock:
            guest = self._guests.get(ref)
            if guest is None or not guest.up:
                return
            guest.up = False
            if guest.agent is not None:
                guest.agent.stop()
            if guest.folder is not None:
                guest.folder.close()

    def forget(self, ref: str) -> None:
        """The host is gone, and its disk."""
        self.halt(ref)
        with self._lock:
            guest = self._guests.pop(ref, None)
            if guest is not None:
                self._by_address.pop(_address(guest.number), None)
            if guest is not None and guest.folder is not None:
                shutil.rmtree(guest.folder.root, ignore_errors=True)

    def address(self, ref: str) -> str:
        """The address of a guest in 127.0.0.0/8; it has one before it boots."""
        with self._lock:
            return _address((self._guests.get(ref) or self._add(ref, "")).number)

    def at(self, address: str) -> str | None:
        """The running guest with this address."""
        with self._lock:
            ref = self._by_address.get(address)
            return ref if ref is not None and self._guests[ref].up else None

    def folder(self, ref: str) -> GuestFolder:
        """The inside of a running guest; the first use makes it."""
        with self._lock:
            guest = self._running(ref)
            if guest.folder is None:
                guest.folder = GuestFolder(
                    self._base / str(guest.number), stub_hook=self._stub_hook
                )
                guest.folder.boot(guest.user_data)
            return guest.folder

    def _running(self, ref: str) -> _Guest:
        guest = self._guests.get(ref)
        if guest is None or not guest.up:
            raise Conflict(f"host {ref} is not running; nothing in it answers")
        return guest

    @property
    def used(self) -> int:
        """How many guests have a folder."""
        return sum(guest.folder is not None for guest in self._guests.values())

    def cluster(self, ref: str) -> str:
        """The cluster that a host joined, or an empty text."""
        guest = self._guests.get(ref)
        return guest.folder.cluster if guest and guest.folder else ""

    def history(self, ref: str) -> list[HookRun]:
        """What the hook of a host did."""
        guest = self._guests.get(ref)
        return guest.folder.history if guest and guest.folder else []

    def write(self, ref: str, path: str, data: bytes, *, append: bool) -> None:
        """Write or extend a file, as a guest agent does."""
        self.folder(ref).put(path, data, append=append)

    def begin(
        self, ref: str, script: str, *, action: str, seconds: float = 0.0, stdin: bytes = b""
    ) -> Operation:
        """Run a script in a host as an operation that ends with it."""
        self._running(ref)
        operation = self._cloud.operations.open(action, ref)
        # The length that a test sets for every transition is that of the hook, not of each script.
        delay = seconds * self._cloud.delays.pace

        async def work() -> None:
            await self._cloud.timeline.clock.sleep(delay)
            self._outcomes[operation.ref] = await self.run(ref, script, stdin)
            self._cloud.operations.finish(operation.ref)

        self._cloud.background.begin(work)
        return operation

    def outcome(self, operation: str) -> Outcome | None:
        """How the script of an operation ended; None while it runs."""
        return self._outcomes.get(operation)

    async def run(self, ref: str, script: str, stdin: bytes = b"") -> Outcome:
        """Run a script in a host. A host that went away meanwhile ends it like a signal."""
        try:
            return await self._run_raw(ref, script, stdin)
        except Conflict as problem:
            return Outcome(255, problem.text)

    async def _run_raw(self, ref: str, script: str, stdin: bytes = b"") -> Outcome:
        loop = asyncio.get_running_loop()
        folder = await loop.run_in_executor(self._pool, self.folder, ref)
        pulled = {kind: self.levers.find(ref, kind) for kind in KINDS}
        before = len(folder.history)
        run = partial(folder.run, script, stdin, self._variables(pulled))
        outcome = await loop.run_in_executor(self._pool, run)
        for entry in folder.history[before:]:
            lever = pulled.get(entry.kind)
            if lever is not None:
                self.levers.count(lever)
        return outcome

    def _variables(self, pulled: dict[str, Lever | None]) -> dict[str, str]:
        usual = Lever(ready_after=self._cloud.delays.transition or 0.0)
        variables = {}
        for kind, lever in pulled.items():
            head, acts = f"GUEST_{kind.upper()}", lever or usual
            variables[f"{head}_READY_AFTER"] = f"{acts.ready_after:g}"
            variables[f"{head}_EXIT_CODE"] = str(acts.exit_code)
            variables[f"{head}_HANG"] = str(int(acts.hang))
            variables[f"{head}_STDERR"] = acts.stderr
        return variables

    async def start(self) -> None:
        """Guests need nothing before the first of them boots."""

    async def stop(self) -> None:
        """End every guest and remove the folders."""
        with self._lock:
            for guest in self._guests.values():
                if guest.folder is not None:
                    guest.folder.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        shutil.rmtree(self._base, ignore_errors=True)

    def _add(self, ref: str, user_data: bytes | str) -> _Guest:
        self._numbers += 1
        guest = self._guests[ref] = _Guest(self._numbers, user_data)
        self._by_address[_address(guest.number)] = ref
        return guest

    def _show(self, call: Call, rest: list[str]) -> Reply:
        if len(rest) != 1 or rest[0] not in self._guests:
            raise NotFound(f"no guest {'/'.join(rest)}; name it as guests/<ref of its host>")
        ref = rest[0]
        return Reply(
            body={
                "ref": ref,
                "up": self._guests[ref].up,
                "address": self.address(ref),
                "cluster": self.cluster(ref),
                "history": [asdict(run) for run in self.history(ref)],
            }
        )

    def _pull(self, call: Call, rest: list[str]) -> Reply:
        self.levers.set(Lever.parse(call.json()))
        return Reply(204)

    def _release(self, call: Call, rest: list[str]) -> Reply:
        self.levers.clear()
        return Reply(204)


def _address(number: int) -> str:
    """127.1.0.1 and up; neither the first nor the last address of a block of 256."""
    block, last = divmod(number, 250)
    return f"127.{1 + block // 256}.{block % 256}.{1 + last}"
