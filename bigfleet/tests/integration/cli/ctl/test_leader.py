"""Following the leader: at most three hops, other addresses where unled is named."""

import json
from contextlib import ExitStack

from ctlfleet import CannedCoordinator, ctl, deaf, entry, serving
from ctlworld import World


def test_a_follower_names_the_leader_and_is_followed(fleet: World) -> None:
    follower = CannedCoordinator().follows(fleet.at[1])
    with serving(follower) as address:
        result = ctl("--coordinator", address, "assign-domain", "zone=a", "s-1")
    assert result.exit_code == 0, result.output
    assert follower.methods() == ["AssignDomain"]
    assert fleet.coordinator.methods() == ["AssignDomain"]


def test_the_leader_is_asked_first_from_then_on(fleet: World) -> None:
    follower = CannedCoordinator().follows(fleet.at[1])
    with serving(follower) as address:
        assert ctl("--coordinator", address, "forget-cluster", "old", "--yes").exit_code == 0
    assert follower.methods() == ["ListClusters"]
    assert fleet.coordinator.methods() == ["ListClusters", "ListShards"]


def test_three_hops_are_made_and_not_a_fourth(fleet: World) -> None:
    with ExitStack() as stack:
        chain = [CannedCoordinator() for _ in range(4)]
        at = [stack.enter_context(serving(one)) for one in chain]
        for one, following in zip(chain, [*at[1:], fleet.at[1]], strict=True):
            one.follows(following)
        far = ctl("--coordinator", at[0], "list-shards")
        assert far.exit_code == 1
        assert far.stderr.count("\n") == 1
        assert "no coordinator leads" in far.stderr
        assert "try again" in far.stderr
        assert fleet.coordinator.methods() == []
        assert ctl("--coordinator", at[1], "list-shards").exit_code == 0


def test_two_that_name_each_other_are_not_asked_for_ever() -> None:
    one, two = CannedCoordinator(), CannedCoordinator()
    with serving(one) as first, serving(two) as second:
        one.follows(second)
        two.follows(first)
        result = ctl("--coordinator", first, "list-shards")
    assert result.exit_code == 1
    assert (one.methods(), two.methods()) == (["ListShards"], ["ListShards"])


def test_where_no_leader_is_named_the_other_addresses_are_tried(fleet: World) -> None:
    follower = CannedCoordinator().follows()
    with serving(follower) as address, deaf() as gone:
        words = ["--coordinator", gone, "--coordinator", address, *fleet.at]
        result = ctl(*words, "list-shards")
        assert result.exit_code == 0, result.output
        unled = ctl("--coordinator", gone, "--coordinator", address, "list-shards")
    assert unled.exit_code == 1
    assert f"the coordinators that answer do not lead ({address})" in unled.stderr
    assert f"others do not answer ({gone}: no process listens there)" in unled.stderr


def test_the_status_says_who_leads_follows_and_is_away(fleet: World) -> None:
    follower = CannedCoordinator().follows(fleet.at[1])
    with serving(follower) as address, deaf() as gone:
        words = ["--coordinator", address, "--coordinator", gone]
        document = json.loads(ctl(*words, "status", "-o", "json").stdout)
        assert ctl(*words, "status").stdout.startswith(f"Coordinator  {fleet.at[1]} leads; ")
    roles = {one["address"]: one["role"] for one in document["coordinators"]}
    assert document["leader"] == fleet.at[1]
    assert roles == {fleet.at[1]: "leads", address: "follows", gone: "silent"}
    assert any(f"coordinator {gone} does not answer" in p["what"] for p in document["problems"])


def test_coordinators_are_taken_from_the_environment(fleet: World) -> None:
    follower = CannedCoordinator().follows()
    fleet.coordinator.shards = [entry("s-7", "")]
    with serving(follower) as address:
        env = {"BIGFLEETCTL_COORDINATOR": f"{address} {fleet.at[1]}"}
        assert "s-7" in ctl("list-shards", env=env).stdout
        env = {"BIGFLEETCTL_COORDINATOR": f"{address},{fleet.at[1]}"}
        assert "s-7" in ctl("list-shards", env=env).stdout
