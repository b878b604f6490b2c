"""What the owner of a cluster may set for its pod controller. Nothing is required."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_settings import NoDecode

from bigfleet.observe.settings import (
    ALLOW_PLAINTEXT_PAGES,
    Duration,
    Pages,
    ProcessSettings,
    check_pages,
    listed_texts,
)
from bigfleet.podcontroller.resource_claims import device_classes


def _listed_mappings(value: object) -> object:
    """Texts with `=`, however they came: a settings file may hold a mapping."""
    if isinstance(value, dict):
        return [f"{name}={resource}" for name, resource in value.items()]
    return listed_texts(value)


def _checked_mappings(mappings: tuple[str, ...]) -> tuple[str, ...]:
    device_classes(mappings)
    return mappings


DeviceClassMappings = Annotated[
    tuple[str, ...],
    NoDecode,
    BeforeValidator(_listed_mappings),
    AfterValidator(_checked_mappings),
]


class PodControllerSettings(ProcessSettings):
    """Settings of one pod controller."""

    adopt_foreign_nodes: Literal["true", "false"] = Field(
        "true",
        description="Leave Pods on nodes that BigFleet did not bring to those nodes; false counts "
        "them as demand.",
    )
    ask_again_after: Duration = Field(
        0.0,
        description="Ask a second time for the room of a Pod that has fitted on no node for so "
        "long, although everything that was asked for had come; 0 never does.",
    )
    priority_class_defaults: Path | None = Field(
        None, description="A YAML file with penalties by PriorityClass."
    )
    device_class_mappings: DeviceClassMappings = Field(
        (),
        description="Resource that devices of a DeviceClass count as, as CLASS=RESOURCE "
        "(gpu.nvidia.com=nvidia.com/gpu); may be given several times.",
    )
    kubeconfig: str = Field("", description="Kubeconfig file; the Pod's own account, if empty.")
    metrics_addr: Pages = Field(
        "127.0.0.1:8080",
        description="Address of /metrics and probes; 0 or empty switches them off.",
    )
    allow_plaintext_pages: bool = Field(False, description=ALLOW_PLAINTEXT_PAGES)
    workers: int = Field(32, ge=1, description="Pods looked at at once.")
    lease_name: str = Field("bigfleet-pod-controller", description="Lease that replicas share.")
    lease_namespace: str = Field("", description="Where that lease is; our own, if empty.")
    identity: str = Field("", description="Name of this replica; the host's, if empty.")
    qps: float = Field(500.0, gt=0, description="Most requests a second to the API server.")
    burst: int = Field(1000, ge=1, description="Requests that may come at once.")
    log_format: Literal["text", "json"] = Field("text", description="Form of log lines.")
    log_level: Literal["debug", "info", "warn", "error"] = Field("info", description="Least level.")

    @model_validator(mode="after")
    def _pages_are_allowed(self) -> PodControllerSettings:
        check_pages(self.metrics_addr, "--metrics-addr", allowed=self.allow_plaintext_pages)
        return self

    @property
    def replica(self) -> str:
        """The name of this replica."""
        return self.identity or socket.gethostname()

    @property
    def adopts(self) -> bool:
        """Whether Pods on foreign nodes are left to them."""
        return self.adopt_foreign_nodes == "true"
