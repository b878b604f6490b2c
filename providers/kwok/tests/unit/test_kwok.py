"""What the provider declares, what it reads from bootstrap data, and what its nodes look like."""

from pathlib import Path
from typing import Any

import pytest

from bigfleet_provider_kwok.errors import ApiError, classify
from bigfleet_provider_kwok.join import Join, parse_taint, read_join
from bigfleet_provider_kwok.nodes import eviction_grace, have_to_leave, is_ready, node_of
from bigfleet_provider_kwok.servers import Place, Servers
from bigfleet_provider_kwok.shapes import Shapes
from bigfleet_provider_kwok.spec import SPEC, TYPES
from bigfleet_providerkit import CapacityType, Host, InvalidRequest, OptionError
from bigfleet_providerkit.machines.record import Shape
from bigfleet_providerkit.options.help import option_table
from bigfleet_providerkit.options.settings import settings_from
from bigfleet_providerkit.process.prepare import make_catalogue, read_all_offerings

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "providers" / "kwok.md"


def a_shape(**changes: Any) -> Shape:
    values: dict[str, Any] = {
        "instance_type": "kwok-4x16",
        "zone": "kwok-zone-a",
        "capacity_type": CapacityType.SPOT,
        "price": 0.06,
        "probability": 0.05,
        "resources": {"cpu": "4", "memory": "16Gi"},
        "allocatable": {"cpu": "3900m", "memory": "15Gi", "pods": "58"},
        "labels": {
            "kubernetes.io/arch": "arm64",
            "topology.kubernetes.io/region": "local",
        },
    }
    return Shape(**{**values, **changes})


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (401, "Unauthorized"),
        (403, "Unauthorized"),
        (404, "HostLost"),
        (409, "Unavailable"),
        (422, "InvalidRequest"),
        (429, "Throttled"),
        (500, "Unavailable"),
        (0, "Unavailable"),
    ],
)
def test_errors_become_classes(status: int, word: str) -> None:
    known = classify(ApiError(status, "said"))
    assert known is not None
    assert known.word == word


def test_an_unknown_error_is_left_to_the_kit() -> None:
    assert classify(KeyError("x")) is None


def test_bootstrap_data_names_a_kubeconfig_or_a_server() -> None:
    assert read_join(b"kind: KwokJoin\nkubeconfig: prod\n").kubeconfig == "prod"
    inline = read_join(b"kind: KwokJoin\nserver: https://h:6443/\ntoken: t\n")
    assert (inline.server, inline.token) == ("https://h:6443", "t")
    more = read_join(b"{kind: KwokJoin, labels: {a: 1}, taints: ['x=y:NoExecute']}")
    assert (dict(more.labels), more.taints) == ({"a": "1"}, ("x=y:NoExecute",))


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"\xff\xfe", "not YAML"),
        (b"a: [", "not YAML"),
        (b"#!/bin/sh\nexit 0\n", "no KwokJoin document"),
        (b"kind: KwokJoin\nserver: h:6443\n", "not an address"),
        (b"kind: KwokJoin\nserver: https://h\nkubeconfig: x\n", "give one of them"),
        (b"kind: KwokJoin\npassword: hunter2\n", "no field password"),
        (b"kind: KwokJoin\ntoken: [secret]\n", "token in the bootstrap data is a text"),
        (b"kind: KwokJoin\nlabels: [a]\n", "map of texts"),
        (b"kind: KwokJoin\ntaints: x\n", "list of key=value:Effect"),
        (b"kind: KwokJoin\ntaints: ['a=b:Never']\n", "not a taint"),
    ],
)
def test_bad_bootstrap_data_is_refused_without_repeating_it(blob: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason) as refused:
        read_join(blob)
    assert "hunter2" not in str(refused.value)


def test_a_token_is_never_shown() -> None:
    assert "s3cret" not in repr(Join(server="https://h", token="s3cret"))


def test_taints_are_read_as_the_api_has_them() -> None:
    assert parse_taint("a=b:NoSchedule") == {"key": "a", "value": "b", "effect": "NoSchedule"}
    assert parse_taint("a:NoExecute") == {"key": "a", "effect": "NoExecute"}


