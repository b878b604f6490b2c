"""An order as the parameters of RunInstances.

All that EC2 gets for an order is here: one instance, the operation id as its ClientToken, all tags
on instance and volumes in the same call, IMDSv2 with a hop limit of 1, so that Pods cannot take
the node's role.

Image aliases are resolved here too: `ssm:` names a parameter, `family:` a public one. Parameters of
AWS, Canonical and EKS name the newest image of a family; an own one (`ssm:/golden/x`) is how a team
rolls out its images. `{arch}` in a name stands for the architecture as that name spells it.
"""

from collections.abc import Mapping
from typing import Any

from bigfleet_provider_aws.api import Api
from bigfleet_providerkit import CapacityType, InvalidRequest, Launch

MACHINE = {"amd64": "x86_64", "arm64": "arm64"}
FAMILIES = {
    "al2023": "ami-amazon-linux-latest/al2023-ami-kernel-default-{machine}",
    "ubuntu-": "canonical/ubuntu/server/{version}/stable/current/{arch}/hvm/ebs-gp3/ami-id",
    "eks-": "eks/optimized-ami/{version}/amazon-linux-2023/{machine}/standard/recommended/image_id",
}
"""Below /aws/service. `eks-1.34` and `ubuntu-24.04` have their version in the name."""
AWS_OWN_KEY = "aws"
TAGGED = ("instance", "volume")
SPOT = {
    "MarketType": "spot",
    "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
}


def parameter_of(image: str, arch: str) -> str | None:
    """The parameter that an alias names; None for an image id."""
    kind, _, name = image.partition(":")
    machine = MACHINE.get(arch, arch)
    if kind == "ssm":
        return name.replace("{arch}", machine)
    if kind != "family":
        return None
    for family, pattern in FAMILIES.items():
        if name == family or (family.endswith("-") and name.startswith(family)):
            version = name.removeprefix(family)
            return "/aws/service/" + pattern.format(version=version, arch=arch, machine=machine)
    raise InvalidRequest(
        f"there is no image family {name!r}; choose al2023, ubuntu-24.04, eks-1.34, or ssm:..."
    )


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as EC2 takes them."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


class Orders:
    """Writes orders, and knows the root devices of images, which never change."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._root_devices: dict[str, str] = {}

    async def parameters(self, order: Launch) -> dict[str, Any]:
        """The parameters of RunInstances for an order."""
        options, image = self._api.options, await self._image(order)
        tags = tag_list({**order.tags, "Name": order.name})
        place = {"AvailabilityZone": order.zone, "GroupName": order.placement_group}
        profile = options.iam_instance_profile or ""
        profile_key = "Arn" if profile.startswith("arn:") else "Name"
        chosen_by = "ResourceGroupArn" if order.reservation.startswith("arn:") else "Id"
        target = {f"CapacityReservation{chosen_by}": order.reservation}
        reserved = {"CapacityReservationTarget": target} if order.reservation else None
        params = {
            "MinCount": 1,
            "MaxCount": 1,
            "ClientToken": order.operation_id,
            "ImageId": image,
            "InstanceType": order.instance_type,
            "Placement": _given(place),
            "InstanceMarketOptions": SPOT if order.capacity_type is CapacityType.SPOT else None,
            "CapacityReservationSpecification": reserved,
            "UserData": order.user_data,
            "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in TAGGED],
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "InstanceInitiatedShutdownBehavior": "terminate",
            "IamInstanceProfile": _given({profile_key: profile}),
            "KeyName": options.key_name,
            "BlockDeviceMappings": await self._disks(order, image),
            "SubnetId": order.extra.get("subnet") or options.subnets.get(order.zone),
            "SecurityGroupIds": list(options.security_groups or ()),
        }
        return _given(params)

    async def _image(self, order: Launch) -> str:
        """The image id behind an alias at this moment."""
        parameter = parameter_of(order.image, order.arch)
        if parameter is None:
            return order.image
        answer = await self._api.call("GetParameter", Name=parameter)
        return str(answer["Parameter"]["Value"])

    async def _disks(self, order: Launch, image: str) -> list[dict[str, Any]]:
        """The root disk, where it differs from the image's: then its device has to be known."""
        kind, key = order.extra.get("disk_type"), order.extra.get("disk_encryption_key")
        wanted = {
            "VolumeType": kind,
            "VolumeSize": order.disk_gb,
            "Encrypted": bool(key),
            "KmsKeyId": key if key != AWS_OWN_KEY else None,
        }
        if not any(wanted.values()):
            return []
        if image not in self._root_devices:
            answer = await self._api.call("DescribeImages", ImageIds=[image])
            self._root_devices[image] = str(answer["Images"][0]["RootDeviceName"])
        disk = {**_given(wanted), "DeleteOnTermination": True}
        return [{"DeviceName": self._root_devices[image], "Ebs": disk}]


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is empty."""
    return {name: value for name, value in values.items() if value}
