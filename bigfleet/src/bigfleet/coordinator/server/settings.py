"""What the owner of a coordinator may set, as flags, variables and keys of a file.

Nothing is required: alone and with its embedded store a coordinator needs to be told nothing. Three
of them share an etcd, and each then says where the others' callers find it.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from bigfleet.coordinator.store.etcd import EtcdAddress
from bigfleet.coordinator.store.interface import StorePlace
from bigfleet.observe.settings import (
    ALLOW_PLAINTEXT,
    ALLOW_PLAINTEXT_PAGES,
    Dial,
    Listen,
    Pages,
    ProcessSettings,
    check_listen,
    check_pages,
)
from bigfleet.wire.errors import TlsFilesError
from bigfleet.wire.tls import TlsFiles
from bigfleet_base.addresses import Endpoint, can_dial, own_address

SQLITE = "sqlite"
ETCD = "etcd://"


class CoordinatorSettings(ProcessSettings):
    """Settings of one coordinator."""

    id: str = Field("", description="Id of this replica; the host's name where empty.")
    listen: Listen = Field("127.0.0.1:7790", description="Address of shards and administrators.")
    advertise_addr: Dial = Field(
        "", description="Where others dial this replica; the listening address where empty."
    )
    metrics_addr: Pages = Field(
        "127.0.0.1:8790",
        description="Address of /metrics and probes; 0 or empty switches them off.",
    )
    allow_plaintext: bool = Field(False, description=ALLOW_PLAINTEXT)
    allow_plaintext_pages: bool = Field(False, description=ALLOW_PLAINTEXT_PAGES)
    data_dir: Path = Field(
        Path(".bigfleet/coordinator"), description="Where the embedded store is kept."
    )
    store: str = Field(
        SQLITE, description="Where the state is: sqlite, or etcd://host:2379,host:2379[/prefix]."
    )
    store_tls_cert: str = Field("", description="Certificate for etcd; with key and CA, TLS.")
    store_tls_key: str = Field("", description="Key of that certificate.")
    store_tls_ca: str = Field("", description="CA bundle of etcd.")
    store_username: str = Field("", description="User of etcd; none where empty.")
    store_password_file: Path | None = Field(None, description="File with that user's password.")
    snapshot_export_dir: Path | None = Field(
        None, description="Where the leader writes a snapshot every 5 minutes; none where absent."
    )
    tls_cert: str = Field("", description="Certificate; with key and CA, mutual TLS.")
    tls_key: str = Field("", description="Key of the certificate.")
    tls_ca: str = Field("", description="CA bundle for both directions.")
    log_format: Literal["text", "json"] = Field("text", description="Form of log lines.")
    log_level: Literal["debug", "info", "warn", "error"] = Field("info", description="Least level.")

    @model_validator(mode="after")
    def _holds_together(self) -> CoordinatorSettings:
        if self.store != SQLITE and not self.store.startswith(ETCD):
            raise ValueError(
                f"--store {self.store!r} is not a store: write sqlite, or etcd://host:2379,host:2379"
            )
        if self.store != SQLITE and not can_dial(self.address):
            raise ValueError(
                f"--advertise-addr is missing: callers of the other replicas are sent there, and "
                f"{self.address} cannot be dialled; give host:port, or a host in --listen"
            )
        if bool(self.store_username) != (self.store_password_file is not None):
            raise ValueError("--store-username and --store-password-file belong together")
        try:
            self.tls_files()
        except TlsFilesError as error:
            raise ValueError(str(error)) from None
        try:
            place = self.store_place()
        except TlsFilesError as error:
            raise ValueError(str(error).replace("--tls-", "--store-tls-")) from None
        if place.address != SQLITE:
            etcd = EtcdAddress.of(place.address, place.tls, place.username, place.password_file)
            own_address(
                self.advertise_addr, Endpoint.parse(self.listen), etcd.endpoints, "", "this replica"
            )
        return self

    @model_validator(mode="after")
    def _plaintext_is_allowed(self) -> CoordinatorSettings:
        has_tls = self.tls_files() is not None
        check_listen(self.listen, "--listen", has_tls=has_tls, allowed=self.allow_plaintext)
        check_pages(self.metrics_addr, "--metrics-addr", allowed=self.allow_plaintext_pages)
        return self

    @property
    def replica(self) -> str:
        """The id of this replica."""
        return self.id or socket.gethostname()

    @property
    def address(self) -> str:
        """Where this replica is dialled."""
        return self.advertise_addr or self.listen

    def tls_files(self) -> TlsFiles | None:
        """The three files of mutual TLS; None for plaintext."""
        return TlsFiles.of(self.tls_cert, self.tls_key, self.tls_ca)

    def store_place(self) -> StorePlace:
        """Where the store is."""
        return StorePlace(
            address=self.store,
            replica=self.replica,
            data_dir=self.data_dir,
            tls=TlsFiles.of(self.store_tls_cert, self.store_tls_key, self.store_tls_ca),
            username=self.store_username,
            password_file=self.store_password_file,
        )