def test_a_node_shows_what_the_shard_was_told() -> None:
    host = Host("i-op1", "kwok-local/Spot/kwok-4x16/kwok-zone-a/000")
    join = Join(labels={"team": "ml"}, taints=("team=a:NoSchedule",))
    node = node_of(host, "kwok-local", a_shape(), join, ("team=a:NoSchedule", "x:NoExecute"))
    labels = node["metadata"]["labels"]
    assert node["metadata"]["name"] == "i-op1"
    assert labels["node.kubernetes.io/instance-type"] == "kwok-4x16"
    assert labels["topology.kubernetes.io/zone"] == "kwok-zone-a"
    assert labels["bigfleet.lucy.sh/capacity-type"] == "spot"
    assert (labels["kubernetes.io/arch"], labels["team"]) == ("arm64", "ml")
    assert "bigfleet.lucy.sh/taints" not in labels
    assert node["metadata"]["annotations"]["kwok.x-k8s.io/node"] == "fake"
    assert node["spec"]["providerID"].rpartition("/")[2] == host.ref
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["team", "x"]
    assert node["status"]["allocatable"] == {"cpu": "3900m", "memory": "15Gi", "pods": "58"}


def test_only_pods_that_would_be_missed_have_to_leave() -> None:
    def pod(name: str, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
        return {"metadata": {"name": name, **metadata}, "status": {"phase": phase}}

    pods = [
        pod("plain"),
        pod("daemon", ownerReferences=[{"kind": "DaemonSet"}]),
        pod("mirror", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("done", phase="Succeeded"),
    ]
    assert [one["metadata"]["name"] for one in have_to_leave(pods)] == ["plain"]


def test_a_drain_shortens_a_pods_grace_and_never_lengthens_it() -> None:
    assert eviction_grace({"spec": {"terminationGracePeriodSeconds": 60}}, 10) == 10
    assert eviction_grace({"spec": {"terminationGracePeriodSeconds": 5}}, 10) is None


def test_a_node_without_conditions_is_not_ready() -> None:
    assert not is_ready({})
    assert is_ready({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})


def test_the_place_is_one_for_all_or_the_datas_or_a_kubeconfig_of_the_clusters_name() -> None:
    inline = Join(server="https://h", ca="Y2E=", token="t")
    assert Servers(None, "http://one/").place(inline, "c") == Place(server="http://one")
    assert Servers(None, None).place(inline, "c") == Place("", "https://h", "Y2E=", "t")
    assert Servers(None, None).place(Join(), "c") == Place(kubeconfig="c")


@pytest.mark.parametrize("name", ["missing", "../secret", ".hidden"])
async def test_a_kubeconfig_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="kubeconfig"):
        await Servers(tmp_path, None).of(Place(kubeconfig=name))
    with pytest.raises(InvalidRequest, match="--cluster-kubeconfigs"):
        await Servers(None, None).of(Place(kubeconfig=name))


async def test_a_broken_kubeconfig_or_ca_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("clusters: []")
    with pytest.raises(InvalidRequest, match="names no server"):
        await Servers(tmp_path, None).of(Place(kubeconfig="broken"))
    with pytest.raises(InvalidRequest, match="CA of https://h"):
        await Servers(None, None).of(Place(server="https://h", ca="not base64!"))


def test_shapes_are_read_again_for_a_machine_that_is_not_known() -> None:
    readings = iter([{}, {"m": a_shape()}])
    shapes = Shapes(lambda: next(readings))
    assert shapes.of(Host("i-1", "m")).instance_type == "kwok-4x16"
    unknown = Shapes(dict)
    with pytest.raises(InvalidRequest, match="is unknown; is it offered"):
        unknown.of(Host("i-1", "m"))


def test_the_default_mix_has_both_kinds_of_capacity_with_prices_and_room_for_pods() -> None:
    options = SPEC.options(seed_count=28)
    offerings = read_all_offerings(SPEC, options)
    catalogue = make_catalogue(
        SPEC, options, settings_from(SPEC, options, offerings, fake=True), offerings
    )
    shapes = catalogue.shapes()
    assert len(shapes) == 28
    assert {shape.capacity_type for shape in shapes.values()} == {
        CapacityType.ON_DEMAND, CapacityType.SPOT,
    }  # fmt: skip
    assert len({shape.instance_type for shape in shapes.values()}) == 3
    for shape in shapes.values():
        on_demand = TYPES[shape.instance_type][2]
        spot = shape.capacity_type is CapacityType.SPOT
        assert shape.price == pytest.approx(on_demand * (0.3 if spot else 1.0))
        assert shape.allocatable["pods"] == "110"


async def test_a_folder_of_kubeconfigs_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is not a folder"):
        await SPEC.credentials(SPEC.options(cluster_kubeconfigs=str(tmp_path / "no")))


def test_the_page_agrees_with_the_declarations() -> None:
    page = PAGE.read_text("utf-8")
    for row in option_table(
        SPEC.options, {"slow_ms", "endpoint_url", "site"}.__contains__
    ).splitlines()[2:]:
        assert row in page
    for call in SPEC.call_names:
        assert f"`{call}`" in page
    for name, (_, _, price) in TYPES.items():
        assert f"| {name} " in page
        assert f"{price:.2f}" in page
