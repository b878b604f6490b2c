"""The bootstrap template: read, parsed and checked at start, rendered once per machine.

It runs in a sandbox. A name that does not exist is an error at start, a value that is missing one
when it is rendered: a machine that would start with half a script is worse than none. Three
templates are ready: `kubeadm`, `k3s` and `eks` (nodeadm).

A template may use

    cluster_id       the cluster
    requirements     what the node is for: key, operator, values
    machine          id, type, zone, capacity_type, provider_id, labels, resources
    node_labels      the machine's labels that kubelet may give its node, and the machine's id
    api_server       where nodes reach the API server; ca_pem, ca_base64, ca_pem_sha256 and
                     ca_key_sha256 are the authority of its certificate
    values           what --bootstrap-values holds
    bootstrap_token(groups=...)   a token that ends in 15 minutes
    fail("words")    say that this machine cannot be served, and why
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jinja2 import StrictUndefined, meta
from jinja2 import TemplateError as JinjaError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bigfleet.model import CapacityType
from bigfleet.operator.errors import TemplateError, UnsatisfiableError
from bigfleet.wire.needs import requirement_from_proto
from bigfleet_api.v1alpha1 import shard_pb2 as pb

READY: Final = {
    "kubeadm": "kubeadm-join.sh.j2",
    "k3s": "k3s-agent.sh.j2",
    "eks": "eks.sh.j2",
}
"""Templates that ship, by name."""
LARGEST: Final = 1024 * 1024
MACHINE_ID: Final = "bigfleet.lucy.sh/machine-id"
_OWN_PREFIXES: Final = ("kubelet.kubernetes.io/", "node.kubernetes.io/")
_OWN_LABELS: Final = frozenset(
    {
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
"""Labels of Kubernetes' own domains that kubelet may set; others make it refuse to start."""
_CAPACITY_TYPES: Final[Mapping[int, str]] = {
    CapacityType.BARE_METAL: "BareMetal",
    CapacityType.RESERVED: "Reserved",
    CapacityType.ON_DEMAND: "OnDemand",
    CapacityType.SPOT: "Spot",
}
_FAULTS: Final = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""What a template may do wrong that the engine has no error of its own for."""
Mint = Callable[[str], Awaitable[str]]
"""Makes a token for a group of bootstrappers."""


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Where nodes reach the API server, and the authority of its certificate."""

    address: str = ""
    ca_pem: bytes = b""

    def names(self) -> dict[str, str]:
        """As a template sees it. Without a certificate the hashes are empty."""
        return {
            "api_server": self.address,
            "ca_pem": self.ca_pem.decode("ascii", "replace"),
            "ca_base64": base64.b64encode(self.ca_pem).decode(),
            "ca_pem_sha256": hashlib.sha256(self.ca_pem).hexdigest() if self.ca_pem else "",
            "ca_key_sha256": _key_hash(self.ca_pem),
        }


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What does not change from machine to machine."""

    cluster_id: str
    api_server: ApiServer = field(default_factory=ApiServer)
    values: Mapping[str, Any] = field(default_factory=dict)


class BootstrapTemplate:
    """One template, checked."""

    def __init__(self, text: str, name: str, around: Surroundings) -> None:
        self.name = name
        self._around = around
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, enable_async=True, keep_trailing_newline=True
        )
        names = {**_context(around, pb.BootstrapRequest()), **_helpers(_no_token)}
        try:
            unknown = meta.find_undeclared_variables(environment.parse(text)) - names.keys()
            self._template = environment.from_string(text)
        except JinjaError as error:
            line = getattr(error, "lineno", None)
            where = f"{name}, line {line}" if line else name
            raise TemplateError(f"bootstrap template {where} does not parse: {error}") from error
        unknown -= environment.globals.keys()
        if unknown:
            raise TemplateError(
                f"bootstrap template {name} uses {', '.join(sorted(unknown))}, which does not "
                f"exist: use {', '.join(sorted(names))}"
            )

    @classmethod
    def load(cls, which: str, around: Surroundings) -> BootstrapTemplate:
        """A ready template by its name, or a file."""
        ready = READY.get(which)
        if ready is not None:
            text = files("bigfleet.operator").joinpath("templates", ready).read_text("utf-8")
            return cls(text, which, around)
        try:
            return cls(Path(which).read_text("utf-8"), which, around)
        except (OSError, UnicodeDecodeError) as error:
            raise TemplateError(
                f"bootstrap template {which} cannot be read: {error}; give a file, or one of "
                f"{', '.join(READY)}"
            ) from error

    async def render(self, request: pb.BootstrapRequest, mint: Mint) -> bytes:
        """The data of one machine."""
        try:
            names = {**_context(self._around, request), **_helpers(mint)}
            text = await self._template.render_async(names)
        except JinjaError as error:
            raise TemplateError(
                f"bootstrap template {self.name} cannot be rendered: {error}"
            ) from error
        except _FAULTS as error:
            raise TemplateError(
                f"bootstrap template {self.name} cannot be rendered: {type(error).__name__}: "
                f"{error}"
            ) from error
        data = text.encode()
        if len(data) > LARGEST:
            raise TemplateError(
                f"bootstrap template {self.name} gives {len(data)} bytes, more than {LARGEST}"
            )
        return data


def kubelet_labels(labels: Mapping[str, str], machine_id: str) -> dict[str, str]:
    """Labels that kubelet may give its own node, sorted by key."""
    allowed = {key: value for key, value in labels.items() if _is_allowed(key)}
    if _is_label_value(machine_id):
        allowed[MACHINE_ID] = machine_id
    return dict(sorted(allowed.items()))


def _is_allowed(key: str) -> bool:
    domain = key.rpartition("/")[0]
    kubernetes = domain in ("kubernetes.io", "k8s.io") or domain.endswith(
        (".kubernetes.io", ".k8s.io")
    )
    return not kubernetes or key in _OWN_LABELS or key.startswith(_OWN_PREFIXES)


def _is_label_value(text: str) -> bool:
    plain = text.replace("-", "").replace("_", "").replace(".", "")
    return (
        0 < len(text) <= 63
        and plain.isascii()
        and plain.isalnum()
        and text[0].isalnum()
        and (text[-1].isalnum())
    )


def _context(around: Surroundings, request: pb.BootstrapRequest) -> dict[str, Any]:
    machine = request.machine
    labels = dict(machine.labels)
    return {
        "cluster_id": around.cluster_id,
        "requirements": [
            {"key": one.key, "operator": one.operator.value, "values": list(one.values)}
            for one in map(requirement_from_proto, request.requirements)
        ],
        "machine": {
            "id": machine.machine_id,
            "type": machine.instance_type,
            "zone": machine.zone,
            "capacity_type": _CAPACITY_TYPES.get(machine.capacity_type, ""),
            "provider_id": machine.provider_id,
            "labels": labels,
            "resources": dict(machine.resources.resources),
        },
        "node_labels": kubelet_labels(labels, machine.machine_id),
        "values": around.values,
        **around.api_server.names(),
    }


def _helpers(mint: Mint) -> dict[str, Any]:
    async def bootstrap_token(
        groups: str = "system:bootstrappers:kubeadm:default-node-token",
    ) -> str:
        return await mint(groups)

    def fail(words: str) -> None:
        raise UnsatisfiableError(str(words))

    return {"bootstrap_token": bootstrap_token, "fail": fail}


async def _no_token(_groups: str) -> str:
    return ""


def _key_hash(pem: bytes) -> str:
    """The hash of the authority's public key, as kubeadm wants it."""
    if not pem:
        return ""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
    except ValueError:
        return ""
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(key).hexdigest()
