"""The values.schema.json of every chart.

The shape comes from values.yaml: what is a text there is a text, what has keys has exactly these
keys. What a default cannot tell stands below: choices, ports, values that may be two things. The
names under `config` are the component's own settings, so that helm refuses a wrong one before
anything is installed.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]
DIALECT = "http://json-schema.org/draft-07/schema#"
# Maps whose keys are the user's.
OPEN = {
    "affinity", "annotations", "bootstrapValues", "labels", "nodeSelector", "podAnnotations",
    "priorityClassDefaults", "resources",
}  # fmt: skip
PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
HOST = r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/]+)"
ADDRESS = rf"^$|^{HOST}:[0-9]{{1,5}}$"
PROVIDER_ADDRESS = rf"^([^=\s]+=)?{HOST}:[0-9]{{1,5}}(@\S+)?$"
SIZE: Schema = {"type": "string", "pattern": "^[0-9.]+([KMGTPE]i?)?$"}
LEVELS: Schema = {"enum": ["debug", "info", "warn", "error"]}
FORMATS: Schema = {"enum": ["json", "text"]}
SERVICE: Schema = {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]}
DEVICE_CLASS = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"
RESOURCE_NAME = r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$"
PENALTY: Schema = {"type": ["string", "number"]}
COMMON: dict[str, Schema] = {
    "logLevel": LEVELS,
    "logFormat": FORMATS,
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "replicas": {"type": "integer", "minimum": 1, "maximum": 5},
    "metrics.port": PORT,
}
SPECIAL: dict[str, dict[str, Schema]] = {
    "bigfleet": {
        "coordinator.replicas": {"enum": [1, 3]},
        "coordinator.bootstrap": {"type": ["boolean", "null"]},
        "coordinator.port": PORT,
        "coordinator.persistence.size": SIZE,
        "coordinator.etcd.persistence.size": SIZE,
        "coordinator.etcd.endpoints": {
            "type": "array",
            "items": {"type": "string", "pattern": ADDRESS},
        },
        "shard.replicas": {"type": "integer", "minimum": 1, "maximum": 200},
        "shard.port": PORT,
        "shard.persistence.size": SIZE,
        "shard.provider.addr": {
            "anyOf": [
                {"type": "string", "pattern": f"^$|{PROVIDER_ADDRESS}"},
                {
                    "type": "array",
                    "items": {"type": "string", "pattern": PROVIDER_ADDRESS},
                    "uniqueItems": True,
                },
            ]
        },
        "shard.service.type": SERVICE,
        "metrics.coordinatorPort": PORT,
        "metrics.shardPort": PORT,
    },
    "bigfleet-operator": {
        "clusterID": {"type": "string", "pattern": "^$|^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"},
        "shardAddress": {"type": "string", "pattern": ADDRESS},
    },
    "bigfleet-unschedulable-pod-controller": {
        "deviceClassMappings": {
            "type": "object",
            "propertyNames": {"pattern": DEVICE_CLASS},
            "additionalProperties": {"type": "string", "pattern": RESOURCE_NAME},
        },
        "priorityClassDefaults": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"interruptionPenalty": PENALTY, "reclamationPenalty": PENALTY},
            },
        },
    },
}
PROVIDER: dict[str, Schema] = {
    "replicaCount": {"type": "integer"},
    "service.type": SERVICE,
    "service.port": PORT,
    "bootstrap.service.type": SERVICE,
    "state.size": SIZE,
    "state.accessMode": {"enum": ["ReadWriteOnce", "ReadWriteOncePod"]},
    "networkPolicy.egressPorts": {"type": "array", "items": PORT},
    "files": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "secretName": {"type": "string", "minLength": 1},
                "mountPath": {"type": "string", "pattern": "^/"},
            },
            "required": ["secretName", "mountPath"],
            "additionalProperties": False,
        },
    },
}
# What the charts set themselves; config must not say it a second time.
SET_BY_CHART: dict[str, set[str]] = {
    "coordinator": {
        "id", "listen", "advertise-addr", "metrics-addr", "data-dir", "store", "store-tls-cert",
        "allow-plaintext", "allow-plaintext-pages",
        "store-tls-key", "store-tls-ca", "store-username", "store-password-file",
        "snapshot-export-dir", "tls-cert", "tls-key", "tls-ca", "log-format", "log-level",
    },
    "shard": {
        "shard-id", "listen", "advertise-addr", "metrics-addr", "data-dir", "provider-addr",
        "allow-plaintext", "allow-plaintext-pages",
        "coordinator-addr", "tls-cert", "tls-key", "tls-ca", "log-format", "log-level",
    },
    "operator": {
        "cluster-id", "shard-addr", "metrics-addr", "bootstrap-template", "bootstrap-values",
        "allow-plaintext-pages",
        "api-server", "api-server-ca", "allow-stub-bootstrap", "tls-cert", "tls-key", "tls-ca",
        "log-format", "log-level", "kubeconfig", "lease-name", "lease-namespace", "identity",
    },
    "pod-controller": {
        "metrics-addr", "adopt-foreign-nodes", "priority-class-defaults", "device-class-mappings",
        "log-format", "allow-plaintext-pages", "log-level", "kubeconfig", "lease-name",
        "lease-namespace", "identity",
    },
    "provider": {
        "addr", "metrics-addr", "state", "offerings", "base-user-data", "cluster-kubeconfigs",
        "allow-plaintext", "allow-plaintext-pages",
        "tls-cert", "tls-key", "tls-ca", "reflection", "bootstrap-addr", "bootstrap-tls-cert",
        "bootstrap-tls-key",
    },
}  # fmt: skip


def schema_text(chart: Path) -> str:
    """The schema of a chart, as its file holds it."""
    return json.dumps(schema_of(chart), indent=2) + "\n"


def schema_of(chart: Path) -> Schema:
    """The schema of a chart."""
    values = yaml.safe_load((chart / "values.yaml").read_text("utf-8"))
    is_provider = chart.name.startswith("bigfleet-provider-")
    root = shape_of("", values)
    special = {**COMMON, **(PROVIDER if is_provider else SPECIAL.get(chart.name, {}))}
    for path, replacement in special.items():
        put(root, path, replacement)
    for path, names in settings_in(chart.name).items():
        put(root, path, settings_schema(names))
    root["properties"]["global"] = {"type": "object"}
    if is_provider:
        root["properties"]["bigfleet-provider-lib"] = {"type": "object"}
    return {"$schema": DIALECT, "title": f"Values of {chart.name}", **root}


def shape_of(name: str, value: object) -> Schema:
    """What a default tells about a value."""
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case list():
            return {"type": "array"}
        case dict() if name in OPEN or not value:
            return {"type": "object"}
        case dict():
            properties = {key: shape_of(key, inner) for key, inner in value.items()}
            return {"type": "object", "additionalProperties": False, "properties": properties}
        case None:
            return {}
        case _:
            return {"type": "string"}


def put(root: Schema, path: str, replacement: Schema) -> None:
    """Replace the schema of one value; a value that the chart does not have is passed over."""
    *folders, last = path.split(".")
    place = root
    for folder in folders:
        if folder not in place.get("properties", {}):
            return
        place = place["properties"][folder]
    if last in place["properties"] or path == "replicaCount":
        place["properties"][last] = replacement


def settings_schema(names: Iterable[str]) -> Schema:
    """A map of settings with these names."""
    value: Schema = {"type": ["string", "number", "boolean", "array", "object"]}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": dict.fromkeys(sorted(names), value),
    }


def settings_in(chart: str) -> Mapping[str, set[str]]:
    """The paths of a chart under which a component's settings stand, with their names."""
    if chart == "bigfleet":
        return {f"{part}.config": free(part) for part in ("coordinator", "shard")}
    if chart == "bigfleet-operator":
        return {"config": free("operator")}
    if chart == "bigfleet-unschedulable-pod-controller":
        return {"config": free("pod-controller")}
    options = provider_options(chart.removeprefix("bigfleet-provider-"))
    return {"config": options - SET_BY_CHART["provider"]}


