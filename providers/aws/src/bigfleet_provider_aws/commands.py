"""The way into a host: Systems Manager runs a script there.

Systems Manager keeps the text of every command, so the bootstrap data goes sealed (the kit's
command channel): only ciphertext is in the history. While the agent on a new host registers, AWS
says InvalidInstanceId, which is tried again inside the transition's time.
"""

from functools import partial
from typing import Any

from bigfleet_provider_aws.api import Api
from bigfleet_providerkit import Host, HostResult, Retryable
from bigfleet_providerkit.hostexec.channels.command import CommandChannel

CHUNK = 32 * 1024
MOST_CHUNKS = 24
SHORTEST_S, LONGEST_S = 30, 600
UNDER_WAY = frozenset({"Pending", "InProgress", "Delayed", "Cancelling"})
TIMED_OUT = 124
NEVER_RAN = frozenset({"Delivery Timed Out", "Undeliverable", "Terminated"})


def command_channel(api: Api) -> CommandChannel:
    """The kit's channel over Run Command."""

    async def run(host: Host, script: str, limit: float) -> HostResult:
        seconds = int(min(max(limit, SHORTEST_S), LONGEST_S))
        parameters = {"commands": [script], "executionTimeout": [str(seconds)]}
        sent = await api.call(
            "SendCommand", InstanceIds=[host.ref], DocumentName="AWS-RunShellScript",
            Parameters=parameters, TimeoutSeconds=seconds,
        )  # fmt: skip
        command = str(sent["Command"]["CommandId"])

        look = partial(api.call, "GetCommandInvocation", CommandId=command, InstanceId=host.ref)
        return _result(await api.kit.wait_for(look, lambda seen: seen["Status"] not in UNDER_WAY))

    return CommandChannel(run, most_chunks=MOST_CHUNKS, chunk=CHUNK)


def _result(seen: dict[str, Any]) -> HostResult:
    code = int(seen.get("ResponseCode", -1))
    stdout = str(seen.get("StandardOutputContent", ""))
    stderr = str(seen.get("StandardErrorContent", ""))
    if seen["Status"] == "Success":
        return HostResult(0, stdout, stderr)
    details = str(seen.get("StatusDetails") or seen["Status"])
    if details in NEVER_RAN:
        raise Retryable(f"the command did not reach the host: {details}")
    if code < 0:
        return HostResult(TIMED_OUT, "", f"{stderr} {details}".strip())
    return HostResult(code, stdout, stderr)
