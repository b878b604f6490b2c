"""Names and tags within a cloud's limits."""

import dataclasses

import pytest

from bigfleet_providerkit import Binding, CapacityType, Limits, OptionError
from bigfleet_providerkit.codec.flat import FlatTags
from bigfleet_providerkit.codec.tags import TagCodec, hashed, host_name
from bigfleet_providerkit.errors import OptionError as SameError
from bigfleet_providerkit.store.memory import MemoryStore
from kitworld import SPEC, begin

BINDING = Binding("p/Spot/t/z/003", "abcdefghij-1", CapacityType.SPOT, "cluster a", "pin")


def test_a_tag_set_says_who_owns_what() -> None:
    codec = TagCodec("p")
    tags = codec.tags(BINDING)
    assert tags["bigfleet:machine-id"] == "p/Spot/t/z/003"
    assert tags["bigfleet:capacity"] == "spot"
    assert codec.ours(tags)
    assert not TagCodec("other").ours(tags)
    assert codec.capacity_type(tags) is CapacityType.SPOT
    assert codec.read(tags, "cluster") == "cluster a"


def test_a_value_with_other_characters_goes_as_base32_and_comes_back() -> None:
    codec = TagCodec("p", alphabet="[a-z0-9-]*", separator="-")
    text = codec.encode("p/Spot/t/z/003")
    assert text.startswith("b-")
    assert codec.decode(text) == "p/Spot/t/z/003"
    assert codec.decode(codec.encode("b-looks-encoded")) == "b-looks-encoded"


def test_a_value_too_long_goes_as_a_hash_and_is_known_again() -> None:
    codec = TagCodec("p", longest_value=63)
    machine = "p/OnDemand/" + "long-type" * 8 + "/zone/000"
    text = codec.encode(machine)
    assert text == hashed(machine)
    assert len(text) == 41
    assert codec.decode(text) is None
    codec.know([machine, "short"])
    assert codec.decode(text) == machine


def test_limits_are_checked_for_the_longest_id() -> None:
    TagCodec("p", longest_value=63).check("x" * 500)
    with pytest.raises(OptionError, match="does not fit a tag of 20"):
        TagCodec("p", longest_value=20).check("x" * 500)
    with pytest.raises(SameError, match="tag keys"):
        TagCodec("p", longest_key=10).check("x")


def test_hosts_are_named_after_their_operation() -> None:
    assert host_name("abcdefghij-1a") == "bf-abcdefghij-1a"


async def test_a_cluster_whose_tag_is_a_hash_is_recognised() -> None:
    cluster = "prod/" + "x" * 60
    narrow = dataclasses.replace(SPEC, limits=Limits(tag_value=63, blob=1024))
    store = MemoryStore()
    w = await begin(narrow, store=store)
    codec = w.running.backend.steps._codec
    assert codec.encode(cluster).startswith("h")
    await w.configured(cluster)
    assert codec.decode(codec.encode(cluster)) == cluster
    after = await w.restart()
    again = after.running.backend.steps._codec
    assert again.decode(again.encode(cluster)) == cluster
    await after.running.stop()


def test_tags_of_others_stay_and_ours_are_complete() -> None:
    codec = TagCodec("p")
    launched = dataclasses.replace(BINDING, launch="abc", tags={"team": "ml"})
    present = {**codec.tags(launched), "owner": "finance", "bigfleet:cluster": "old"}
    assert present["bigfleet:tags"] == "1"
    merged = codec.merged(present, dataclasses.replace(BINDING, cluster=None, tags={"team": "x"}))
    assert merged["owner"] == "finance"
    assert merged["team"] == "x"
    assert merged["bigfleet:launch"] == "abc"
    assert "bigfleet:cluster" not in merged


@pytest.mark.parametrize(
    ("tags", "complaint"),
    [
        ({"bigfleet:x": "1"}, "BigFleet's own tags"),
        ({"k" * 65: "v"}, "keys have 1 to 64 characters"),
        ({"k": "v" * 64}, "values at most 63"),
        ({"k": "a b"}, "takes only"),
    ],
)
def test_tags_that_a_cloud_does_not_take_are_refused(tags: dict[str, str], complaint: str) -> None:
    codec = TagCodec("p", longest_key=64, longest_value=63, alphabet="[a-z0-9-]*")
    with pytest.raises(OptionError, match=complaint):
        codec.check_given(tags, "--tags")
    codec.check_given({"team": "ml"}, "--tags")


def test_tags_without_values_say_the_same_and_are_read_back() -> None:
    codec = TagCodec("p", longest_value=180, alphabet="[a-z0-9:_-]*")
    flat = FlatTags(codec)
    tags = codec.tags(dataclasses.replace(BINDING, tags={"team": "ml"}))
    names = flat.names(tags)
    assert {"bigfleet-managed", "bfprov:p", "bfop:abcdefghij-1", "bfcap:spot", "team:ml"} < {*names}
    assert flat.name("machine-id", BINDING.machine_id) in names
    assert flat.read(names) == tags
    assert codec.ours(flat.read(names))
    assert codec.read(flat.read(names), "cluster") == "cluster a"
    assert flat.read(["alone", "team:ml"]) == {"alone": "", "team": "ml"}


def test_no_two_ids_have_one_tag_where_a_cloud_ignores_the_case() -> None:
    flat = FlatTags(TagCodec("p", longest_value=180, alphabet="[a-z0-9:_-]*"))
    ids = ["p/OnDemand/M/z/000", "p/OnDemand/m/z/000", "prod", "Prod", "PROD"]
    assert len({flat.name("cluster", value).lower() for value in ids}) == len(ids)


def test_a_host_is_read_from_its_tags_and_from_what_the_cloud_says() -> None:
    codec = TagCodec("p", longest_value=40, alphabet="[a-z0-9-]*")
    codec.know([BINDING.machine_id])
    host = codec.host(codec.tags(BINDING), "i-1", zone="z", created=3.0)
    assert (host.ref, host.zone, host.created) == ("i-1", "z", 3.0)
    assert (host.machine_id, host.operation_id) == (BINDING.machine_id, BINDING.operation_id)
    assert (host.capacity_type, host.cluster, host.pin) == (CapacityType.SPOT, "cluster a", "pin")
    bare = codec.host({}, "i-2")
    assert (bare.machine_id, bare.operation_id, bare.cluster, bare.pin) == ("", "", None, "")
