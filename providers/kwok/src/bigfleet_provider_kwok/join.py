"""The bootstrap data of a kwok host: which API server it joins, and as what.

    kind: KwokJoin
    kubeconfig: prod-eu                 # a file of --cluster-kubeconfigs; absent: the cluster's id

or, where the provider has no such file, address and credentials themselves:

    kind: KwokJoin
    server: https://10.0.0.1:6443
    certificateAuthorityData: LS0t...   # base64, as in a kubeconfig
    token: eyJh...

and in both forms, where nodes differ, `labels` (a map) and `taints` (list of key=value:Effect).
The token is what a kubelet's credentials are to a real host: it has to last as long as the node.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from bigfleet_providerkit import InvalidRequest

KIND = "KwokJoin"
KNOWN = {
    "kind", "kubeconfig", "server", "certificateAuthorityData", "token", "labels", "taints",
}  # fmt: skip
TAINT = re.compile(r"(?P<key>[^=:\s]+)(=(?P<value>[^:\s]*))?:(?P<effect>[A-Za-z]+)")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Join:
    """What a host was told when it was configured."""

    kubeconfig: str = ""
    server: str = ""
    ca: str = ""
    token: str = field(default="", repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[str, ...] = ()


def read_join(blob: bytes) -> Join:
    """Read bootstrap data; what cannot be used is refused with its reason, never with its text."""
    try:
        loaded = yaml.safe_load(blob.decode())
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidRequest(f"the bootstrap data is not YAML: {type(error).__name__}") from None
    if not isinstance(loaded, dict) or loaded.get("kind") != KIND:
        raise InvalidRequest(
            f"the bootstrap data is no {KIND} document: use a template that begins with "
            f"`kind: {KIND}`"
        )
    unknown = sorted(str(key) for key in loaded if key not in KNOWN)
    if unknown:
        raise InvalidRequest(f"the bootstrap data has no field {', '.join(unknown)}")
    join = Join(
        kubeconfig=_text(loaded, "kubeconfig"),
        server=_text(loaded, "server").rstrip("/"),
        ca=_text(loaded, "certificateAuthorityData"),
        token=_text(loaded, "token"),
        labels=_labels(loaded.get("labels")),
        taints=_taints(loaded.get("taints")),
    )
    if join.kubeconfig and join.server:
        raise InvalidRequest("the bootstrap data names a kubeconfig and a server; give one of them")
    if join.server and not join.server.startswith(("https://", "http://")):
        raise InvalidRequest(f"server {join.server!r} is not an address; write https://host:port")
    return join


def parse_taint(text: str) -> dict[str, str]:
    """`key=value:Effect` as the API has it."""
    found = TAINT.fullmatch(text)
    if found is None or found["effect"] not in EFFECTS:
        raise InvalidRequest(
            f"{text!r} is not a taint; write key=value:Effect with one of {', '.join(EFFECTS)}"
        )
    taint = {"key": found["key"], "effect": found["effect"]}
    return {**taint, "value": found["value"]} if found["value"] else taint


def _text(loaded: Mapping[object, object], name: str) -> str:
    value = loaded.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} in the bootstrap data is a text")
    return value


def _labels(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidRequest("labels in the bootstrap data are a map of texts")
    return {str(key): str(text) for key, text in value.items()}


def _taints(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidRequest("taints in the bootstrap data are a list of key=value:Effect")
    taints = tuple(str(text) for text in value)
    for text in taints:
        parse_taint(text)
    return taints
