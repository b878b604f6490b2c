"""EC2 as the kit sees it: launch, list, start, tag, terminate, and the way into a host.

A host that has ended is listed by EC2 for about an hour, a new one not at once; the kit's
consistency window of 30 s covers the second. RunInstances carries the operation id as its token, so
it may be repeated; where an upgrade changed what an order says, EC2 refuses the token
(IdempotentParameterMismatch), and the host that it made is found by its operation tag.
"""

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bigfleet_provider_aws import seed
from bigfleet_provider_aws.catalogue import Catalogue
from bigfleet_provider_aws.commands import command_channel
from bigfleet_provider_aws.images import Images
from bigfleet_provider_aws.notices import Notices
from bigfleet_provider_aws.options import AwsOptions
from bigfleet_provider_aws.orders import example_order, run_parameters, wants_disk
from bigfleet_provider_aws.permissions import Permissions
from bigfleet_providerkit import (
    Binding,
    Gone,
    Host,
    HostCommand,
    HostResult,
    InvalidRequest,
    Launch,
    Notice,
    OutOfCapacity,
    Power,
    QuotaExceeded,
    SubstrateError,
)
from bigfleet_providerkit.codec.tags import CLUSTER, MACHINE, MANAGED, OPERATION, PROVIDER
from bigfleet_providerkit.kit import Kit

if TYPE_CHECKING:
    from bigfleet_provider_aws.sessions import Clients

PAGE = 1000
REFS_A_CALL = 200
"""The most values a filter takes. Ids as a parameter would fail the call when one is unknown."""
ENDED_REMEMBERED = 8192
OFFERINGS_TRIED = 50
PRESENT = ["pending", "running", "stopping", "stopped"]
POWER = {
    "pending": Power.STARTING,
    "running": Power.RUNNING,
    "shutting-down": Power.ENDING,
    "terminated": Power.GONE,
    "stopping": Power.STOPPED,
    "stopped": Power.STOPPED,
}
TAKEN_BACK = "Server.SpotInstanceTermination"


