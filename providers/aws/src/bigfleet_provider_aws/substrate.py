"""EC2 as the kit sees it: launch, list, start, tag, terminate, and the way into a host.

A host that has ended is listed by EC2 for about an hour, a new one not at once; the kit's
consistency window of 30 s covers the second. RunInstances carries the operation id as its token, so
it may be repeated; where an upgrade changed what an order says, EC2 refuses the token
(IdempotentParameterMismatch), and the host that it made is found by its operation tag.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from bigfleet_provider_aws.api import Api, Filters
from bigfleet_provider_aws.catalogue import Catalogue
from bigfleet_provider_aws.commands import command_channel
from bigfleet_provider_aws.errors import CODES
from bigfleet_provider_aws.notices import follow
from bigfleet_provider_aws.orders import Orders, tag_list
from bigfleet_providerkit import Binding, Gone, Host, InvalidRequest, Launch, Power, Retryable
from bigfleet_providerkit.calls.trial import Trial, failing_calls
from bigfleet_providerkit.codec.tags import CLUSTER, OPERATION

PAGE = 1000
OFFERINGS_TRIED = 50
DRY_RUN_PASSED = "DryRunOperation"
PRESENT = ["pending", "running", "stopping", "stopped"]
POWER = {
    "pending": Power.STARTING, "running": Power.RUNNING, "stopping": Power.STOPPED,
    "stopped": Power.STOPPED, "shutting-down": Power.ENDING, "terminated": Power.GONE,
}  # fmt: skip
TAKEN_BACK = "Server.SpotInstanceTermination"


class AwsSubstrate:
    """The EC2 instances of one region that carry our label."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kit = api.kit
        self._orders = Orders(api)
        self.run_on_host = command_channel(api).run
        self.catalogue = Catalogue(api)
        if queue := api.options.spot_interruption_queue:
            self.interruptions = partial(follow, api, queue)

    async def launch(self, order: Launch) -> Host:
        """Run one instance and return when it runs."""
        ref, image = await self._run(order)
        try:
            host = await self._kit.until_running(Host(ref))
        except Gone as error:
            await self._explain_end(ref)
            raise error from None
        return host.with_notes(image=image)

    async def terminate(self, host: Host) -> None:
        """Return when the instance is gone; its disk and interface go with it."""
        await self._kit.batched("TerminateInstances", host.ref, self._terminate)
        await self._kit.until_gone(host)

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        """All instances with our label, or exactly these."""
        ours = {**self._label(), "instance-state-name": PRESENT}
        # Ids as a parameter would fail the call when one is unknown.
        rows = await self._rows(ours if refs is None else {"instance-id": refs})
        return [self._read(row) for row in rows]

    async def ensure_running(self, host: Host) -> None:
        """Start a stopped instance. One that is still stopping is refused, and tried again."""
        await self._api.call("StartInstances", InstanceIds=[host.ref])
        await self._kit.until_running(host)

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """Write our tags; tags of others stay."""
        codec = self._kit.codec
        if binding.cluster is None:
            cluster = [{"Key": codec.key(CLUSTER)}]
            await self._api.call("DeleteTags", Resources=[host.ref], Tags=cluster)
        tags = tag_list(codec.tags(binding))
        await self._api.call("CreateTags", Resources=[host.ref], Tags=tags)

    async def missing_permissions(self) -> Sequence[str]:
        """What is not granted, by plain reads and dry runs that change nothing.

        An order of each offering is tried. Termination, start and tags are tried on a host of ours,
        because a policy may allow them on hosts with our tag only; without one they cannot be
        tried. SendCommand has no dry run either.
        """
        api, catalogue = self._api, self.catalogue
        examples = islice(self._kit.example_orders(), OFFERINGS_TRIED)
        trials: list[Trial] = [
            *(("RunInstances", partial(self._run, order, DryRun=True)) for order in examples),
            ("DescribeInstanceTypes", catalogue.shapes),
            ("DescribeSpotPriceHistory", catalogue.spot_prices),
        ]
        if api.options.price_list == "api":
            trials += [("GetProducts", catalogue.on_demand_prices)]
        if queue := api.options.spot_interruption_queue:
            # What is seen stays visible for others.
            peek = partial(api.call, "ReceiveMessage", QueueUrl=queue, VisibilityTimeout=0)
            trials += [("ReceiveMessage", peek)]
        for host in (await self.list_managed())[:1]:
            instance = {"InstanceIds": [host.ref]}
            tags = {"Resources": [host.ref], "Tags": tag_list(self._kit.codec.mark())}
            changes: dict[str, dict[str, Any]] = {
                "TerminateInstances": instance, "StartInstances": instance,
                "CreateTags": tags, "DeleteTags": tags,
            }  # fmt: skip
            trials += [
                (op, partial(api.call, op, DryRun=True, **params)) for op, params in changes.items()
            ]
        return await failing_calls(trials, lambda error: DRY_RUN_PASSED in str(error))

    async def renew_credentials(self) -> None:
        """Find credentials again: a file or a role may have new ones."""
        self._api.renew()

    async def aclose(self) -> None:
        """Let go of the connections."""
        self._api.close()

    def _label(self) -> Filters:
        return {f"tag:{key}": [value] for key, value in self._kit.codec.mark().items()}

    async def _run(self, order: Launch, **more: Any) -> tuple[str, str]:
        """Send an order; the instance and its image."""
        parameters = await self._orders.parameters(order)
        image = str(parameters["ImageId"])
        try:
            made = await self._api.call("RunInstances", **parameters, **more)
            return str(made["Instances"][0]["InstanceId"]), image
        except InvalidRequest as error:
            if "IdempotentParameterMismatch" not in str(error):
                raise
            return await self._made_before(order, error), image

    async def _made_before(self, order: Launch, error: InvalidRequest) -> str:
        """The host that the token of this order made when the order said something else."""
        codec = self._kit.codec
        operation = {f"tag:{codec.key(OPERATION)}": [codec.encode(order.operation_id)]}
        for row in await self._rows({**self._label(), **operation}):
            return str(row["InstanceId"])
        raise error

    async def _explain_end(self, ref: str) -> None:
        """EC2 takes an order and may end the instance while it starts; its reason says why."""
        for row in await self._rows({"instance-id": [ref]}):
            reason = row.get("StateReason", {})
            code, text = str(reason.get("Code", "")), f"{ref} ended while it started: {reason}"
            if code == "Client.InternalError":
                raise InvalidRequest(
                    f"{text}; the usual cause is a KMS key that EC2 may not use for the disk"
                )
            error = CODES.error(code.partition(".")[2], text)
            if not isinstance(error, Retryable):
                raise error

    async def _terminate(self, refs: Sequence[str]) -> None:
        await self._api.call("TerminateInstances", InstanceIds=list(refs))

    async def _rows(self, filters: Filters) -> list[Mapping[str, Any]]:
        """The instances that these filters leave."""
        groups = await self._api.rows("DescribeInstances", "Reservations", filters, MaxResults=PAGE)
        return [row for group in groups for row in group["Instances"]]

    def _read(self, row: Mapping[str, Any]) -> Host:
        ref, zone = (
            str(row["InstanceId"]),
            str(row.get("Placement", {}).get("AvailabilityZone", "")),
        )
        tags = {str(tag["Key"]): str(tag["Value"]) for tag in row.get("Tags", ())}
        power = POWER.get(str(row["State"]["Name"]), Power.BROKEN)
        if power is Power.GONE and row.get("StateReason", {}).get("Code") == TAKEN_BACK:
            power = Power.PREEMPTED
        return self._kit.codec.host(
            tags,
            ref,
            instance_type=str(row.get("InstanceType", "")),
            zone=zone,
            power=power,
            address=str(row.get("PrivateIpAddress", "")),
            created=row["LaunchTime"].timestamp() if "LaunchTime" in row else 0.0,
            node_name=str(row.get("PrivateDnsName", "")),
            provider_id=f"aws:///{zone}/{ref}",
        )
