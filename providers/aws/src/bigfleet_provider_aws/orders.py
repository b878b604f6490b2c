"""An order as the parameters of RunInstances.

All that EC2 gets for an order is here: one instance, the operation id as its ClientToken, all tags
on instance and volumes in the same call, IMDSv2 with a hop limit of 1, so that Pods cannot take
the node's role.
"""

from typing import Any

from bigfleet_provider_aws.options import AwsOptions
from bigfleet_providerkit import Binding, CapacityType, Launch, Offering
from bigfleet_providerkit.kit import Kit

AWS_OWN_KEY = "aws"
DISK_FIELDS = ("disk_type", "disk_encryption_key")


def wants_disk(order: Launch) -> bool:
    """Whether the root disk differs from the image's: then its device has to be known."""
    return bool(order.disk_gb or any(order.extra.get(name) for name in DISK_FIELDS))


def run_parameters(
    order: Launch, options: AwsOptions, image: str, root_device: str
) -> dict[str, Any]:
    """The parameters of RunInstances for an order; `root_device` is empty for the image's disk."""
    tags = [{"Key": key, "Value": value} for key, value in sorted(order.tags.items())]
    tags.append({"Key": "Name", "Value": order.name})
    params: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": order.operation_id,
        "ImageId": image,
        "InstanceType": order.instance_type,
        "Placement": {"AvailabilityZone": order.zone},
        "UserData": order.user_data,
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")
        ],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "InstanceInitiatedShutdownBehavior": "terminate",
    }
    if order.placement_group:
        params["Placement"]["GroupName"] = order.placement_group
    if order.capacity_type is CapacityType.SPOT:
        params["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {
                "SpotInstanceType": "one-time",
                "InstanceInterruptionBehavior": "terminate",
            },
        }
    if order.reservation:
        params["CapacityReservationSpecification"] = {"CapacityReservationTarget": _target(order)}
    if options.iam_instance_profile:
        profile = options.iam_instance_profile
        name = "Arn" if profile.startswith("arn:") else "Name"
        params["IamInstanceProfile"] = {name: profile}
    if options.key_name:
        params["KeyName"] = options.key_name
    if root_device:
        params["BlockDeviceMappings"] = [{"DeviceName": root_device, "Ebs": _disk(order)}]
    if subnet := order.extra.get("subnet") or options.subnets.get(order.zone):
        params["SubnetId"] = subnet
    if options.security_groups:
        params["SecurityGroupIds"] = list(options.security_groups)
    return params


def _target(order: Launch) -> dict[str, str]:
    if order.reservation.startswith("arn:"):
        return {"CapacityReservationResourceGroupArn": order.reservation}
    return {"CapacityReservationId": order.reservation}


def _disk(order: Launch) -> dict[str, object]:
    kind, key = (order.extra.get(name) for name in DISK_FIELDS)
    disk: dict[str, object] = {"DeleteOnTermination": True}
    if kind:
        disk["VolumeType"] = kind
    if order.disk_gb:
        disk["VolumeSize"] = order.disk_gb
    if key:
        disk["Encrypted"] = True
    if key and key != AWS_OWN_KEY:
        disk["KmsKeyId"] = key
    return disk


def example_order(kit: Kit, offering: Offering, options: AwsOptions, arch: str) -> Launch:
    """An order like those of an offering, for a dry run."""
    machine = next(offering.slot_ids(kit.label), kit.label)
    images = offering.image or options.image
    return Launch(
        machine_id=machine,
        operation_id="dry-run",
        instance_type=offering.instance_type,
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        name="bf-dry-run",
        tags=kit.codec.tags(Binding(machine, "dry-run", offering.capacity_type, None)),
        deadline=0.0,
        image=images if isinstance(images, str) else images.get(arch, ""),
        arch=arch or "amd64",
        disk_gb=offering.disk_gb,
        reservation=offering.reservation,
        placement_group=offering.placement_group,
        extra=dict(offering.extra),
    )
