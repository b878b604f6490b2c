"""Which permissions are missing, found without changing anything: EC2's dry runs, and plain reads.

Termination, start and tags are tried on a host of ours, because a policy may allow them on hosts
with our tag only; without one they cannot be tried. SendCommand has no dry run either.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from bigfleet_provider_aws.catalogue import Catalogue
from bigfleet_provider_aws.options import AwsOptions
from bigfleet_providerkit import SubstrateError, Unauthorized
from bigfleet_providerkit.codec.tags import MANAGED
from bigfleet_providerkit.kit import Kit

if TYPE_CHECKING:
    from bigfleet_provider_aws.sessions import Clients

GRANTED = "DryRunOperation"
Try = Callable[[], Awaitable[str]]


class Permissions:
    """Tries what the provider will call."""

    def __init__(
        self, kit: Kit, clients: "Clients", options: AwsOptions, catalogue: Catalogue
    ) -> None:
        self._kit = kit
        self._clients = clients
        self._options = options
        self._catalogue = catalogue

    async def missing(self, orders: Sequence[dict[str, Any]], ref: str) -> list[str]:
        """The sentences of what was refused, each once. `orders` are tried one by one; `ref` is a
        host of ours, or empty without one."""
        ec2, catalogue, options = self._clients.ec2, self._catalogue, self._options
        tries = [self._dry("RunInstances", ec2.run_instances, **order) for order in orders]
        tries += [_named("DescribeInstanceTypes", catalogue.shapes)]
        tries += [_named("DescribeSpotPriceHistory", catalogue.spot_prices)]
        if options.price_list == "api":
            tries += [_named("GetProducts", catalogue.on_demand_prices)]
        if options.spot_interruption_queue:
            tries += [_named("ReceiveMessage", self._peek)]
        if ref:
            tag = [{"Key": self._kit.codec.key(MANAGED), "Value": "true"}]
            tries += [
                self._dry("TerminateInstances", ec2.terminate_instances, InstanceIds=[ref]),
                self._dry("StartInstances", ec2.start_instances, InstanceIds=[ref]),
                self._dry("CreateTags", ec2.create_tags, Resources=[ref], Tags=tag),
                self._dry("DeleteTags", ec2.delete_tags, Resources=[ref], Tags=tag),
            ]
        missing = [problem for attempt in tries if (problem := await attempt())]
        return list(dict.fromkeys(missing))

    def _dry(self, op: str, call: Callable[..., object], **params: Any) -> Try:
        return _named(op, lambda: self._kit.call(op, call, DryRun=True, **params))

    async def _peek(self) -> object:
        """Look at the queue; what is seen stays visible for others."""
        return await self._kit.call(
            "ReceiveMessage", self._clients.sqs.receive_message,
            QueueUrl=self._options.spot_interruption_queue, VisibilityTimeout=0,
        )  # fmt: skip


def _named(op: str, attempt: Callable[[], Awaitable[object]]) -> Try:
    """What is wrong with a call, or an empty text."""

    async def tried() -> str:
        try:
            await attempt()
        except Unauthorized as error:
            return str(error)
        except SubstrateError as error:
            return "" if GRANTED in str(error) else f"{op} would fail: {error}"
        return ""

    return tried
