"""The real substrate with boto3 against the imitated AWS: what it sends, and what it makes of
answers that are lost, late or bad."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("boto3")

import aws_market as market
from aws_world import AwsWorld, aws_world
from bigfleet_fakecloud import Effect, Moment, Rule
from bigfleet_providerkit import CapacityType, State
from bigfleet_providerkit.testing import eventually

METAL = "- {instance_type: m6i.metal, zone: us-east-1a, capacity_type: on_demand, count: 1}"
SECRET = b"kubeadm join with this token: " + b"s3cr3t" * 30_000


async def through_a_life(world: AwsWorld, word: str = "OnDemand") -> str:
    """One machine all the way and back; its id."""
    machine = (await world.idle(word)).id
    await world.shard.configure(machine, "cluster-a", {"key": "value"}, blob=SECRET)
    await world.shard.until(machine, State.CONFIGURED)
    await world.shard.drain(machine)
    await world.shard.until(machine, State.IDLE)
    await world.shard.delete(machine)
    await world.shard.until(machine, State.SPECULATIVE)
    return machine


@pytest.mark.parametrize("word", ["OnDemand", "Spot"])
async def test_one_machine_through_its_life(word: str) -> None:
    async with aws_world() as world:
        await through_a_life(world, word)
        assert world.hosts() == []


async def test_an_order_carries_tags_token_and_strict_metadata() -> None:
    async with aws_world(
        subnets={"us-east-1a": "subnet-0a"}, security_groups=("sg-0123",)
    ) as world:
        machine = await world.idle()
        (host,) = world.hosts()
        assert machine.host.ref == host.ref
        assert host.tags["bigfleet:machine-id"] == machine.id
        assert host.tags["bigfleet:capacity"] == "on_demand"
        assert "bigfleet:cluster" not in host.tags
        assert host.fields["metadata"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
        assert "/opt/bigfleet/bootstrap" in str(host.fields["user_data"])


async def test_the_cluster_is_a_tag_while_a_machine_belongs_to_one() -> None:
    async with aws_world() as world:
        machine = (await world.idle()).id
        await world.shard.configure(machine, "cluster-a")
        await world.shard.until(machine, State.CONFIGURED)
        assert world.hosts()[0].tags["bigfleet:cluster"] == "cluster-a"
        await world.shard.drain(machine)
        await world.shard.until(machine, State.IDLE)
        assert "bigfleet:cluster" not in world.hosts()[0].tags


async def test_systems_manager_never_keeps_the_bootstrap_data() -> None:
    async with aws_world() as world:
        await through_a_life(world)
        texts = [text for _, _, text in world.aws.commands.values()]
        assert len(texts) > 3
        assert not any("s3cr3t" in text for text in texts)


@pytest.mark.parametrize("op", ["RunInstances", "TerminateInstances", "CreateTags", "SendCommand"])
async def test_an_answer_that_was_lost_makes_no_second_host(op: str) -> None:
    async with aws_world() as world:
        number = world.aws.cloud.faults.add(Rule(op, Moment.AFTER, Effect.DROP))
        await through_a_life(world)
        assert world.aws.cloud.faults.fired(number) == 1
        assert len(world.aws.ec2.instances.everything()) == 1


async def test_a_token_whose_order_changed_gives_the_host_it_made() -> None:
    async with aws_world() as world:
        world.aws.cloud.faults.add(Rule("RunInstances", Moment.AFTER, Effect.FAIL, status=500))
        changed = Rule(
            "RunInstances", status=400, code="IdempotentParameterMismatch", text="other", skip=1
        )
        world.aws.cloud.faults.add(changed)
        machine = await world.idle()
        assert [host.ref for host in world.hosts()] == [machine.host.ref]


@pytest.mark.parametrize(
    ("code", "status", "word"),
    [
        ("InsufficientInstanceCapacity", 500, "OutOfCapacity"),
        ("VcpuLimitExceeded", 400, "QuotaExceeded"),
        ("UnauthorizedOperation", 403, "Unauthorized: missing permission ec2:RunInstances"),
        (
            "RequestExpired",
            400,
            "Unauthorized: check the credentials and that this machine's clock",
        ),
        ("InvalidAMIID.NotFound", 400, "InvalidRequest"),
    ],
)
async def test_a_refused_order_fails_with_its_word(code: str, status: int, word: str) -> None:
    async with aws_world() as world:
        rule = Rule("RunInstances", status=status, code=code, text="no", times=None)
        world.aws.cloud.faults.add(rule)
        assert (await world.failed()).startswith(word)
        assert world.hosts() == []


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"subnets": {"us-east-1a": "subnet-0b"}}, "is in the availability zone us-east-1b"),
        ({"subnets": {"us-east-1a": "subnet-9"}}, "InvalidSubnetID.NotFound"),
        ({"image": "ami-0arm64"}, "does not match the architecture 'arm64'"),
        ({"image": "ami-9"}, "InvalidAMIID.NotFound"),
        ({"image": "ssm:/none"}, "ParameterNotFound"),
        ({"iam_instance_profile": "no-such-profile"}, "iamInstanceProfile.name is invalid"),
        ({"security_groups": ("sg-9",)}, "InvalidGroup.NotFound"),
    ],
)
async def test_a_bad_option_is_named_by_the_first_create(
    changed: dict[str, Any], text: str
) -> None:
    async with aws_world(**changed) as world:
        failed = await world.failed()
        assert failed.startswith("InvalidRequest:")
        assert text in failed


async def test_an_alias_gives_each_architecture_its_image() -> None:
    async with aws_world(image="family:al2023") as world:
        for word, image in (("OnDemand", "ami-0amd64"), ("Spot", "ami-0arm64")):
            ref = (await world.idle(word)).host.ref
            host = world.aws.ec2.instances.truth(ref)
            assert host is not None
            assert host.fields["image"] == image


async def test_a_disk_has_its_size_type_and_key() -> None:
    offering = (
        "- {instance_type: m6i.large, zone: us-east-1a, count: 1, disk_gb: 80,"
        " disk_type: io2, disk_encryption_key: alias/nodes}"
    )
    async with aws_world(offerings=offering) as world:
        await world.idle()
        (host,) = world.hosts()
        disk = {
            "VolumeSize": 80, "VolumeType": "io2", "Encrypted": True, "KmsKeyId": "alias/nodes",
            "DeleteOnTermination": True,
        }  # fmt: skip
        assert host.fields["disks"] == [{"DeviceName": market.ROOT_DEVICE, "Ebs": disk}]


async def test_a_reservation_that_is_used_up_is_out_of_capacity() -> None:
    offering = (
        "- {instance_type: m6i.large, zone: us-east-1a, capacity_type: reserved, count: 3,"
        " reservation: cr-0123}"
    )
    async with aws_world(offerings=offering) as world:
        for _ in range(2):
            await world.idle("Reserved")
        failed = await world.failed("Reserved")
        assert failed.startswith("OutOfCapacity: RunInstances: ReservationCapacityExceeded")


async def test_metal_is_on_demand_with_its_price_and_is_given_back() -> None:
    async with aws_world(offerings=METAL) as world:
        (machine,) = await world.shard.machines()
        assert CapacityType(machine.capacity_type) is CapacityType.ON_DEMAND
        assert machine.price_per_hour == market.TYPES["m6i.metal"].price
        await through_a_life(world)
        assert world.running.settings.timeouts.create_of["*.metal*"] == 1800


async def test_prices_come_from_the_list_and_from_the_spot_market_by_zone() -> None:
    async with aws_world() as world:
        for machine in await world.shard.machines():
            zone, entry = machine.zone, market.TYPES[machine.instance_type]
            part = 1.0 if "/OnDemand/" in machine.id else market.SPOT_PART[zone]
            assert machine.price_per_hour == pytest.approx(entry.price * part)
        assert world.aws.cloud.counts["GetProducts"] == 2


async def test_the_bulk_file_is_read_once_while_it_does_not_change() -> None:
    async with aws_world(price_list="bulk") as world:
        machine = next(m for m in await world.shard.machines() if "/OnDemand/" in m.id)
        assert machine.price_per_hour == pytest.approx(market.TYPES["m6i.large"].price)
        await world.running.refresh_prices()
        statuses = [seen.status for seen in world.aws.cloud.calls if seen.op == "PriceListBulk"]
        assert statuses == [200, 304]
        assert world.aws.cloud.counts["GetProducts"] == 0


async def test_prices_that_vanish_leave_the_last_ones() -> None:
    async with aws_world() as world:
        before = {m.id: m.price_per_hour for m in await world.shard.machines()}
        for op in ("GetProducts", "DescribeSpotPriceHistory"):
            world.aws.cloud.faults.add(Rule(op, status=400, code="InvalidParameterException"))
        await world.running.refresh_prices()
        assert {m.id: m.price_per_hour for m in await world.shard.machines()} == before


async def test_a_host_lost_a_stop_and_lost_tags_are_put_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with aws_world() as world:
        lost, stopped, bare = [(await world.idle()) for _ in range(3)]
        instances = world.aws.ec2.instances
        instances.happen(lost.host.ref, "terminate")
        instances.happen(stopped.host.ref, "stop")
        instances.edit(bare.host.ref, tags={"team": "a"})

        async def as_wanted() -> bool:
            await world.running.reconcile()
            again = instances.truth(stopped.host.ref)
            tags = instances.truth(bare.host.ref)
            assert again is not None
            assert tags is not None
            return again.state == "running" and "bigfleet:machine-id" in tags.tags

        # The second look waits out the consistency window; the window of this test is short.
        reconciler = world.running.backend.loops._reconciler
        short = replace(world.running.settings, consistency_window=0.0)
        monkeypatch.setattr(reconciler, "_settings", short)
        await eventually(as_wanted, what="start and tags")
        failed = await world.shard.until(lost.id, State.FAILED)
        assert failed.last_error.startswith("HostLost:")
        kept = instances.truth(bare.host.ref)
        assert kept is not None
        assert kept.tags["team"] == "a"


async def test_a_warning_shows_the_end_and_a_hint_shows_none() -> None:
    async with aws_world(queue=True) as world:
        warned, hinted = await world.idle("Spot"), await world.idle("Spot")
        world.aws.queue.put("this is not JSON")
        instance = world.aws.ec2.instances.happen(warned.host.ref, "reclaim")
        hint = {
            "detail-type": "EC2 Instance Rebalance Recommendation",
            "time": "2026-11-01T12:00:00Z",
            "detail": {"instance-id": hinted.host.ref},
        }
        world.aws.queue.put(json.dumps(hint))

        async def seen() -> bool:
            return (await world.shard.get(hinted.id)).interruption_probability == 0.5

        await eventually(seen, what="the hint")
        ends = (await world.shard.get(warned.id)).interruption_unix_nanos / 1e9
        assert ends == pytest.approx(instance.changed + 120, abs=1.0)
        assert (await world.shard.get(warned.id)).interruption_probability == 0.99
        assert (await world.shard.get(hinted.id)).interruption_unix_nanos == 0

        async def empty() -> bool:
            return not world.aws.queue.messages

        await eventually(empty, what="an empty queue")


async def test_our_own_terminations_are_not_taken_for_interruptions() -> None:
    async with aws_world(queue=True) as world:
        await through_a_life(world, "Spot")

        async def empty() -> bool:
            return not world.aws.queue.messages

        await eventually(empty, what="an empty queue")
        assert world.running.metrics.interruptions._value.get() == 0


async def test_two_labels_in_one_account_never_touch_each_other() -> None:
    async with aws_world(provider="one") as first:
        mine = await first.idle()
        async with aws_world(provider="two") as second:
            second.running.substrate._api = first.running.substrate._api  # type: ignore[attr-defined]
            await second.running.reconcile()
            assert [m for m in await second.shard.machines() if m.HasField("host")] == []
        assert [host.ref for host in first.hosts()] == [mine.host.ref]


async def test_a_command_waits_for_the_agent_of_a_new_host() -> None:
    async with aws_world() as world:
        machine = (await world.idle()).id
        rule = Rule("SendCommand", status=400, code="InvalidInstanceId", times=2)
        number = world.aws.cloud.faults.add(rule)
        await world.shard.configure(machine)
        await world.shard.until(machine, State.CONFIGURED)
        assert world.aws.cloud.faults.fired(number) == 2


async def test_credentials_that_expired_are_found_again() -> None:
    async with aws_world() as world:
        rule = Rule("RunInstances", status=400, code="ExpiredToken", text="expired", times=1)
        world.aws.cloud.faults.add(rule)
        await world.idle()


async def test_an_assumed_role_signs_the_calls() -> None:
    async with aws_world(assume_role="arn:aws:iam::1:role/fleet") as world:
        await world.idle()
        assert world.aws.cloud.counts["AssumeRole"] == 1


async def test_check_names_every_permission_that_is_missing() -> None:
    async with aws_world() as world:
        await world.idle()
        substrate = world.running.substrate
        assert await substrate.missing_permissions() == []  # type: ignore[attr-defined]
        for op in ("RunInstances", "TerminateInstances", "CreateTags"):
            rule = Rule(op, status=403, code="UnauthorizedOperation", text="no", times=None)
            world.aws.cloud.faults.add(rule)
        missing = await substrate.missing_permissions()  # type: ignore[attr-defined]
        assert [line.split(";")[0] for line in missing] == [
            "missing permission ec2:RunInstances",
            "missing permission ec2:TerminateInstances",
            "missing permission ec2:CreateTags",
        ]


async def test_a_hundred_creates_share_their_looks() -> None:
    async with aws_world(seed_count=200, api_rate={"RunInstances": 1000}) as world:
        machines = await world.slots()
        await asyncio.gather(*(world.shard.create(machine) for machine in machines))
        for machine in machines:
            await world.shard.until(machine, State.IDLE)
        counts = world.aws.cloud.counts
        assert len(machines) == 100
        assert counts["RunInstances"] == 100
        assert counts["DescribeInstances"] <= 60
