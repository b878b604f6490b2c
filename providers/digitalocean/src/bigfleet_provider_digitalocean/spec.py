"""What the provider declares: its options, capacity, prices, limits and the rates of its calls."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bigfleet_provider_digitalocean import __version__
from bigfleet_provider_digitalocean.errors import classify
from bigfleet_provider_digitalocean.options import DigitaloceanOptions, check_credentials
from bigfleet_provider_digitalocean.seed import SEED, reserve
from bigfleet_providerkit import (
    Bucket,
    CallRate,
    CapacityType,
    InterruptionTable,
    Limits,
    ProviderSpec,
    Source,
    Timeouts,
)
from bigfleet_providerkit.hostexec.substrates import DELIVERY_CALLS
from bigfleet_providerkit.kit import Kit

if TYPE_CHECKING:
    from bigfleet_provider_digitalocean.substrate import DigitaloceanSubstrate

SIZES = ("s-2vcpu-4gb", "s-4vcpu-8gb")
MINUTE = 60.0
USER_DATA, AGENT_ROOM = 64 * 1024, 20 * 1024
"""What a Droplet takes, and how much of it the agent with its authority may fill."""


async def open_substrate(options: DigitaloceanOptions, kit: Kit) -> "DigitaloceanSubstrate":
    """Make the client. pydo is imported here, so that --use-fake-backend does without."""
    from bigfleet_provider_digitalocean.client import Api
    from bigfleet_provider_digitalocean.substrate import DigitaloceanSubstrate

    return DigitaloceanSubstrate(kit, Api(options.token or "", options.endpoint_url), options)


def mix(options: DigitaloceanOptions) -> Sequence[Bucket]:
    """Two sizes in two regions."""
    return [
        Bucket({"instance_type": size, "zone": region, "capacity_type": "on_demand"})
        for size in SIZES
        for region in dict.fromkeys(options.regions)
    ]


SPEC = ProviderSpec(
    name="digitalocean",
    version=__version__,
    options=DigitaloceanOptions,
    open=open_substrate,
    classify=classify,
    credentials=check_credentials,
    region=lambda options: options.regions[0],
    region_of=lambda options, zone: zone,
    type_names=("size",),
    zone_names=("region",),
    extra_fields=("vpc_uuid",),
    mix=mix,
    prices=SEED.prices,
    shapes=SEED.shapes,
    interruption=InterruptionTable(otherwise=0.0),
    reserve=reserve,
    capacity_types=frozenset({CapacityType.ON_DEMAND}),
    timeouts=Timeouts(
        create=5 * MINUTE, configure=8 * MINUTE, drain=15 * MINUTE, delete=5 * MINUTE
    ),
    limits=Limits(
        # A tag is one name of 255 characters, key and value together, the same in both cases.
        tag_key=64, tag_value=180, tag_alphabet="[a-z0-9:_-]*", name=63,
        user_data=USER_DATA - AGENT_ROOM, blob=4 * 1024 * 1024,
    ),
    poll_interval=5.0,
    consistency_window=30.0,
    sources=lambda options: (Source("prices", 30 * MINUTE, lambda cloud: cloud.market()),),
    # A token has 5,000 calls an hour and 250 a minute, whatever they are.
    calls=(
        CallRate(
            ("CreateDroplet", "DeleteDroplet", "ListDroplets", "GetDroplet", "PowerOn", "Tag",
             "Untag", "DeleteTag", "ListTags", "Sizes"),
            rate=1.3, burst=150,
        ),
        *DELIVERY_CALLS,
    ),
)  # fmt: skip
