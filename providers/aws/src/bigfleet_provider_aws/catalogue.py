"""Shapes and prices of the offered types, from the API of AWS.

Every source asks only for what is offered, so that a fleet of ten types costs ten short answers
and not a list of a thousand. What was not really read is left out; the shipped tables serve there.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bigfleet_provider_aws.offer_file import OfferFile, read_advice
from bigfleet_provider_aws.options import AwsOptions
from bigfleet_provider_aws.seed import most_pods
from bigfleet_providerkit import Capacity, CapacityType, InterruptionTable, PriceKey, SourceData
from bigfleet_providerkit.kit import Kit

if TYPE_CHECKING:
    from bigfleet_provider_aws.sessions import Clients

TYPES_A_CALL = 100
HISTORY_S = 6 * 3600.0
MIB = 1024**2
WITHOUT_PRICE_API = ("us-gov-", "us-iso")
LISTED = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
"""The attributes of the price of a plain Linux instance."""


class Catalogue:
    """Asks one region. The kit reads each of its methods by its own period."""

    def __init__(self, kit: Kit, clients: "Clients", options: AwsOptions) -> None:
        self._kit = kit
        self._clients = clients
        self._region = options.in_region
        self._advisor_url = options.spot_advisor_url
        self._bulk = OfferFile(options) if options.price_list == "bulk" else None

    def offered(self, *kinds: CapacityType) -> list[str]:
        """The offered types, or those of some capacity types."""
        return sorted(
            {
                offering.instance_type
                for offering in self._kit.offerings
                if not kinds or offering.capacity_type in kinds
            }
        )

    async def shapes(self) -> SourceData:
        """Shapes by type. A filter leaves out a type that is unknown here; naming it as a parameter
        would fail the whole call."""
        types = self.offered()
        found: dict[str, Capacity] = {}
        for part in _parts(types):
            wanted = [{"Name": "instance-type", "Values": part}]
            for answer in await self._pages(
                "DescribeInstanceTypes", "describe_instance_types", Filters=wanted
            ):
                for row in answer["InstanceTypes"]:
                    found[str(row["InstanceType"])] = shape_of(row)
        return SourceData(capacities=found)

    async def spot_prices(self) -> SourceData:
        """The newest spot price of each offered type and zone."""
        newest: dict[PriceKey, tuple[float, float]] = {}
        for part in _parts(self.offered(CapacityType.SPOT)):
            for answer in await self._pages(
                "DescribeSpotPriceHistory",
                "describe_spot_price_history",
                InstanceTypes=part,
                ProductDescriptions=["Linux/UNIX"],
                StartTime=self._kit.clock.now() - HISTORY_S,
            ):
                for row in answer["SpotPriceHistory"]:
                    place = str(row["AvailabilityZone"])
                    key = PriceKey(str(row["InstanceType"]), place, CapacityType.SPOT)
                    seen = (row["Timestamp"].timestamp(), float(row["SpotPrice"]))
                    newest[key] = max(newest.get(key, seen), seen)
        return SourceData(prices={key: price for key, (_, price) in newest.items()})

    async def on_demand_prices(self) -> SourceData:
        """On-demand prices of the offered types: one call for each, or the public file."""
        if self._bulk is not None:
            types = frozenset(self.offered())
            return SourceData(await self._kit.call("PriceListBulk", self._bulk.read, types))
        if self._region.startswith(WITHOUT_PRICE_API):
            return SourceData()
        found = {}
        for instance_type in self.offered():
            wanted = {**LISTED, "instanceType": instance_type, "regionCode": self._region}
            answer = await self._kit.call(
                "GetProducts",
                self._clients.pricing.get_products,
                ServiceCode="AmazonEC2",
                Filters=[
                    {"Type": "TERM_MATCH", "Field": field, "Value": value}
                    for field, value in wanted.items()
                ],
            )
            prices = [price for text in answer["PriceList"] for price in hourly_prices(text)]
            if prices:
                key = PriceKey(instance_type, self._region, CapacityType.ON_DEMAND)
                found[key] = min(prices)
        return SourceData(found)

    async def interruptions(self) -> SourceData:
        """How often spot hosts are taken back, by type; nothing new without an address."""
        if not self._advisor_url:
            return SourceData()
        advice: InterruptionTable = await self._kit.call(
            "SpotAdvisor", read_advice, self._advisor_url, self._region
        )
        return SourceData(forecasts=advice)

    async def _pages(self, op: str, method: str, **params: Any) -> list[dict[str, Any]]:
        pages: list[dict[str, Any]] = []
        token: dict[str, Any] = {}
        while True:
            call = getattr(self._clients.ec2, method)
            answer = await self._kit.call(op, call, **params, **token)
            pages.append(answer)
            if not answer.get("NextToken"):
                return pages
            token = {"NextToken": answer["NextToken"]}


def hourly_prices(text: str) -> list[float]:
    """The hourly dollars in one entry of the price list; a CNY list has none."""
    terms = json.loads(text)["terms"].get("OnDemand", {})
    return [
        price
        for term in terms.values()
        for rate in term["priceDimensions"].values()
        if rate["unit"] == "Hrs" and (price := float(rate["pricePerUnit"].get("USD", 0))) > 0
    ]


def shape_of(row: Mapping[str, Any]) -> Capacity:
    """The shape in one row of DescribeInstanceTypes."""
    gpus = [
        gpu
        for gpu in row.get("GpuInfo", {}).get("Gpus", ())
        if str(gpu.get("Manufacturer", "")).upper() == "NVIDIA"
    ]
    network = row["NetworkInfo"]
    architectures = row["ProcessorInfo"]["SupportedArchitectures"]
    return Capacity(
        cpu=int(row["VCpuInfo"]["DefaultVCpus"]) * 1000,
        memory=int(row["MemoryInfo"]["SizeInMiB"]) * MIB,
        gpus=sum(int(gpu["Count"]) for gpu in gpus),
        accelerator=f"nvidia-{gpus[0]['Name']}".lower().replace(" ", "-") if gpus else "",
        arch="arm64" if "arm64" in architectures else "amd64",
        pods=most_pods(
            int(network["MaximumNetworkInterfaces"]), int(network["Ipv4AddressesPerInterface"])
        ),
    )


def _parts(types: Sequence[str]) -> list[list[str]]:
    return [list(types[at : at + TYPES_A_CALL]) for at in range(0, len(types), TYPES_A_CALL)]
