"""Image aliases: `ssm:` names a parameter, `family:` a public one; both are resolved at launch.

Parameters of AWS, Canonical and EKS name the newest image of a family; an own one (`ssm:/golden/x`)
is how a team rolls out its images. `{arch}` in a name stands for the architecture as that name
spells it.
"""

from typing import TYPE_CHECKING

from bigfleet_providerkit import InvalidRequest
from bigfleet_providerkit.kit import Kit

if TYPE_CHECKING:
    from bigfleet_provider_aws.sessions import Clients

X86 = {"amd64": "x86_64", "arm64": "arm64"}
FAMILIES: dict[str, tuple[str, dict[str, str]]] = {
    "al2023": (
        "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{arch}", X86,
    ),
    "ubuntu-": (
        "/aws/service/canonical/ubuntu/server/{version}/stable/current/{arch}/hvm/ebs-gp3/ami-id",
        {"amd64": "amd64", "arm64": "arm64"},
    ),
    "eks-": (
        "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{arch}/standard/"
        "recommended/image_id", X86,
    ),
}  # fmt: skip
"""`eks-1.34` and `ubuntu-24.04` have their version in the name."""


def parameter_of(image: str, arch: str) -> str | None:
    """The parameter that an alias names; None for an image id."""
    kind, _, name = image.partition(":")
    if kind == "ssm":
        return name.replace("{arch}", X86.get(arch, arch))
    if kind != "family":
        return None
    for family, (pattern, words) in FAMILIES.items():
        if name == family or (family.endswith("-") and name.startswith(family)):
            version = name.removeprefix(family)
            return pattern.format(version=version, arch=words.get(arch, arch))
    raise InvalidRequest(
        f"there is no image family {name!r}; choose al2023, ubuntu-24.04, eks-1.34, or ssm:..."
    )


class Images:
    """Resolves aliases, and knows the root devices of images."""

    def __init__(self, kit: Kit, clients: "Clients") -> None:
        self._kit = kit
        self._clients = clients
        self._root_devices: dict[str, str] = {}

    async def resolve(self, image: str, arch: str) -> str:
        """The image id behind an alias at this moment."""
        parameter = parameter_of(image, arch)
        if parameter is None:
            return image
        answer = await self._kit.call(
            "GetParameter", self._clients.ssm.get_parameter, Name=parameter
        )
        return str(answer["Parameter"]["Value"])

    async def root_device(self, image: str) -> str:
        """The name of an image's root device, which stays the same for its life."""
        known = self._root_devices.get(image)
        if known is None:
            answer = await self._kit.call(
                "DescribeImages", self._clients.ec2.describe_images, ImageIds=[image]
            )
            known = self._root_devices[image] = str(answer["Images"][0]["RootDeviceName"])
        return known
