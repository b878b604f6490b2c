"""What the imitated AWS sells: instance types, zones, images, prices, how often spot is taken back.

Figures are those of us-east-1 in the provider's seed tables; a live spot price differs by zone, so
that a test sees which one was read.
"""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass

REGION = "us-east-1"
ZONES = (f"{REGION}a", f"{REGION}b")
SUBNETS = {"subnet-0a": ZONES[0], "subnet-0b": ZONES[1]}
PROFILES = frozenset({"bigfleet-node"})
GROUPS = frozenset({"sg-0123"})
IMAGES = {"ami-0amd64": "x86_64", "ami-0arm64": "arm64"}
ROOT_DEVICE = "/dev/xvda"
RESERVATIONS = {"cr-0123": 2}
PARAMETERS = {
    "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64": "ami-0amd64",
    "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64": "ami-0arm64",
    "/golden/image": "ami-0amd64",
}
SPOT_PART = {ZONES[0]: 0.31, ZONES[1]: 0.36}
ADVISOR_BAND = 1


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One row of the price list."""

    name: str
    vcpus: int
    gib: int
    interfaces: int
    addresses: int
    price: float
    arch: str = "x86_64"
    gpus: int = 0
    gpu: str = ""

    def described(self) -> dict[str, object]:
        """As DescribeInstanceTypes shows it."""
        shown: dict[str, object] = {
            "InstanceType": self.name,
            "BareMetal": ".metal" in self.name,
            "ProcessorInfo": {"SupportedArchitectures": [self.arch]},
            "VCpuInfo": {"DefaultVCpus": self.vcpus},
            "MemoryInfo": {"SizeInMiB": self.gib * 1024},
            "NetworkInfo": {
                "MaximumNetworkInterfaces": self.interfaces,
                "Ipv4AddressesPerInterface": self.addresses,
            },
        }
        if self.gpus:
            device = {"Name": self.gpu, "Manufacturer": "NVIDIA", "Count": self.gpus}
            shown["GpuInfo"] = {"Gpus": [device]}
        return shown


TYPES = {
    entry.name: entry
    for entry in (
        InstanceType("m6i.large", 2, 8, 3, 10, 0.096),
        InstanceType("m6i.xlarge", 4, 16, 4, 15, 0.192),
        InstanceType("m6i.metal", 128, 512, 15, 50, 6.144),
        InstanceType("c7g.xlarge", 4, 8, 4, 15, 0.145, "arm64"),
        InstanceType("r6i.large", 2, 16, 3, 10, 0.126),
        InstanceType("g5.xlarge", 4, 16, 4, 15, 1.006, gpus=1, gpu="A10G"),
        InstanceType("p5.48xlarge", 192, 2048, 64, 50, 98.32, gpus=8, gpu="H100"),
    )
}


def product(entry: InstanceType, *, system: str = "Linux", price: float | None = None) -> str:
    """One entry of GetProducts, a JSON text as the real answer has it."""
    sku = f"SKU{entry.name.upper().replace('.', '')}{system.upper()}"
    rate = {
        "unit": "Hrs",
        "description": f"${entry.price} per On Demand {system} {entry.name} Instance Hour",
        "pricePerUnit": {"USD": f"{entry.price if price is None else price:.10f}"},
    }
    return json.dumps(
        {
            "product": {
                "productFamily": "Compute Instance",
                "sku": sku,
                "attributes": {**attributes(entry.name), "operatingSystem": system},
            },
            "serviceCode": "AmazonEC2",
            "terms": {"OnDemand": {f"{sku}.JRT": {"priceDimensions": {f"{sku}.JRT.6YS": rate}}}},
        }
    )


def attributes(name: str) -> dict[str, str]:
    """What GetProducts can be filtered by."""
    return {
        "instanceType": name,
        "regionCode": REGION,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }


COLUMNS = (
    "SKU", "TermType", "Unit", "PricePerUnit", "Currency", "Instance Type", "Tenancy",
    "Operating System", "CapacityStatus", "Pre Installed S/W", "Region Code",
)  # fmt: skip


def offer_file() -> Iterator[list[str]]:
    """The bulk price list: five lines about the file, the names of the columns, the rows."""
    yield from (
        ["FormatVersion", "v1.0"],
        ["Disclaimer", "imitated"],
        ["Publication Date", "2026-11-01T00:00:00Z"],
        ["Version", "1"],
        ["OfferCode", "AmazonEC2"],
        list(COLUMNS),
    )
    for entry in TYPES.values():
        usual = [entry.name, "Shared", "Linux", "Used", "NA", REGION]
        windows = [entry.name, "Shared", "Windows", "Used", "NA", REGION]
        yield ["A", "OnDemand", "Hrs", f"{entry.price:.10f}", "USD", *usual]
        yield ["B", "Reserved", "Hrs", f"{entry.price / 2:.10f}", "USD", *usual]
        yield ["C", "OnDemand", "Hrs", f"{entry.price * 2:.10f}", "USD", *windows]


def offer_csv() -> bytes:
    """The same as the bytes of a CSV file."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(offer_file())
    return text.getvalue().encode()


def advisor() -> dict[str, object]:
    """The Spot Instance Advisor's file."""
    rows = {name: {"s": 70, "r": ADVISOR_BAND} for name in TYPES}
    return {"spot_advisor": {REGION: {"Linux": rows, "Windows": {}}}}
