"""The charts as helm renders them, and as a real API server takes them."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import charts
from bigfleet.cli.lazy_commands import COMMANDS
from bigfleet.coordinator.server.settings import CoordinatorSettings
from bigfleet.observe.settings import ProcessSettings
from bigfleet.operator.settings import OperatorSettings
from bigfleet.podcontroller.settings import PodControllerSettings
from bigfleet.shard.server.settings import ShardSettings
from bigfleet_providerkit.options.parse import Names, from_environment, parse_flags
from kube.plane import ControlPlane, control_plane

Objects = list[dict[str, Any]]
EXAMPLES = [(name, path.stem) for name in charts.chart_names() for path in charts.examples(name)]
SETTINGS: dict[str, type[ProcessSettings]] = {
    "coordinator": CoordinatorSettings,
    "shard": ShardSettings,
    "operator": OperatorSettings,
    "pod-controller": PodControllerSettings,
}
MONITORING = Path(__file__).parents[1] / "support" / "monitoring-crds.yaml"
POD = {"$(POD_NAME)": "fleet-bigfleet-shard-0", "$(POD_NAMESPACE)": charts.NAMESPACE}


@pytest.fixture(scope="module")
def helm() -> charts.Helm:
    return charts.Helm.built()


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as started:
        started.kubectl("create", "namespace", charts.NAMESPACE)
        started.install(MONITORING)
        yield started


@cache
def rendered(helm: charts.Helm, name: str, example: str, *more: str) -> Objects:
    """What a chart gives with an example; every test looks at the same objects."""
    values = charts.CHARTS / name / "ci" / f"{example}.yaml"
    text = helm.template(name, "--values", str(values), *more)
    return [item for item in yaml.safe_load_all(text) if item]


def of_kind(objects: Objects, *kinds: str) -> Objects:
    return [item for item in objects if item["kind"] in kinds]


def pods_of(objects: Objects) -> list[dict[str, Any]]:
    workloads = of_kind(objects, "Deployment", "StatefulSet")
    return [item["spec"]["template"]["spec"] for item in workloads]


def filled(words: list[str]) -> list[str]:
    for name, value in POD.items():
        words = [word.replace(name, value) for word in words]
    return words


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_helm_finds_nothing_to_complain_about(helm: charts.Helm, name: str, example: str) -> None:
    helm.lint(name, "--values", str(charts.CHARTS / name / "ci" / f"{example}.yaml"))
    objects = rendered(helm, name, example)
    names = [(item["kind"], item["metadata"]["name"]) for item in objects]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_arguments_are_what_the_real_command_understands(
    helm: charts.Helm, name: str, example: str
) -> None:
    for pod in pods_of(rendered(helm, name, example)):
        (container,) = pod["containers"]
        arguments = filled(container["args"])
        if container["name"] == "provider":
            provider = name.removeprefix("bigfleet-provider-").replace("-", "_")
            spec = import_module(f"bigfleet_provider_{provider}.spec").SPEC
            names = Names(spec.options)
            given, words = parse_flags(names, arguments)
            assert words == []
            variables = {v["name"]: v["value"] for v in container["env"] if "value" in v}
            spec.options.model_validate({**from_environment(names, variables), **given})
        elif container["name"] in SETTINGS:
            command = COMMANDS[arguments[0]].make(arguments[0])
            context = command.make_context(arguments[0], arguments[1:])
            told = {key: value for key, value in context.params.items() if key != "config"}
            SETTINGS[arguments[0]].load(told)
        else:
            assert container["name"] == "etcd"


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_every_container_is_confined_and_probed(helm: charts.Helm, name: str, example: str) -> None:
    for pod in pods_of(rendered(helm, name, example)):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"] + pod.get("initContainers", []):
            confined = container["securityContext"]
            assert confined["readOnlyRootFilesystem"] is True
            assert confined["allowPrivilegeEscalation"] is False
            assert confined["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"]
        for container in pod["containers"]:
            ports = {port["name"] for port in container["ports"]}
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert container[probe]["httpGet"]["port"] in ports
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            known = {volume["name"] for volume in pod.get("volumes", [])} | {"data"}
            assert mounted <= known


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_a_real_api_server_takes_every_object(
    helm: charts.Helm, plane: ControlPlane, name: str, example: str
) -> None:
    objects = rendered(helm, name, example)
    if name == "bigfleet-operator" and example == "default":
        definitions = of_kind(objects, "CustomResourceDefinition")
        assert len(definitions) == 3
    told = plane.kubectl(
        "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-",
        stdin=yaml.safe_dump_all(objects),
    )  # fmt: skip
    assert told.count("serverside-applied") == len(objects)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("bigfleet-operator", ["--set", "shardAddress=s:7780"], "clusterID is required"),
        ("bigfleet-operator", ["--set", "clusterID=c"], "shardAddress is required"),
        (
            "bigfleet-operator",
            ["--set", "clusterID=c,shardAddress=s:7780"],
            "bootstrapTemplate is required",
        ),
        (
            "bigfleet-operator",
            ["--set", "clusterID=c,shardAddress=s:7780,bootstrapTemplate=kubadm"],
            "is not kubeadm, k3s or eks",
        ),
        ("bigfleet", ["--set", "coordinator.replicas=2"], "replicas"),
        ("bigfleet", ["--set", "metrics.shardPort=7780"], "different ports"),
        ("bigfleet", ["--set", "coordinator.etcd.auth.username=x"], "username and secretName"),
        ("bigfleet", ["--set", "fullnameOverride=my.fleet"], "cannot be part of a Service's name"),
        ("bigfleet", ["--set", "shard.config.no-such=1"], "no-such"),
        (
            "bigfleet",
            ["--is-upgrade", "--set", "coordinator.bootstrap=true"],
            "is for the first install",
        ),
        ("bigfleet-provider-kwok", ["--set", "replicaCount=2"], "replicaCount must be 1"),
        ("bigfleet-provider-kwok", ["--set", "state.enabled=false"], "iUnderstandStateIsLost"),
        ("bigfleet-provider-kwok", ["--set", "tls.enabled=true"], "tls.secretName is required"),
        ("bigfleet-provider-kwok", ["--set", "bootstrap.enabled=true"], "bootstrap.tls.secretName"),
        ("bigfleet-provider-kwok", ["--set", "fullnameOverride=1a"], "cannot be a Service's name"),
    ],
)
def test_what_cannot_be_installed_says_why(
    helm: charts.Helm, name: str, arguments: list[str], words: str
) -> None:
    with pytest.raises(charts.ChartError, match=words):
        helm.template(name, *arguments)


@pytest.mark.parametrize(
    ("name", "path", "flag"),
    [
        ("bigfleet", "shard.config.max-dollars-per-hour", "--max-dollars-per-hour=5000000"),
        ("bigfleet-operator", "config.burst", "--burst=5000000"),
        ("bigfleet-unschedulable-pod-controller", "config.burst", "--burst=5000000"),
        ("bigfleet-provider-kwok", "config.seed-count", "--seed-count=5000000"),
    ],
)
def test_large_numbers_stay_numbers(helm: charts.Helm, name: str, path: str, flag: str) -> None:
    # As a file of values has it: helm reads its numbers as floats.
    objects = rendered(helm, name, "default", "--set-json", f"{path}=5000000.0")
    assert any(flag in pod["containers"][0]["args"] for pod in pods_of(objects))


def test_files_of_a_secret_are_mounted_where_the_provider_reads_them(helm: charts.Helm) -> None:
    given = '[{"secretName": "ssh", "mountPath": "/etc/bigfleet/ssh"}]'
    objects = rendered(helm, "bigfleet-provider-kwok", "default", "--set-json", f"files={given}")
    (pod,) = pods_of(objects)
    (volume,) = [one for one in pod["volumes"] if one.get("secret", {}).get("secretName") == "ssh"]
    mounts = {one["name"]: one for one in pod["containers"][0]["volumeMounts"]}
    assert mounts[volume["name"]]["mountPath"] == "/etc/bigfleet/ssh"
    assert mounts[volume["name"]]["readOnly"] is True


def test_no_ports_to_leave_by_are_none_and_not_all(helm: charts.Helm) -> None:
    objects = rendered(
        helm, "bigfleet-provider-kwok", "default", "--set-json", "networkPolicy.egressPorts=[]"
    )
    (policy,) = of_kind(objects, "NetworkPolicy")
    assert [[one["port"] for one in rule["ports"]] for rule in policy["spec"]["egress"]] == [
        [53, 53]
    ]


def test_a_store_is_made_at_the_first_install_only(helm: charts.Helm) -> None:
    def guarded(*arguments: str) -> bool:
        objects = rendered(helm, "bigfleet", "default", *arguments)
        (coordinator,) = [
            item for item in of_kind(objects, "StatefulSet") if "coordinator" in str(item)[:200]
        ]
        return "initContainers" in coordinator["spec"]["template"]["spec"]

    assert not guarded()
    assert guarded("--is-upgrade")
    assert guarded("--set", "coordinator.bootstrap=false")


def test_a_member_of_etcd_begins_a_history_at_the_first_install_only(helm: charts.Helm) -> None:
    def state(*arguments: str) -> str:
        values = ("--set", "coordinator.replicas=3", *arguments)
        text = helm.template("bigfleet", *values)
        return text.split("--initial-cluster-state=")[1].split()[0]

    assert state() == "new"
    assert state("--is-upgrade") == "existing"


def test_a_changed_offering_rolls_the_provider_out(helm: charts.Helm) -> None:
    def checksum(*arguments: str) -> str:
        (workload,) = of_kind(
            rendered(helm, "bigfleet-provider-template", "default", *arguments), "Deployment"
        )
        return str(workload["spec"]["template"]["metadata"]["annotations"]["checksum/config"])

    assert checksum() != checksum("--set", "offerings.content=[]")


def test_custom_resources_outlive_the_chart(helm: charts.Helm) -> None:
    objects = rendered(helm, "bigfleet-operator", "default")
    for definition in of_kind(objects, "CustomResourceDefinition"):
        assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
        source = charts.ROOT / "api" / "crd"
        group, _, plural = definition["metadata"]["name"].partition(".")
        original = yaml.safe_load((source / f"{plural}_{group}.yaml").read_text("utf-8"))
        assert definition["spec"] == original["spec"]