class AwsSubstrate:
    """The EC2 instances of one region that carry our label."""

    def __init__(self, kit: Kit, clients: "Clients", options: AwsOptions) -> None:
        self._kit = kit
        self._clients = clients
        self._options = options
        self._images = Images(kit, clients)
        self._channel = command_channel(kit, clients)
        self._ended: deque[str] = deque(maxlen=ENDED_REMEMBERED)
        self.catalogue = Catalogue(kit, clients, options)

    async def launch(self, order: Launch) -> Host:
        """Run one instance and return when it runs."""
        parameters = await self._parameters(order)
        try:
            made = await self._kit.call(
                "RunInstances", self._clients.ec2.run_instances, **parameters
            )
            ref = str(made["Instances"][0]["InstanceId"])
        except InvalidRequest as error:
            if "IdempotentParameterMismatch" not in str(error):
                raise
            ref = await self._made_before(order, error)
        try:
            host = await self._kit.until_running(Host(ref))
        except Gone as error:
            await self._explain_end(ref)
            raise error from None
        return host.with_notes(image=str(parameters["ImageId"]))

    async def terminate(self, host: Host) -> None:
        """Return when the instance is gone; its disk and interface go with it."""
        self._ended.append(host.ref)
        await self._kit.batched("TerminateInstances", host.ref, self._terminate)
        await self._kit.until_gone(host)

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        """All instances with our label, or exactly these."""
        if refs is None:
            return await self._describe({**self._label(), "instance-state-name": PRESENT})
        parts = [refs[at : at + REFS_A_CALL] for at in range(0, len(refs), REFS_A_CALL)]
        return [host for part in parts for host in await self._describe({"instance-id": part})]

    async def ensure_running(self, host: Host) -> None:
        """Start a stopped instance. One that is still stopping is refused, and tried again."""
        await self._kit.call(
            "StartInstances", self._clients.ec2.start_instances, InstanceIds=[host.ref]
        )
        await self._kit.until_running(host)

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """Run the kit's script by Systems Manager."""
        return await self._channel.run(host, command)

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """Write our tags; tags of others stay."""
        tags = self._kit.codec.tags(binding)
        if binding.cluster is None:
            await self._kit.call(
                "DeleteTags", self._clients.ec2.delete_tags,
                Resources=[host.ref], Tags=[{"Key": self._kit.codec.key(CLUSTER)}],
            )  # fmt: skip
        await self._kit.call(
            "CreateTags", self._clients.ec2.create_tags,
            Resources=[host.ref], Tags=[{"Key": k, "Value": v} for k, v in sorted(tags.items())],
        )  # fmt: skip

    async def missing_permissions(self) -> Sequence[str]:
        """What is not granted, by dry runs that change nothing: one order of each kind offered."""
        hosts, live = await self.list_managed(), await self.catalogue.shapes()
        shapes = {**seed.shapes(), **live.capacities}
        orders, problems = list[dict[str, Any]](), list[str]()
        for offering in self._kit.offerings[:OFFERINGS_TRIED]:
            shape = shapes.get(offering.instance_type)
            order = example_order(self._kit, offering, self._options, shape.arch if shape else "")
            try:
                orders.append(await self._parameters(order))
            except SubstrateError as error:
                problems.append(f"{order.machine_id}: {error}")
        permissions = Permissions(self._kit, self._clients, self._options, self.catalogue)
        return problems + await permissions.missing(orders, hosts[0].ref if hosts else "")

    async def renew_credentials(self) -> None:
        """Find credentials again: a file or a role may have new ones."""
        self._clients.renew()

    async def aclose(self) -> None:
        """Let go of the connections."""
        self._clients.close()

    def _label(self) -> dict[str, Sequence[str]]:
        codec = self._kit.codec
        return {
            f"tag:{codec.key(MANAGED)}": ["true"],
            f"tag:{codec.key(PROVIDER)}": [codec.encode(self._kit.label)],
        }

    async def _parameters(self, order: Launch) -> dict[str, Any]:
        image = await self._images.resolve(order.image, order.arch)
        device = await self._images.root_device(image) if wants_disk(order) else ""
        return run_parameters(order, self._options, image, device)

    async def _made_before(self, order: Launch, error: InvalidRequest) -> str:
        """The host that the token of this order made when the order said something else."""
        codec = self._kit.codec
        operation = {f"tag:{codec.key(OPERATION)}": [codec.encode(order.operation_id)]}
        for host in await self._describe({**self._label(), **operation}):
            return host.ref
        raise error

    async def _explain_end(self, ref: str) -> None:
        """EC2 takes an order and may end the instance while it starts; its reason says why."""
        answer = await self._kit.call(
            "DescribeInstances", self._clients.ec2.describe_instances,
            Filters=[{"Name": "instance-id", "Values": [ref]}],
        )  # fmt: skip
        for row in _instances(answer):
            reason = row.get("StateReason", {})
            code, text = str(reason.get("Code", "")), f"{ref} ended while it started: {reason}"
            if "InsufficientInstanceCapacity" in code or code == TAKEN_BACK:
                raise OutOfCapacity(text)
            if "LimitExceeded" in code:
                raise QuotaExceeded(text)
            if code == "Client.InternalError":
                raise InvalidRequest(
                    f"{text}; the usual cause is a KMS key that EC2 may not use for the disk"
                )

    async def _terminate(self, refs: Sequence[str]) -> None:
        await self._kit.call(
            "TerminateInstances", self._clients.ec2.terminate_instances, InstanceIds=list(refs)
        )

    async def _describe(self, filters: Mapping[str, Sequence[str]]) -> list[Host]:
        """All pages, or an error."""
        wanted = [{"Name": name, "Values": list(values)} for name, values in filters.items()]
        hosts: list[Host] = []
        token: dict[str, Any] = {}
        while True:
            answer = await self._kit.call(
                "DescribeInstances", self._clients.ec2.describe_instances,
                Filters=wanted, MaxResults=PAGE, **token,
            )  # fmt: skip
            hosts += [self._read(row) for row in _instances(answer)]
            if not answer.get("NextToken"):
                return hosts
            token = {"NextToken": answer["NextToken"]}

    def _read(self, row: Mapping[str, Any]) -> Host:
        codec, ref, zone = self._kit.codec, str(row["InstanceId"]), ""
        zone = str(row.get("Placement", {}).get("AvailabilityZone", ""))
        tags = {str(tag["Key"]): str(tag["Value"]) for tag in row.get("Tags", ())}
        power = POWER.get(str(row["State"]["Name"]), Power.BROKEN)
        if power is Power.GONE and row.get("StateReason", {}).get("Code") == TAKEN_BACK:
            power = Power.PREEMPTED
        return Host(
            ref=ref,
            machine_id=codec.read(tags, MACHINE) or "",
            operation_id=codec.read(tags, OPERATION) or "",
            instance_type=str(row.get("InstanceType", "")),
            zone=zone,
            capacity_type=codec.capacity_type(tags),
            power=power,
            cluster=codec.read(tags, CLUSTER),
            address=str(row.get("PrivateIpAddress", "")),
            created=row["LaunchTime"].timestamp() if "LaunchTime" in row else 0.0,
            node_name=str(row.get("PrivateDnsName", "")),
            provider_id=f"aws:///{zone}/{ref}",
        )


class NoticedSubstrate(AwsSubstrate):
    """The same with a queue of notices."""

    def interruptions(self) -> AsyncIterator[Notice]:
        """Notices as they come."""
        queue = self._options.spot_interruption_queue
        assert queue is not None
        return Notices(self._kit, self._clients, queue, self._ended).follow()


def _instances(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [row for group in answer.get("Reservations", ()) for row in group.get("Instances", ())]
