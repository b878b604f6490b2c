"""What the provider declares: its options, capacity, prices, limits and the rates of its calls."""

from collections.abc import Sequence

from bigfleet_provider_aws import __version__
from bigfleet_provider_aws.api import Api
from bigfleet_provider_aws.errors import classify
from bigfleet_provider_aws.options import AwsOptions, check_credentials
from bigfleet_provider_aws.seed import INTERRUPTION, SEED, reserve
from bigfleet_provider_aws.substrate import AwsSubstrate
from bigfleet_providerkit import (
    Bucket,
    CallRate,
    CapacityType,
    Limits,
    ProviderSpec,
    Source,
    Timeouts,
)
from bigfleet_providerkit.kit import Kit

MIX = (("m6i.large", "on_demand"), ("c7g.xlarge", "spot"))
MINUTE, DAY = 60.0, 86400.0


async def open_substrate(options: AwsOptions, kit: Kit) -> AwsSubstrate:
    """Make the clients of the SDK."""
    return AwsSubstrate(Api(kit, options))


def mix(options: AwsOptions) -> Sequence[Bucket]:
    """On-demand and spot, each in two zones."""
    return [
        Bucket({"instance_type": kind, "zone": zone, "capacity_type": paid})
        for kind, paid in MIX
        for zone in options.zones
    ]


SPEC = ProviderSpec(
    name="aws",
    version=__version__,
    options=AwsOptions,
    open=open_substrate,
    classify=classify,
    credentials=check_credentials,
    region=lambda options: options.in_region,
    zone_names=("availability_zone",),
    extra_fields=("subnet", "disk_type", "disk_encryption_key"),
    mix=mix,
    prices=SEED.prices,
    shapes=SEED.shapes,
    interruption=INTERRUPTION,
    capacity_types=frozenset({CapacityType.ON_DEMAND, CapacityType.SPOT, CapacityType.RESERVED}),
    timeouts=Timeouts(
        create=5 * MINUTE, configure=8 * MINUTE, drain=15 * MINUTE, delete=5 * MINUTE,
        create_of={"*.metal*": 30 * MINUTE},
    ),
    limits=Limits(
        tag_key=128, tag_value=256, separator=":", name=255, user_data=16 * 1024, blob=256 * 1024
    ),
    poll_interval=3.0,
    consistency_window=30.0,
    reserve=reserve,
    sources=lambda options: (
        Source("prices", options.ondemand_refresh, lambda aws: aws.catalogue.on_demand_prices()),
        Source("spot", options.spot_refresh, lambda aws: aws.catalogue.spot_prices()),
        Source("shapes", DAY, lambda aws: aws.catalogue.shapes()),
        Source("interruptions", DAY, lambda aws: aws.catalogue.interruptions()),
    ),
    # EC2 counts per account and region: buckets that refill at these rates. What is not throttled
    # there has the kit's 50 a second; ReceiveMessage waits in the queue and not here.
    calls=(
        CallRate(("RunInstances",), rate=2, burst=5),
        CallRate(("StartInstances",), rate=2, burst=5),
        CallRate(("TerminateInstances",), rate=5, burst=100),
        CallRate(("CreateTags", "DeleteTags"), rate=10, burst=100),
        CallRate(("DescribeInstances",), rate=20, burst=100),
        CallRate(("DescribeInstanceTypes", "DescribeSpotPriceHistory", "DescribeImages"), rate=10),
        CallRate(("SendCommand",), rate=5, burst=20),
        CallRate(("GetCommandInvocation", "GetParameter"), rate=20, burst=40),
        CallRate(("GetProducts",), rate=5),
        CallRate(("PriceListBulk", "SpotAdvisor"), rate=1),
        CallRate(("ReceiveMessage",), rate=1, burst=1),
        CallRate(("DeleteMessage",), rate=50),
    ),
)  # fmt: skip
