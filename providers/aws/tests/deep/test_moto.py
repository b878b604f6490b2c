"""The real substrate against the moto server, an imitation of AWS that is not ours.

It knows nothing of Systems Manager's commands inside hosts, so a machine is created with its tags,
looked at, started again and deleted here, and configured elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("boto3")
pytest.importorskip("moto.server")

import boto3
import moto.server

from aws_world import credentials, options_for
from bigfleet_provider_aws.spec import SPEC
from bigfleet_providerkit import State, start
from bigfleet_providerkit.testing import Shard, eventually

REGION = "us-east-1"


@dataclass(frozen=True)
class Moto:
    """A server, a client of its own for it, and an image that it knows."""

    endpoint: str
    ec2: Any
    image: str

    def host(self, ref: str) -> Any:
        shown = self.ec2.describe_instances(InstanceIds=[ref])
        return shown["Reservations"][0]["Instances"][0]

    def tags(self, ref: str) -> dict[str, str]:
        return {tag["Key"]: tag["Value"] for tag in self.host(ref).get("Tags", ())}


@pytest.fixture
def account() -> Iterator[Moto]:
    server = moto.server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    with credentials():
        place = {"endpoint_url": endpoint, "region_name": REGION}
        boto3.client("iam", **place).create_instance_profile(InstanceProfileName="bigfleet-node")
        ec2 = boto3.client("ec2", **place)
        images = ec2.describe_images(Owners=["amazon"])["Images"]
        yield Moto(endpoint, ec2, images[0]["ImageId"])
    server.stop()


async def test_a_host_is_made_tagged_started_again_and_given_back(account: Moto) -> None:
    options = options_for(
        account.endpoint, image=account.image, spot_advisor_url="", tags={"team": "a"}
    )
    running = await start(SPEC, options, listen=False)
    try:
        shard = Shard(running.service)
        free = await shard.machines(State.SPECULATIVE)
        machine = next(one.id for one in free if "/OnDemand/" in one.id)
        await shard.create(machine)
        ref = (await shard.until(machine, State.IDLE, 60)).host.ref
        assert account.host(ref)["MetadataOptions"]["HttpTokens"] == "required"
        tags = account.tags(ref)
        assert (tags["bigfleet:machine-id"], tags["team"]) == (machine, "a")
        account.ec2.stop_instances(InstanceIds=[ref])

        async def runs() -> bool:
            await running.reconcile()
            return bool(account.host(ref)["State"]["Name"] == "running")

        await eventually(runs, what="the host to run again")
        await shard.delete(machine)
        await shard.until(machine, State.SPECULATIVE, 60)
        assert account.host(ref)["State"]["Name"] == "terminated"
    finally:
        await running.stop()
