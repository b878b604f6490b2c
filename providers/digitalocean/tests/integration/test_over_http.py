"""The real substrate with pydo against the imitated DigitalOcean: what it sends, and what it makes
of answers that are lost, late or bad."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("pydo")

from bigfleet_fakecloud import Effect, Moment, Rule
from bigfleet_fakecloud.guests.levers import Lever
from bigfleet_providerkit import OptionError, State
from bigfleet_providerkit.testing import eventually
from digitalocean_world import DigitaloceanWorld, digitalocean_world

SECRET = b"kubeadm join with this token: " + b"s3cr3t" * 30_000
pytestmark = pytest.mark.timeout(180)


async def through_a_life(world: DigitaloceanWorld) -> str:
    """One machine all the way and back; its id."""
    machine = (await world.idle()).id
    await world.shard.configure(machine, "cluster-a", {"key": "value"}, blob=SECRET)
    await world.shard.until(machine, State.CONFIGURED)
    await world.shard.drain(machine)
    await world.shard.until(machine, State.IDLE)
    await world.shard.delete(machine)
    await world.shard.until(machine, State.SPECULATIVE)
    return machine


@pytest.fixture
def no_window(monkeypatch: pytest.MonkeyPatch) -> Callable[[DigitaloceanWorld], None]:
    """Second looks come at the next pass; the window of a real account is 30 s."""

    def shorten(world: DigitaloceanWorld) -> None:
        short = replace(world.running.settings, consistency_window=0.0)
        reconciler = world.running.backend.loops._reconciler
        monkeypatch.setattr(reconciler, "_settings", short)

    return shorten


async def test_one_machine_through_its_life_leaves_no_host_and_no_tag_of_its_own() -> None:
    async with digitalocean_world() as world:
        machine = await through_a_life(world)
        assert world.hosts() == []
        assert not [tag for tag in world.page.tags if tag.startswith("bfop:")]
        # The next host of the slot has the machine's tag again.
        await world.shard.create(machine)
        await world.shard.until(machine, State.IDLE)
        assert world.ever() == 2


async def test_an_order_says_whose_host_it_is_in_the_call_that_makes_it() -> None:
    changes: dict[str, Any] = {
        "vpc": {"nyc3": "vpc-nyc3"},
        "ssh_keys": ("111",),
        "tags": {"team": "ml"},
    }
    async with digitalocean_world(**changes) as world:
        world.page.cloud.faults.add(Rule("Tag", status=500, times=None))
        machine = await world.idle()
        (host,) = world.hosts()
        assert machine.host.ref == host.ref
        assert {"bigfleet-managed", "bfprov:digitalocean-nyc3", "team:ml"} < {*host.tags}
        assert host.fields["vpc"] == "vpc-nyc3"
        assert "/etc/bigfleet-agent/config.json" in str(host.fields["user_data"])
        assert machine.labels["topology.kubernetes.io/region"] == "nyc3"


async def test_the_cluster_is_a_tag_while_a_machine_belongs_to_one() -> None:
    async with digitalocean_world() as world:
        machine = (await world.idle()).id
        await world.shard.configure(machine, "Prod/A")
        await world.shard.until(machine, State.CONFIGURED)
        (tag,) = (tag for tag in world.hosts()[0].tags if tag.startswith("bfcluster:"))
        # A tag that was there before in another case would be shown in that case.
        assert tag == tag.lower()
        await world.running.reconcile()
        assert (await world.shard.get(machine)).cluster == "Prod/A"
        await world.shard.drain(machine)
        await world.shard.until(machine, State.IDLE)
        assert not [tag for tag in world.hosts()[0].tags if tag.startswith("bfcluster:")]


async def test_the_bootstrap_data_goes_to_the_host_and_nowhere_else() -> None:
    async with digitalocean_world() as world:
        machine = await world.idle()
        await world.shard.configure(machine.id, "cluster-a", blob=SECRET)
        await world.shard.until(machine.id, State.CONFIGURED)
        (run,) = world.page.guests.history(machine.host.ref)
        assert (run.kind, run.what, run.exit_code) == ("configure", "cluster-a", 0)
        assert run.provider_id == f"digitalocean://{machine.host.ref}"
        root = world.page.guests.folder(machine.host.ref).root
        kept = [path for path in root.rglob("*") if path.is_file()]
        assert not any(b"s3cr3t" in path.read_bytes() for path in kept)


@pytest.mark.parametrize("op", ["DeleteDroplet", "Tag", "Untag", "DeleteTag"])
async def test_an_answer_that_was_lost_changes_nothing(op: str) -> None:
    async with digitalocean_world() as world:
        number = world.page.cloud.faults.add(Rule(op, Moment.AFTER, Effect.DROP))
        await through_a_life(world)
        assert world.page.cloud.faults.fired(number) == 1
        assert (world.ever(), world.hosts()) == (1, [])


@pytest.mark.parametrize("effect", [Effect.DROP, Effect.FAIL])
async def test_a_create_whose_answer_was_lost_finds_its_droplet(
    effect: Effect, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with digitalocean_world() as world:
        substrate: Any = world.running.substrate
        short = replace(substrate._kit, consistency_window=0.2)
        monkeypatch.setattr(substrate, "_kit", short)
        world.page.cloud.faults.add(Rule("CreateDroplet", Moment.AFTER, effect, status=502))
        await world.idle()
        assert (world.ever(), len(world.hosts())) == (1, 1)


@pytest.mark.parametrize(
    ("status", "text", "word"),
    [
        (422, "Size is not available in this region.", "OutOfCapacity:"),
        (422, "creating this/these droplet(s) will exceed your droplet limit", "QuotaExceeded:"),
        (401, "Unable to authenticate you", "Unauthorized: check DIGITALOCEAN_TOKEN"),
        (403, "not authorized", "Unauthorized: the token lacks the scope droplet:create"),
        (422, "You specified an invalid image for Droplet creation.", "InvalidRequest:"),
    ],
)
async def test_a_refused_order_fails_with_its_word(status: int, text: str, word: str) -> None:
    async with digitalocean_world() as world:
        rule = Rule("CreateDroplet", status=status, code="x", text=text, times=None)
        world.page.cloud.faults.add(rule)
        assert (await world.failed()).startswith(word)
        assert world.hosts() == []


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"image": "ubuntu-1"}, "invalid image"),
        ({"ssh_keys": ("999",)}, "invalid key identifiers"),
        ({"vpc": {"nyc3": "vpc-sfo3"}}, "VPC not found in the region"),
        ({"region": None, "offerings": "- {size: c-4, region: xyz1, count: 1}"}, "invalid region"),
    ],
)
async def test_a_bad_option_is_named_by_the_first_create(
    changed: dict[str, Any], text: str
) -> None:
    async with digitalocean_world(**changed) as world:
        failed = await world.failed()
        assert failed.startswith("InvalidRequest:")
        assert text in failed


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (
            {"offerings": "- {size: c-4, region: nyc3, count: 1, disk_gb: 9}"},
            "Droplets have no disk_gb",
        ),
        ({"offerings": "- {size: c-4, region: sfo3, count: 1}"}, "serves --region nyc3 only"),
        ({"tags": {"Team": "ml"}}, "the tag Team:ml does not fit"),
        ({"offerings": "- {size: z-1, region: nyc3, count: 1}"}, "the shape of z-1 is not known"),
    ],
)
async def test_what_droplets_cannot_have_is_refused_at_the_start(
    changed: dict[str, Any], text: str
) -> None:
    with pytest.raises(OptionError, match=text):
        async with digitalocean_world(**changed):
            pass


async def test_user_data_that_does_not_fit_with_the_agent_is_named(tmp_path: Any) -> None:
    base = tmp_path / "base.yaml"
    base.write_text("#cloud-config\n# " + "x" * 30_000)
    async with digitalocean_world(base_user_data=str(base), bootstrap_hook="/opt/hook") as world:
        host = await world.idle()
        assert host.host.ref
    long_chain = tmp_path / "ca.pem"
    long_chain.write_text("c" * 45_000)
    async with digitalocean_world(bootstrap_ca=str(long_chain)) as world:
        failed = await world.failed()
        assert failed.startswith("InvalidRequest: user data with the agent has ")
        assert "65536 fit: shorten --base-user-data" in failed


async def test_prices_come_from_the_list_of_sizes_and_stay_when_it_changes_its_form() -> None:
    async with digitalocean_world() as world:
        before = {m.id: m.price_per_hour for m in await world.shard.machines()}
        assert {round(price, 5) for price in before.values()} == {0.03571, 0.07143}
        world.page.sizes_body = lambda: {
            "sizes": [{"slug": "c-4", "hourly": 0}],
            "meta": {"total": 1},
        }
        await world.running.refresh_prices()
        assert {m.id: m.price_per_hour for m in await world.shard.machines()} == before


async def test_a_host_lost_a_stop_and_lost_tags_are_put_right(
    no_window: Callable[[DigitaloceanWorld], None],
) -> None:
    async with digitalocean_world(tags={"team": "ml"}) as world:
        lost, stopped, bare = [(await world.idle()) for _ in range(3)]
        no_window(world)
        droplets = world.page.droplets
        droplets.happen(lost.host.ref, "terminate")
        droplets.happen(stopped.host.ref, "stop")
        droplets.edit(bare.host.ref, tags={"by:hand": ""})

        async def as_wanted() -> bool:
            await world.running.reconcile()
            again, tagged = (droplets.truth(m.host.ref) for m in (stopped, bare))
            assert again is not None
            assert tagged is not None
            return again.state == "active" and "bigfleet-managed" in tagged.tags

        await eventually(as_wanted, what="start and tags")
        failed = await world.shard.until(lost.id, State.FAILED)
        assert failed.last_error.startswith("HostLost:")
        kept = droplets.truth(bare.host.ref)
        assert kept is not None
        assert {"by:hand", "team:ml"} < {*kept.tags}


async def test_a_duplicate_goes_and_the_first_keeps_the_tag_of_their_operation(
    no_window: Callable[[DigitaloceanWorld], None],
) -> None:
    async with digitalocean_world(orphan_grace=0.0) as world:
        machine = await world.idle()
        no_window(world)
        (first,) = world.hosts()
        world.page.droplets.create("400009999", first.fields, first.tags)

        async def one_left() -> bool:
            await world.running.reconcile()
            return len(world.hosts()) == 1

        await eventually(one_left, what="one host")
        assert world.hosts()[0].ref == machine.host.ref
        assert [tag for tag in world.hosts()[0].tags if tag.startswith("bfop:")]


async def test_tags_of_operations_go_when_their_droplet_ended_by_itself() -> None:
    async with digitalocean_world(orphan_grace=0.0) as world:
        tags: dict[str, str] = world.page.tags
        substrate: Any = world.running.substrate
        lost, kept = await world.idle(), await world.idle()
        operations = [tag for tag in tags.values() if tag.startswith("bfop:")]
        foreign = "bfop:abcdefghij-1"
        tags[foreign] = foreign
        world.page.droplets.happen(lost.host.ref, "terminate")

        async def listed() -> bool:
            return not any(row.ref == lost.host.ref for row in world.page.present())

        await eventually(listed, what="the Droplet to be gone")
        # The start has read the list, which is read again in an hour.
        assert await substrate.leftovers() == []
        substrate._tags_due_monotonic_s = 0.0
        (litter,) = await substrate.leftovers()
        assert litter.ref in operations
        await substrate.discard(litter)
        assert litter.ref not in tags.values()
        assert {foreign, *operations} - {litter.ref} <= set(tags.values())
        assert await substrate.leftovers() == []
        assert (await world.shard.get(kept.id)).state == int(State.IDLE)


async def test_two_labels_in_one_account_never_touch_each_other() -> None:
    async with digitalocean_world(provider="one") as first:
        mine = await first.idle()
        async with digitalocean_world(provider="two") as second:
            substrate: Any = second.running.substrate
            mine_too: Any = first.running.substrate
            other, substrate._api = substrate._api, mine_too._api
            await second.running.reconcile()
            assert [m for m in await second.shard.machines() if m.HasField("host")] == []
            substrate._api = other
        assert [host.ref for host in first.hosts()] == [mine.host.ref]


async def test_a_list_of_many_pages_is_whole_or_an_error() -> None:
    async with digitalocean_world() as world:
        host = await world.idle()
        (row,) = world.hosts()
        tags = {tag: "" for tag in row.tags if not tag.startswith("bfmid:")}
        for number in range(450):
            world.page.droplets.create(str(500_000_000 + number), row.fields, tags)
        substrate: Any = world.running.substrate
        assert len(await substrate.list_managed()) == 451
        gone = iter(range(450))
        read = substrate._api.droplets

        async def shrinking(tag: str, page: int) -> Any:
            answer = await read(tag, page)
            world.page.droplets.vanish(str(500_000_000 + next(gone)))
            return answer

        substrate._api.droplets = shrinking
        work = asyncio.ensure_future(
            substrate._pages("ListDroplets", lambda p: shrinking(_LABEL, p))
        )
        with pytest.raises(Exception, match="became shorter 3 times"):
            await work
        assert host.host.ref


_LABEL = "bfprov:digitalocean-nyc3"


async def test_check_names_every_scope_that_is_missing() -> None:
    async with digitalocean_world() as world:
        substrate: Any = world.running.substrate
        assert await substrate.missing_permissions() == []
        world.page.refused_scopes = {"droplet:create", "droplet:delete", "tag:create"}
        missing = await substrate.missing_permissions()
        assert [line.split(":", 1)[0] for line in missing] == [
            "the token lacks the scope droplet"
        ] * 2 + ["the token lacks the scope tag"]
        assert world.ever() == 0


async def test_a_hook_that_fails_says_so_and_one_that_asks_for_it_is_run_again() -> None:
    async with digitalocean_world() as world:
        first, second = await world.idle(), await world.idle()
        levers = world.page.guests.levers
        levers.set(Lever(first.host.ref, "configure", exit_code=3, stderr="no route"))
        levers.set(Lever(second.host.ref, "configure", exit_code=75, times=1))
        for machine in (first, second):
            await world.shard.configure(machine.id)
        failed = await world.shard.until(first.id, State.FAILED)
        assert failed.last_error.startswith(
            "HookFailed: configure ended with exit code 1: no route"
        )
        await world.shard.until(second.id, State.CONFIGURED)


async def test_a_hundred_creates_share_their_looks() -> None:
    async with digitalocean_world(seed_count=100) as world:
        machines = await world.slots()
        await asyncio.gather(*(world.shard.create(machine) for machine in machines))
        for machine in machines:
            await world.shard.until(machine, State.IDLE)
        counts = world.page.cloud.counts
        assert (len(machines), counts["CreateDroplet"], world.ever()) == (100, 100, 100)
        # One look-up by the tag of each operation, and the shared ones.
        assert counts["ListDroplets"] + counts["GetDroplet"] <= 200
