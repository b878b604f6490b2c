"""EC2 of the imitated AWS: instances, their types, images and spot prices.

Instances start and end in their own time. Requests are looked at as EC2 does: a type and an image
of two architectures, a subnet of another zone, a reservation without room each have their error.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import aws_market as market
from bigfleet_fakecloud import (
    BadRequest,
    Cloud,
    Guests,
    Injected,
    Life,
    NotFound,
    OutOfStock,
    Resource,
    Then,
    Verb,
    page,
)

RECLAIMED_AFTER_S = 120.0
LISTED_AFTER_END_S = 900.0
INSTANCE = Life(
    first="pending",
    steps={
        "pending": Then("running", after=0.05, spread=0.5),
        "stopping": Then("stopped", after=0.02),
        "shutting-down": Then("terminated", after=0.03),
        "leaving": Then("reclaimed", after=RECLAIMED_AFTER_S),
    },
    verbs={
        "start": Verb.move("stopped", to="pending", stays=("pending", "running", "leaving")),
        "terminate": Verb.move(
            *("pending", "running", "stopping", "stopped", "leaving"),
            to="shutting-down",
            stays=("shutting-down", "terminated", "reclaimed"),
        ),
    },
    events={"stop": "stopping", "reclaim": "leaving", "terminate": "shutting-down"},
    released=frozenset({"terminated", "reclaimed"}),
    vanishes={"terminated": LISTED_AFTER_END_S, "reclaimed": LISTED_AFTER_END_S},
)
SHOWN_AS = {"leaving": "running", "reclaimed": "terminated"}
NUMBER = {
    "pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64,
    "stopped": 80,
}  # fmt: skip


class Ec2:
    """The handlers of EC2."""

    def __init__(self, cloud: Cloud, guests: Guests) -> None:
        self.cloud = cloud
        self.guests = guests
        self.instances = cloud.collection("instances", INSTANCE)
        guests.follow(
            self.instances, ("running", "leaving"), lambda host: str(host.fields["user_data"])
        )
        for ref, count in market.RESERVATIONS.items():
            cloud.stock.limit((ref,), count)

    def run(self, params: dict[str, Any]) -> dict[str, Any]:
        """One instance; the same token gives the same one."""
        kind, zone = self._checked(params)
        tags: dict[str, dict[str, str]] = {"instance": {}, "volume": {}}
        for specification in params.get("TagSpecifications", ()):
            tags[specification["ResourceType"]] = {
                entry["Key"]: entry["Value"] for entry in specification["Tags"]
            }
        if params.get("DryRun"):
            raise Injected(412, "DryRunOperation", "Request would have succeeded")
        if not tags["instance"] or tags["instance"] != tags["volume"]:
            raise BadRequest("instance and volume carry the same tags")
        target = params.get("CapacityReservationSpecification", {})
        held = target.get("CapacityReservationTarget", {}).get("CapacityReservationId")

        def make() -> str:
            if held is not None and held not in market.RESERVATIONS:
                raise Injected(400, "InvalidCapacityReservationId.NotFound", f"no {held}")
            try:
                self.cloud.stock.check((held,) if held else (kind, zone))
            except OutOfStock as problem:
                code = "ReservationCapacityExceeded" if held else "InsufficientInstanceCapacity"
                raise Injected(400 if held else 500, code, problem.text) from problem
            self.cloud.quota.check(("vcpus",), market.TYPES[kind].vcpus)
            ref = self.cloud.new_ref("i-")
            self.cloud.stock.hold(ref, (held,) if held else (kind, zone))
            self.cloud.quota.hold(ref, ("vcpus",), market.TYPES[kind].vcpus)
            fields = {
                "type": kind,
                "zone": zone,
                "image": params["ImageId"],
                "spot": "InstanceMarketOptions" in params,
                "reservation": held,
                "user_data": base64.b64decode(params.get("UserData", "")).decode(),
                "disks": params.get("BlockDeviceMappings", []),
                "metadata": params["MetadataOptions"],
            }
            self.instances.create(ref, fields, tags["instance"])
            return ref

        request = {key: value for key, value in params.items() if key != "DryRun"}
        ref = self.cloud.tokens.once("RunInstances", params["ClientToken"], request, make)
        made = self.instances.truth(ref)
        assert made is not None
        return {"ReservationId": "r-0", "Instances": [self._shown(made)]}

    def _checked(self, params: dict[str, Any]) -> tuple[str, str]:
        """Type and zone of an order that EC2 would take."""
        if not params.get("ClientToken") or (params["MinCount"], params["MaxCount"]) != (1, 1):
            raise BadRequest("one instance at a time, with a ClientToken")
        metadata = params.get("MetadataOptions", {})
        if (metadata.get("HttpTokens"), metadata.get("HttpPutResponseHopLimit")) != ("required", 1):
            raise BadRequest("this account wants IMDSv2 and a hop limit of 1")
        kind, zone = params["InstanceType"], params["Placement"]["AvailabilityZone"]
        if kind not in market.TYPES:
            raise Injected(400, "InvalidParameterValue", f"Invalid value '{kind}' for InstanceType")
        if zone not in market.ZONES:
            raise Injected(400, "InvalidParameterValue", f"Invalid availability zone: [{zone}]")
        subnet = params.get("SubnetId")
        if subnet is not None and subnet not in market.SUBNETS:
            raise Injected(400, "InvalidSubnetID.NotFound", f"The subnet ID '{subnet}' is unknown")
        if subnet is not None and market.SUBNETS[subnet] != zone:
            raise Injected(
                400, "InvalidParameterValue",
                f"Value ({zone}) for parameter availabilityZone is invalid. Subnet '{subnet}' is "
                f"in the availability zone {market.SUBNETS[subnet]}",
            )  # fmt: skip
        arch = market.IMAGES.get(params["ImageId"])
        if arch is None:
            raise Injected(400, "InvalidAMIID.NotFound", f"no image {params['ImageId']}")
        if arch != market.TYPES[kind].arch:
            raise Injected(
                400, "InvalidParameterValue",
                f"The architecture '{market.TYPES[kind].arch}' of the specified instance type does "
                f"not match the architecture '{arch}' of the specified AMI",
            )  # fmt: skip
        profile = params.get("IamInstanceProfile", {}).get("Name")
        if profile is not None and profile not in market.PROFILES:
            raise Injected(
                400, "InvalidParameterValue",
                f"Value ({profile}) for parameter iamInstanceProfile.name is invalid",
            )  # fmt: skip
        for group in params.get("SecurityGroupIds", ()):
            if group not in market.GROUPS:
                raise Injected(400, "InvalidGroup.NotFound", f"no security group {group}")
        return kind, zone

    def describe(self, params: dict[str, Any]) -> dict[str, Any]:
        """A page of the instances that fit all filters."""
        filters = {entry["Name"]: set(entry["Values"]) for entry in params.get("Filters", ())}
        unknown = {name for name in filters if not name.startswith("tag:")} - {
            "instance-id", "instance-state-name",
        }  # fmt: skip
        if unknown or any(len(values) > 200 for values in filters.values()):
            raise BadRequest(f"unknown or too long filters: {sorted(unknown)}")

        def fits(host: Resource) -> bool:
            state = SHOWN_AS.get(host.state, host.state)
            known = {"instance-id": host.ref, "instance-state-name": state}
            return all(
                known.get(name, host.tags.get(name.removeprefix("tag:"))) in values
                for name, values in filters.items()
            )

        found = self.instances.list(fits)
        part = page(found, params.get("MaxResults", 1000), params.get("NextToken"))
        shown = [{"ReservationId": "r-0", "Instances": [self._shown(h)]} for h in part.items]
        return {"Reservations": shown, "NextToken": part.cursor}

    def change(self, params: dict[str, Any], verb: str) -> dict[str, Any]:
        """All of them, or an error for all."""
        refs = params["InstanceIds"]
        for ref in refs:
            if self.instances.truth(ref) is None:
                raise NotFound(f"The instance ID '{ref}' does not exist")
        if params.get("DryRun"):
            raise Injected(412, "DryRunOperation", "Request would have succeeded")
        for ref in refs:
            self.instances.act(ref, verb)
        return {"TerminatingInstances" if verb == "terminate" else "StartingInstances": []}

    def tag(self, params: dict[str, Any]) -> None:
        """Add or replace tags."""
        new = {entry["Key"]: entry["Value"] for entry in params["Tags"]}
        self._retag(params, lambda old: {**old, **new})

    def untag(self, params: dict[str, Any]) -> None:
        """Remove tags."""
        gone = {entry["Key"] for entry in params["Tags"]}
        self._retag(params, lambda old: {k: v for k, v in old.items() if k not in gone})

    def _retag(
        self, params: dict[str, Any], change: Callable[[Mapping[str, str]], dict[str, str]]
    ) -> None:
        hosts = [self.instances.truth(ref) for ref in params["Resources"]]
        if None in hosts:
            raise NotFound(f"one of {params['Resources']} does not exist")
        if params.get("DryRun"):
            raise Injected(412, "DryRunOperation", "Request would have succeeded")
        for host in hosts:
            assert host is not None
            self.instances.edit(host.ref, tags=change(host.tags))

    def types(self, params: dict[str, Any]) -> dict[str, Any]:
        """Shapes of the named types; unknown ones are left out, as filters do."""
        wanted = {value for entry in params["Filters"] for value in entry["Values"]}
        shown = [entry.described() for name, entry in market.TYPES.items() if name in wanted]
        return {"InstanceTypes": shown}

    def spot_history(self, params: dict[str, Any]) -> dict[str, Any]:
        """Two prices of each type and zone, the older one twice as high."""
        now = self.cloud.timeline.now()
        rows = [
            {
                "InstanceType": name,
                "AvailabilityZone": zone,
                "ProductDescription": "Linux/UNIX",
                "SpotPrice": f"{market.TYPES[name].price * part * factor:.6f}",
                "Timestamp": now - age,
            }
            for entry in params["Filters"]
            for name in entry["Values"]
            if name in market.TYPES
            for zone, part in market.SPOT_PART.items()
            for age, factor in ((60.0, 1.0), (7200.0, 2.0))
        ]
        return {"SpotPriceHistory": rows}

    def images(self, params: dict[str, Any]) -> dict[str, Any]:
        """Root device and architecture of images."""
        for ref in params["ImageIds"]:
            if ref not in market.IMAGES:
                raise Injected(400, "InvalidAMIID.NotFound", f"no image {ref}")
        return {
            "Images": [
                {
                    "ImageId": ref,
                    "Architecture": market.IMAGES[ref],
                    "RootDeviceName": market.ROOT_DEVICE,
                }
                for ref in params["ImageIds"]
            ]
        }

    def _shown(self, host: Resource) -> dict[str, Any]:
        state = SHOWN_AS.get(host.state, host.state)
        shown: dict[str, Any] = {
            "InstanceId": host.ref,
            "ImageId": host.fields["image"],
            "InstanceType": host.fields["type"],
            "Placement": {"AvailabilityZone": host.fields["zone"]},
            "State": {"Code": NUMBER[state], "Name": state},
            "LaunchTime": host.created,
            "PrivateDnsName": f"ip-{host.ref}.ec2.internal",
            "PrivateIpAddress": self.guests.address(host.ref),
            "Tags": [{"Key": key, "Value": value} for key, value in host.tags.items()],
        }
        if host.fields["spot"]:
            shown["InstanceLifecycle"] = "spot"
        if host.state == "reclaimed":
            shown["StateReason"] = {"Code": "Server.SpotInstanceTermination", "Message": "taken"}
        if host.state == "terminated" and host.fields.get("reason"):
            shown["StateReason"] = {"Code": host.fields["reason"], "Message": "as ordered"}
        return shown
