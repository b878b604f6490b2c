"""The hook contract: what is run on a host, and how its end is read.

Every channel gets the same script: the wrapper with its variables in front. A channel only has to
bring the script and the secret to the host and the exit code back. Exit 0 of `configure` is the
promise that the node is Ready; 75 means "try again"; everything else is a failure.
"""

import shlex
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bigfleet_providerkit.errors import HookFailed, Retryable
from bigfleet_providerkit.substrate import CommandKind, HostCommand, HostResult

TRY_AGAIN = 75
LONGEST_OUTPUT = 4096
RUN_FOLDER = "/run/bigfleet"
DEFAULT_HOOK = "/opt/bigfleet/bootstrap"
FROM_STDIN = "stdin"


@cache
def script_text(name: str) -> str:
    """One of the scripts that ship with the kit."""
    return files("bigfleet_providerkit.hostexec.scripts").joinpath(name).read_text("utf-8")


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of the hook, before it is made into a script."""

    kind: CommandKind
    hook: str
    label: str
    machine_id: str
    operation_id: str
    limit: float
    cluster: str = ""
    grace: int = 0
    taints: tuple[str, ...] = ()
    secret: bytes = b""
    provider_id: str = ""


def command_for(call: HookCall, *, blob_from: str = FROM_STDIN) -> HostCommand:
    """The command a channel carries. `blob_from` is where it puts the secret on the host."""
    variables = {
        "BIGFLEET_KIND": str(call.kind),
        "BIGFLEET_HOOK": call.hook,
        "BIGFLEET_RUN": RUN_FOLDER,
        "BIGFLEET_BLOB_FROM": blob_from,
        "BIGFLEET_CLUSTER": call.cluster,
        "BIGFLEET_GRACE": str(call.grace),
        "BIGFLEET_OPERATION": call.operation_id,
        "BIGFLEET_TIMEOUT": str(max(1, int(call.limit))),
        "BIGFLEET_MACHINE_ID": call.machine_id,
        "BIGFLEET_PROVIDER": call.label,
        "BIGFLEET_PROVIDER_ID": call.provider_id,
        "BIGFLEET_TAINTS": " ".join(call.taints),
    }
    lines = [f"{name}={shlex.quote(value)}; export {name}" for name, value in variables.items()]
    body = script_text("wrapper.sh").partition("\n")[2]
    script = "#!/bin/sh\n" + "\n".join(lines) + "\n" + body
    return HostCommand(
        call.kind, script, call.limit, call.operation_id, call.secret,
        call.cluster, call.grace, call.label, call.taints, call.provider_id,
    )  # fmt: skip


def tail(text: str, most: int = LONGEST_OUTPUT) -> str:
    """The last part of an output, which is where the reason stands."""
    return text[-most:]


def check_result(kind: CommandKind, result: HostResult) -> None:
    """Turn an exit code into an error, or into nothing."""
    if result.exit_code == 0:
        return
    output = " ".join(tail(result.stderr or result.stdout, 600).split()) or "no output"
    text = f"{kind} ended with exit code {result.exit_code}: {output}"
    if result.exit_code == TRY_AGAIN:
        raise Retryable(text)
    raise HookFailed(text)
