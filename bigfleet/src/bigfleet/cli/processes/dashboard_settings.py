"""What the owner of a dashboard may set, as flags, variables and keys of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from bigfleet.observe.settings import Duration, Listen, ProcessSettings, Texts, Web, web
from bigfleet_base.addresses import check_plaintext, dialled
from bigfleet_dashboard.config import Auth, Config, Tls, split_address


class DashboardSettings(ProcessSettings):
    """Settings of one dashboard."""

    listen: Listen = Field("127.0.0.1:8700", description="Address of the page.")
    allow_plaintext: bool = Field(
        False, description="Serve the page, which has no TLS of its own, to other machines."
    )
    coordinator: Texts = Field((), description="A coordinator's address; may be repeated.")
    shard: Texts = Field((), description="A shard's address, for a fleet without coordinator.")
    shard_http: Texts = Field(
        (), description="A shard's page as id=host:port; its port plus 1000 where not named."
    )
    prometheus: Web = Field("", description="Address of a Prometheus, as http://host:9090.")
    cluster_api: Texts = Field((), description="A cluster's API server as name=URL.")
    cluster_token_file: Path | None = Field(None, description="File with the token for them.")
    auth_header: str = Field(
        "", description="Header in which a proxy names the user; without it users are not checked."
    )
    auth_proxy: Texts = Field(
        (), description="Network the header is believed from; loopback where none is named."
    )
    allowed_host: Texts = Field(
        (),
        description="Host name or address that browsers use for the page, beside localhost and "
        "the address it listens at; may be repeated.",
    )
    poll_interval: Duration = Field(2.0, gt=0, description="Time between two looks at a shard.")
    demo_socket: Path | None = Field(None, description="Where `bigfleet demo` takes scenarios.")
    tls_cert: str = Field("", description="Certificate; with key and CA, mutual TLS.")
    tls_key: str = Field("", description="Key of the certificate.")
    tls_ca: str = Field("", description="CA bundle of the fleet.")
    log_format: Literal["text", "json"] = Field("text", description="Form of log lines.")
    log_level: Literal["debug", "info", "warn", "error"] = Field("info", description="Least level.")

    @field_validator("coordinator", "shard")
    @classmethod
    def _are_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(dialled, value))

    @field_validator("shard_http", "cluster_api")
    @classmethod
    def _are_pairs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if not all(text.partition("=")):
                raise ValueError(f"{text!r} names nobody: write name=address")
        return value

    @field_validator("shard_http")
    @classmethod
    def _pages_have_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for _, address in _pairs(value):
            dialled(address)
        return value

    @field_validator("cluster_api")
    @classmethod
    def _api_servers_have_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for _, address in _pairs(value):
            web(address)
        return value

    @model_validator(mode="after")
    def _page_is_allowed(self) -> DashboardSettings:
        check_plaintext(
            self.listen,
            "--listen",
            has_tls=False,
            allowed=self.allow_plaintext,
            allow_flag="--allow-plaintext",
            remedy="put a proxy with TLS in front of it",
        )
        return self

    def config(self) -> Config:
        """The settings as the dashboard takes them; raises its ConfigError."""
        host, port = split_address(self.listen, "--listen")
        return Config(
            host=host,
            port=port,
            coordinators=self.coordinator,
            shards=self.shard,
            shard_http=_pairs(self.shard_http),
            prometheus=self.prometheus,
            clusters=_pairs(self.cluster_api),
            cluster_token_file=self.cluster_token_file,
            demo_socket=self.demo_socket,
            tls=Tls.of(self.tls_cert, self.tls_key, self.tls_ca),
            auth=Auth.of(self.auth_header, self.auth_proxy),
            allowed_hosts=self.allowed_host,
            poll_seconds=self.poll_interval,
        )


def _pairs(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, _, value in (text.partition("=") for text in texts))