def free(component: str) -> set[str]:
    """The settings of a component that its chart leaves to the user."""
    return COMPONENTS[component]() - SET_BY_CHART[component]


def _coordinator() -> set[str]:
    from bigfleet.coordinator.server.settings import CoordinatorSettings

    return {flag.name[2:] for flag in CoordinatorSettings.flags()}


def _shard() -> set[str]:
    from bigfleet.shard.server.settings import ShardSettings

    return {flag.name[2:] for flag in ShardSettings.flags()}


def _operator() -> set[str]:
    from bigfleet.operator.settings import OperatorSettings

    return {flag.name[2:] for flag in OperatorSettings.flags()}


def _pod_controller() -> set[str]:
    from bigfleet.podcontroller.settings import PodControllerSettings

    return {flag.name[2:] for flag in PodControllerSettings.flags()}


COMPONENTS: dict[str, Callable[[], set[str]]] = {
    "coordinator": _coordinator,
    "shard": _shard,
    "operator": _operator,
    "pod-controller": _pod_controller,
}


def provider_options(name: str) -> set[str]:
    """Every option of one of our providers."""
    from importlib import import_module

    from bigfleet_providerkit.options.model import described

    spec = import_module(f"bigfleet_provider_{name.replace('-', '_')}.spec").SPEC
    names: set[str] = set()
    for field, option in described(spec.options):
        names |= {field.replace("_", "-"), *option.aliases}
    return names
