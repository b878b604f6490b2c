"""The real substrate with hcloud against the imitated Hetzner Cloud: what it sends, and what it
makes of answers that are lost, late or bad."""

from typing import Any

import pytest

pytest.importorskip("hcloud")

from bigfleet_fakecloud import Effect, Moment, Rule, serving
from bigfleet_provider_hetzner.spec import SPEC
from bigfleet_providerkit import OptionError, State, start
from bigfleet_providerkit.testing import Shard
from hetzner_cloud import HetznerCloud
from hetzner_world import MUTATIONS, HetznerWorld, hetzner_world, options_for


async def through_a_life(world: HetznerWorld) -> str:
    """One machine all the way and back; its id."""
    machine = (await world.idle()).id
    await world.shard.configure(machine, "cluster-a", {"key": "value"}, blob=b"x" * 100_000)
    await world.shard.until(machine, State.CONFIGURED)
    await world.shard.drain(machine)
    await world.shard.until(machine, State.IDLE)
    await world.shard.delete(machine)
    await world.shard.until(machine, State.SPECULATIVE)
    return machine


async def test_one_machine_through_its_life() -> None:
    async with hetzner_world() as world:
        await through_a_life(world)
        assert world.hosts() == []


async def test_an_order_carries_labels_key_image_and_user_data() -> None:
    async with hetzner_world(networks=("nodes",), firewalls=("nodes",)) as world:
        machine = await world.idle()
        (host,) = world.hosts()
        assert machine.host.ref == host.ref
        assert host.tags["bigfleet-managed"] == "true"
        assert host.tags["bigfleet-provider"] == "hetzner-eu-central"
        assert "bigfleet-cluster" not in host.tags
        assert host.fields["networks"] == [501]
        assert host.fields["firewalls"] == [{"firewall": 601}]
        assert len(world.hetzner.things["ssh_keys"]) == 1
        assert "/opt/bigfleet/bootstrap" in str(host.fields["user_data"])


async def test_the_cluster_is_a_label_while_a_machine_belongs_to_one_and_others_labels_stay() -> (
    None
):
    async with hetzner_world() as world:
        machine = (await world.idle()).id
        (host,) = world.hosts()
        world.hetzner.servers.edit(host.ref, tags={**host.tags, "team": "ops"})
        await world.shard.configure(machine, "cluster-a")
        await world.shard.until(machine, State.CONFIGURED)
        tags = world.hosts()[0].tags
        assert (tags["bigfleet-cluster"], tags["team"]) == ("cluster-a", "ops")
        await world.shard.drain(machine)
        await world.shard.until(machine, State.IDLE)
        tags = world.hosts()[0].tags
        assert "bigfleet-cluster" not in tags
        assert tags["team"] == "ops"


async def test_prices_are_net_euros_of_the_location_in_dollars() -> None:
    async with hetzner_world() as world:
        machines = {machine.instance_type: machine for machine in await world.shard.machines()}
        assert machines["cx22"].price_per_hour == pytest.approx(0.0061 * 1.08)
        assert machines["cpx41"].allocatable.resources["memory"] == "14888Mi"


@pytest.mark.parametrize("op", MUTATIONS)
async def test_an_answer_that_was_lost_makes_no_second_host(op: str) -> None:
    async with hetzner_world() as world:
        number = world.hetzner.cloud.faults.add(Rule(op, Moment.AFTER, Effect.DROP))
        await through_a_life(world)
        assert world.hetzner.cloud.faults.fired(number) == 1
        assert len(world.hetzner.servers.everything()) <= 1
        assert world.hosts() == []


async def test_a_name_that_another_server_has_is_not_taken_over() -> None:
    async with hetzner_world() as world:

        def first_come() -> None:
            (operation,) = world.running.backend.ledger.work
            work = world.running.backend.ledger.work[operation]
            fields = {
                "name": f"bf-{work.operation}", "type": "cx22", "location": "nbg1",
                "user_data": "", "networks": [],
            }  # fmt: skip
            world.hetzner.servers.create("39999999", fields, {"team": "ops"})

        rule = Rule("CreateServer", effect=Effect.HOOK, hook=first_come)
        world.hetzner.cloud.faults.add(rule)
        failed = await world.failed()
        assert failed.startswith("InvalidRequest: uniqueness_error")
        assert "server 39999999 has this name and is not the host of" in failed
        assert [host.ref for host in world.hosts()] == ["39999999"]


