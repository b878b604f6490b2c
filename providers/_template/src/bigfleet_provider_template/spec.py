"""What the provider declares: its options, capacity, prices and limits."""

from datetime import date
from typing import TYPE_CHECKING, Annotated

from bigfleet_provider_template import __version__
from bigfleet_provider_template.errors import classify
from bigfleet_providerkit import (
    Bucket,
    CallRate,
    Capacity,
    CapacityType,
    InterruptionTable,
    KitOptions,
    Limits,
    Opt,
    OptionError,
    PriceTable,
    ProviderSpec,
    Source,
    Timeouts,
)
from bigfleet_providerkit.kit import Kit

if TYPE_CHECKING:
    from bigfleet_provider_template.substrate import TemplateSubstrate

TYPE, ZONE, REGION = "example-standard-4", "example-zone-a", "example-region"
SHAPE = {"cpu": "4", "memory": "16Gi"}


class TemplateOptions(KitOptions):
    """The kit's options and this provider's own."""

    provider: Annotated[
        str | None, Opt("label on every machine and host; [a-z0-9-], at most 40", "example")
    ] = "example"
    token: Annotated[
        str | None,
        Opt("token of the cloud's API", env=("EXAMPLE_TOKEN",), secret=True, unset="none"),
    ] = None


async def check_credentials(options: TemplateOptions) -> None:
    """Say what is missing before anything is tried."""
    if not options.token:
        raise OptionError(
            "no credentials found (option, environment); set EXAMPLE_TOKEN, or run with "
            "--use-fake-backend"
        )
    if not options.endpoint_url:
        raise OptionError(
            "--endpoint-url is required: the example cloud has no address of its own; give that of "
            "its imitation, or run with --use-fake-backend"
        )


async def open_substrate(options: TemplateOptions, kit: Kit) -> "TemplateSubstrate":
    """Connect to the cloud. Its SDK is imported here, so that --use-fake-backend does without."""
    from bigfleet_provider_template.client import CloudClient
    from bigfleet_provider_template.substrate import TemplateSubstrate

    return TemplateSubstrate(kit, CloudClient(options.endpoint_url or "", options.token or ""))


def _slots(kind: str) -> dict[str, object]:
    return {
        "instance_type": TYPE,
        "zone": ZONE,
        "capacity_type": kind,
        "resources": SHAPE,
        "allocatable": SHAPE,
    }


SPEC = ProviderSpec(
    name="template",
    version=__version__,
    options=TemplateOptions,
    open=open_substrate,
    classify=classify,
    credentials=check_credentials,
    region=lambda options: REGION,
    mix=(Bucket(_slots("on_demand"), share=2), Bucket(_slots("spot"), share=1)),
    prices=PriceTable.flat(date(2026, 11, 1), {TYPE: 0.40}, spot_fraction=0.3),
    shapes={TYPE: Capacity(cpu=4000, memory=16 * 1024**3)},
    interruption=InterruptionTable({TYPE: 0.05}),
    capacity_types=frozenset({CapacityType.ON_DEMAND, CapacityType.SPOT}),
    timeouts=Timeouts(create=300, configure=300, drain=600, delete=300),
    limits=Limits(tag_key=128, tag_value=256, separator=":", blob=4 * 1024 * 1024),
    consistency_window=0.0,
    # What is read live, and how often: each source by its own period.
    sources=lambda options: (
        Source("prices", 2700, lambda cloud: cloud.prices()),
        Source("shapes", 3600, lambda cloud: cloud.shapes()),
    ),
    # What the cloud counts together shares a bucket; a name by itself has the kit's 50 a second.
    calls=(
        CallRate(("CreateHost", "DeleteHost", "StartHost", "SetTags"), rate=200),
        "ListHosts", "GetHost", "WriteFile", "RunCommand", "GetCommand", "ListPrices",
        "ListTypes", "ListEvents",
    ),
)  # fmt: skip
