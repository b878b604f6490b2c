"""What the owner of a cluster may set for its operator, as flags, variables and keys of a file.

Two are required: which cluster this is, and where its shard is. A bootstrap template is, too,
unless the owner says that nothing shall join.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, model_validator

from bigfleet.observe.settings import (
    ALLOW_PLAINTEXT_PAGES,
    Dial,
    Duration,
    Pages,
    ProcessSettings,
    check_pages,
)
from bigfleet.operator.operator import OperatorConfig
from bigfleet.operator.session.session import SessionIntervals
from bigfleet.wire.errors import TlsFilesError
from bigfleet.wire.tls import TlsFiles
from bigfleet_base.identifiers import IdentifierError, check_label_value

ANY: Final = "any"
"""Switches a default off."""


class OperatorSettings(ProcessSettings):
    """Settings of one operator."""

    cluster_id: str = Field(description="Id of this cluster; fixed for the cluster's life.")
    shard_addr: Dial = Field(description="Address of the cluster's shard, host:port.")
    bootstrap_template: str = Field(
        "", description="What new nodes start with: kubeadm, k3s, eks, or a file with a template."
    )
    bootstrap_values: Path | None = Field(
        None, description="A YAML file whose keys a template finds under `values`."
    )
    allow_stub_bootstrap: bool = Field(
        False, description="Start without a template; machines then get data that joins nothing."
    )
    api_server: str = Field(
        "", description="Where nodes reach the API server; where the operator does, if empty."
    )
    api_server_ca: Path | None = Field(
        None, description="CA certificate of that address; the operator's own, if absent."
    )
    kubeconfig: str = Field("", description="Kubeconfig file; the Pod's own account, if empty.")
    rollup_interval: Duration = Field(10.0, description="Time between two roll-ups.")
    default_arch: str = Field(
        "amd64",
        description="Architecture of new machines for Pods that name none; any switches it off.",
    )
    default_os: str = Field(
        "linux",
        description="Operating system of new machines for Pods that name none; any switches it "
        "off.",
    )
    metrics_addr: Pages = Field(
        "127.0.0.1:8770",
        description="Address of /metrics and probes; 0 or empty switches them off.",
    )
    allow_plaintext_pages: bool = Field(False, description=ALLOW_PLAINTEXT_PAGES)
    lease_name: str = Field("bigfleet-operator", description="Lease that replicas share.")
    lease_namespace: str = Field("", description="Where that lease is; our own, if empty.")
    identity: str = Field("", description="Name of this replica; the host's, if empty.")
    qps: float = Field(200.0, gt=0, description="Most requests a second to the API server.")
    burst: int = Field(400, ge=1, description="Requests that may come at once.")
    ack_concurrency: int = Field(64, ge=1, description="Acknowledgements written at once.")
    write_concurrency: int = Field(16, ge=1, description="UpcomingNodes written at once.")
    eviction_concurrency: int = Field(32, ge=1, description="Evictions asked for at once.")
    tls_cert: str = Field("", description="Certificate; with key and CA, mutual TLS.")
    tls_key: str = Field("", description="Key of the certificate.")
    tls_ca: str = Field("", description="CA bundle of the shard.")
    otlp_endpoint: str = Field(
        "", description="Where traces go, as http://host:4317; nowhere, if empty."
    )
    trace_ratio: float = Field(
        1.0, ge=0, le=1, description="Share of traces that is kept; the same everywhere."
    )
    log_format: Literal["text", "json"] = Field("text", description="Form of log lines.")
    log_level: Literal["debug", "info", "warn", "error"] = Field("info", description="Least level.")

    @model_validator(mode="after")
    def _holds_together(self) -> OperatorSettings:
        if not self.cluster_id or not self.cluster_id.isprintable():
            raise ValueError(f"--cluster-id {self.cluster_id!r}: give it one line of text")
        if not self.shard_addr:
            raise ValueError("--shard-addr is empty: write host:port")
        if not self.bootstrap_template and not self.allow_stub_bootstrap:
            raise ValueError(
                "--bootstrap-template is missing: give kubeadm, k3s, eks or a file; or say "
                "--allow-stub-bootstrap, and no machine will join this cluster"
            )
        if self.rollup_interval <= 0:
            raise ValueError("--rollup-interval: use more than 0")
        for flag, value in (("arch", self.default_arch), ("os", self.default_os)):
            try:
                check_label_value(value, f"--default-{flag}")
            except IdentifierError as error:
                raise ValueError(str(error)) from None
            if not value:
                raise ValueError(f"--default-{flag} is empty: write any to switch it off")
        check_pages(self.metrics_addr, "--metrics-addr", allowed=self.allow_plaintext_pages)
        try:
            self.tls_files()
        except TlsFilesError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def replica(self) -> str:
        """The name of this replica."""
        return self.identity or socket.gethostname()

    def tls_files(self) -> TlsFiles | None:
        """The three files of mutual TLS; None for plaintext."""
        return TlsFiles.of(self.tls_cert, self.tls_key, self.tls_ca)

    def operator_config(self) -> OperatorConfig:
        """What the parts are told."""
        return OperatorConfig(
            rhythm=SessionIntervals(rollup=self.rollup_interval),
            ack_concurrency=self.ack_concurrency,
            write_concurrency=self.write_concurrency,
            eviction_concurrency=self.eviction_concurrency,
            default_arch="" if self.default_arch == ANY else self.default_arch,
            default_os="" if self.default_os == ANY else self.default_os,
        )