@pytest.mark.parametrize(
    ("code", "status", "word"),
    [
        ("resource_unavailable", 412, "OutOfCapacity"),
        ("placement_error", 412, "OutOfCapacity"),
        ("resource_limit_exceeded", 403, "QuotaExceeded"),
        ("unauthorized", 401, "Unauthorized: check HCLOUD_TOKEN"),
        ("token_readonly", 403, "Unauthorized: missing permission Read & Write"),
        ("invalid_input", 422, "InvalidRequest"),
    ],
)
async def test_a_refused_order_fails_with_its_word(code: str, status: int, word: str) -> None:
    async with hetzner_world() as world:
        rule = Rule("CreateServer", status=status, code=code, text="no", times=None)
        world.hetzner.cloud.faults.add(rule)
        assert (await world.failed()).startswith(word)
        assert world.hosts() == []


async def test_an_order_that_fails_later_says_why() -> None:
    async with hetzner_world() as world:
        error = {"code": "placement_error", "message": "no host in the placement group"}
        world.hetzner.action_errors.append(error)
        assert (await world.failed()).startswith("OutOfCapacity: placement_error: no host")


BAD_STARTS: list[tuple[dict[str, Any], str]] = [
    ({"offerings": "[{server_type: cx99, location: nbg1, count: 1}]"},
     "no price for cx99|shape of cx99|no server type 'cx99'"),
    ({"offerings": "[{server_type: cx22, location: lon1, count: 1}]"},
     "cx22 is not sold in location 'lon1'; use ash, fsn1, nbg1"),
    ({"image": "debian-99"}, "there is no image 'debian-99' for amd64; check --image"),
    ({"networks": ("none",)}, "networks: the project has no 'none'"),
    ({"firewalls": ("none",)}, "firewalls: the project has no 'none'"),
    ({"placement_group": "none"}, "placement-groups: the project has no 'none'"),
    ({"offerings": "[{server_type: cx22, location: nbg1, count: 1, disk_gb: 40}]"},
     "disk_gb: the disk belongs to the server type"),
    ({"offerings": "[{server_type: cx22, location: nbg1, count: 1}, "
                   "{server_type: cx22, location: nbg1, count: 2}]"},
     "offering 2: same type, zone and capacity type as offering 1"),
    ({"ssh_address": "private"}, "--networks"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "text"), BAD_STARTS)
async def test_a_bad_start_is_refused_with_one_sentence(changed: dict[str, Any], text: str) -> None:
    hetzner = HetznerCloud(1)
    with serving(hetzner.cloud) as endpoint, pytest.raises(OptionError, match=text):
        await start(SPEC, options_for(hetzner, endpoint, **changed), listen=False)


async def test_a_price_list_that_changed_its_form_keeps_the_seed_prices() -> None:
    hetzner = HetznerCloud(1)
    with serving(hetzner.cloud) as endpoint:
        running = await start(SPEC, options_for(hetzner, endpoint), listen=False)
        hetzner.bad_types = [{"name": "cx22", "price": 0}]
        assert not await running.refresh_prices()
        machines = await Shard(running.service).machines()
        assert all(machine.price_per_hour > 0 for machine in machines)
        await running.stop()


async def test_a_host_that_was_stopped_outside_is_started_and_one_that_is_gone_is_lost() -> None:
    async with hetzner_world() as world:
        machine = await world.idle()
        world.hetzner.servers.happen(machine.host.ref, "stop")
        await world.running.reconcile()
        truth = world.hetzner.servers.truth(machine.host.ref)
        assert truth is not None
        assert truth.state in ("starting", "running")


async def test_labels_that_were_removed_are_written_again() -> None:
    async with hetzner_world() as world:
        machine = await world.idle()
        world.hetzner.servers.edit(machine.host.ref, tags={"team": "ops"})
        for _ in range(3):
            await world.running.reconcile()
        (host,) = world.hosts()
        assert host.tags.get("team") == "ops"
