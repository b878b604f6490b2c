"""A cloud of hosts with guests, for the engine's own tests: one kind of host, no API of its own."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from bigfleet_fakecloud import Cloud, Guests, Life, Then, Verb
from bigfleet_providerkit.hostexec.contract import HookCall, command_for
from bigfleet_providerkit.hostexec.hostkey import HostKey
from bigfleet_providerkit.hostexec.userdata import first_boot
from bigfleet_providerkit.substrate import CommandKind, HostCommand

HOST = Life(
    first="running",
    steps={"ending": Then("ended")},
    verbs={"delete": Verb.move("running", "stopped", to="ending")},
    events={"stop": "stopped", "start": "running"},
    released=frozenset({"ended"}),
)
BLOB = b"join me\0\xff" * 900
USER_DATA = first_boot("", "/opt/bigfleet/bootstrap", HostKey())


class HostPage:
    """The collection of hosts, and their guests."""

    def __init__(self) -> None:
        self.cloud = Cloud("guests")
        self.hosts = self.cloud.collection("hosts", HOST)
        self.guests = Guests(self.cloud)
        self.guests.follow(self.hosts, ("running",), lambda host: str(host.fields["user_data"]))

    def host(self, ref: str = "h-1", user_data: str = USER_DATA) -> str:
        """A host that runs."""
        return self.hosts.create(ref, {"user_data": user_data}).ref


def a_command(
    kind: CommandKind = CommandKind.CONFIGURE, cluster: str = "cluster-a", operation: str = "op-1"
) -> HostCommand:
    """The kit's wrapper for one step on a host."""
    call = HookCall(
        kind, "/opt/bigfleet/bootstrap", "label", "machine", operation, 20.0,
        cluster=cluster, secret=BLOB if kind is CommandKind.CONFIGURE else b"",
        taints=("a=b:NoSchedule",), provider_id="cloud:///h-1",
    )  # fmt: skip
    return command_for(call)


async def until(condition: Callable[[], Awaitable[bool]], what: str, seconds: float = 20.0) -> None:
    """Wait for a condition in real time."""
    ends = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < ends, f"{what} did not come true"
        await asyncio.sleep(0.01)


def until_now(condition: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """The same for a test without a loop."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"{what} did not come true"
        time.sleep(0.01)
