"""The options every provider has; a provider adds its own by subclassing `KitOptions`.

A field is one option: `failed_cleanup_after` is `--failed-cleanup-after` on the command line,
`BIGFLEET_PROVIDER_FAILED_CLEANUP_AFTER` in the environment and `failed_cleanup_after` or
`failed-cleanup-after` in the YAML file. `Opt` says what a reader of `--help` needs; None as a
default means that the provider's declaration decides.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bigfleet_base.addresses import HIGHEST_PORT, Endpoint, check_plaintext
from bigfleet_providerkit.capacity.quantity import parse_quantity
from bigfleet_providerkit.options.units import Duration, Rates, Size, TextMap

MOST_METADATA = 8 * 1024 * 1024
EUR_USD, EUR_USD_DATED = 1.08, date(2026, 11, 1)
LABEL = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True, slots=True)
class Opt:
    """What help, tables and the parser know about one option."""

    help: str
    example: str = ""
    aliases: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    secret: bool = False
    unset: str = ""


class KitOptions(BaseModel):
    """Options of the kit; the same for all providers."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    addr: Annotated[str, Opt("address of the gRPC server", ":9001")] = "127.0.0.1:9001"
    metrics_addr: Annotated[
        str, Opt("address of /metrics, /healthz and /readyz; empty or 0 = off", ":9002")
    ] = "127.0.0.1:9002"
    allow_plaintext: Annotated[
        bool, Opt("serve plaintext gRPC also to other machines, where no TLS is configured")
    ] = False
    allow_plaintext_pages: Annotated[
        bool, Opt("serve /metrics and probes, which have no TLS, to other machines")
    ] = False
    provider: Annotated[
        str | None,
        Opt(
            "label on every machine and host; [a-z0-9-], at most 40",
            "aws-eu-west-1",
            unset="<name>-<region>",
        ),
    ] = None
    state: Annotated[
        str | None,
        Opt(
            "path of the state file, or memory; required with a real substrate",
            "/var/lib/bigfleet/state.db",
            unset="memory with the fake, else required",
        ),
    ] = None
    offerings: Annotated[
        str | None,
        Opt(
            "file with offerings (JSON or YAML), or the text itself",
            "offerings.yaml",
            unset="the default mix",
        ),
    ] = None
    seed_count: Annotated[int, Field(ge=0), Opt("slots of the default mix", "32")] = 32
    use_fake_backend: Annotated[
        bool, Opt("run on the substrate in memory; no credentials, no cloud SDK")
    ] = False
    slow_ms: Annotated[
        int, Field(ge=0), Opt("fake only: length of each transition in milliseconds", "500")
    ] = 0
    fail_rate: Annotated[
        Rates,
        Opt(
            "fake only: share of failing calls by kind", "create=0.02,configure=0.01", unset="none"
        ),
    ] = Field(default_factory=dict)
    fake_seed: Annotated[int, Opt("fake only: seed of its random choices", "1")] = 1
    endpoint_url: Annotated[
        str | None,
        Opt(
            "another address of the cloud's API, or of some of its services",
            "https://api.internal, or ec2=https://ec2.internal,pricing=https://prices.internal",
            unset="none",
        ),
    ] = None
    transition_timeout: Annotated[
        Duration | None, Opt("one limit for all four transitions", "5m", unset="none")
    ] = None
    create_timeout: Annotated[Duration | None, Opt("limit of a Create", "5m")] = None
    configure_timeout: Annotated[Duration | None, Opt("limit of a Configure", "8m")] = None
    drain_timeout: Annotated[Duration | None, Opt("limit of a Drain", "15m")] = None
    delete_timeout: Annotated[Duration | None, Opt("limit of a Delete", "5m")] = None
    reconcile_interval: Annotated[
        Duration, Opt("pause between two looks at all hosts; 0 = off", "2m")
    ] = 120.0
    price_refresh: Annotated[
        Duration | None, Opt("pause between two price lists; 0 = off", "45m")
    ] = None
    price_factor: Annotated[
        float,
        Field(gt=0, le=10),
        Opt("what list prices are multiplied with, for a discount on all of them", "0.88"),
    ] = 1.0
    prices: Annotated[
        str | None,
        Opt("file with prices by type that win over list prices", "prices.yaml", unset="none"),
    ] = None
    tags: Annotated[
        TextMap,
        Opt(
            "tags on every host beside BigFleet's own, for bills",
            "team=ml,stage=prod",
            unset="none",
        ),
    ] = Field(default_factory=dict)
    poll_interval: Annotated[
        Duration | None,
        Opt("pause between two looks at something under way", "50ms"),
    ] = None
    failed_cleanup_after: Annotated[
        Duration | None,
        Opt(
            "time after which a failed slot is cleaned and free again; 0 = never",
            "10m",
            aliases=("heal-after",),
            unset="10m; never where Delete is not offered",
        ),
    ] = None
    orphans: Annotated[
        Literal["terminate", "report"], Opt("what happens to hosts that belong to no machine")
    ] = "terminate"
    orphan_grace: Annotated[
        Duration, Opt("time an orphan or a duplicate stays before it is removed", "10m")
    ] = 600.0
    api_concurrency: Annotated[
        int, Field(ge=1, le=1024), Opt("threads for calls of the substrate's API", "32")
    ] = 32
    api_rate: Annotated[
        Rates,
        Opt(
            "calls a second, by name of the call; one name of a shared quota sets it for all",
            "CreateServer=5,ListServers=2",
            unset="the provider's",
        ),
    ] = Field(default_factory=dict)
    max_metadata_bytes: Annotated[
        Size, Field(ge=0), Opt("largest shard_metadata of one machine", "8MiB")
    ] = MOST_METADATA
    image: Annotated[
        TextMap | str,
        Opt(
            "image of new hosts; a map by architecture is allowed",
            "amd64=img-1,arm64=img-2",
            unset="the provider's",
        ),
    ] = ""
    base_user_data: Annotated[
        str | None, Opt("file with user data for the first boot", "base.yaml", unset="none")
    ] = None
    bootstrap_hook: Annotated[
        str, Opt("program on the host that joins and leaves clusters", "/opt/bigfleet/bootstrap")
    ] = "/opt/bigfleet/bootstrap"
    reserve: Annotated[
        TextMap,
        Opt("what system daemons take from each shape", "cpu=100m,memory=512Mi", unset="none"),
    ] = Field(default_factory=dict)
    interruption_priors: Annotated[
        str | None,
        Opt("file that replaces or extends the interruption forecast", "priors.yaml", unset="none"),
    ] = None
    eur_usd: Annotated[
        float, Field(gt=0), Opt("dollars for one euro, for price lists in euro", "1.08")
    ] = EUR_USD
    cluster_kubeconfigs: Annotated[
        str | None,
        Opt(
            "folder with <cluster-id>.yaml, for looking at nodes",
            "/etc/bigfleet/clusters",
            unset="none",
        ),
    ] = None
    tls_cert: Annotated[str | None, Opt("server certificate", "tls.crt", unset="plaintext")] = None
    tls_key: Annotated[str | None, Opt("its key", "tls.key", unset="plaintext")] = None
    tls_ca: Annotated[str | None, Opt("CA bundle of the clients", "ca.crt", unset="plaintext")] = (
        None
    )
    reflection: Annotated[bool, Opt("offer gRPC server reflection")] = True
    otlp_endpoint: Annotated[
        str, Opt("where traces go; empty = nowhere", "http://127.0.0.1:4317")
    ] = ""
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Opt("least important line that is shown")
    ] = "info"
    log_format: Annotated[Literal["text", "json"], Opt("form of the log lines")] = "text"

    @field_validator("provider")
    @classmethod
    def _label_fits(cls, value: str | None) -> str | None:
        if value is not None and not LABEL.fullmatch(value):
            raise ValueError(f"{value!r} is not a label; use a-z, 0-9 and -, at most 40 characters")
        return value

    @field_validator("addr", "metrics_addr")
    @classmethod
    def _address_fits(cls, value: str, info: ValidationInfo) -> str:
        if info.field_name == "metrics_addr" and value in ("", "0"):
            return value
        Endpoint.parse(value, f"host:port or :port, with a port up to {HIGHEST_PORT}")
        return value

    @field_validator("endpoint_url")
    @classmethod
    def _endpoints_fit(cls, value: str | None) -> str | None:
        for part in (value or "").split(",") if value else ():
            name, _, url = part.strip().rpartition("=")
            if "://" in name or not re.match(r"https?://[^\s/]", url):
                raise ValueError(f"{part!r} is not an address; write https://host or service=url")
        return value

    @field_validator("reserve")
    @classmethod
    def _reserve_fits(cls, value: dict[str, str]) -> dict[str, str]:
        for name, amount in value.items():
            if name not in ("cpu", "memory") or parse_quantity(amount) < 0:
                raise ValueError(f"{name}={amount}: only cpu and memory are reserved, from 0 on")
        return value

    @field_validator("fail_rate")
    @classmethod
    def _rates_fit(cls, value: dict[str, float]) -> dict[str, float]:
        for kind, rate in value.items():
            if kind not in ("create", "configure", "drain", "delete") or not 0 <= rate <= 1:
                raise ValueError(f"{kind}={rate} is not a rate; write create=0.02 (0 to 1)")
        return value

    @model_validator(mode="after")
    def _tls_is_whole(self) -> "KitOptions":
        files = {"tls-cert": self.tls_cert, "tls-key": self.tls_key, "tls-ca": self.tls_ca}
        missing = [name for name, value in files.items() if not value]
        if missing and len(missing) < len(files):
            raise ValueError(f"TLS needs all three files; add --{' and --'.join(missing)}")
        return self

    @model_validator(mode="after")
    def _plaintext_is_allowed(self) -> "KitOptions":
        check_plaintext(
            self.addr, "--addr", has_tls=self.tls, allowed=self.allow_plaintext,
            allow_flag="--allow-plaintext", remedy="add --tls-cert, --tls-key and --tls-ca",
        )  # fmt: skip
        if self.metrics_addr not in ("", "0"):
            check_plaintext(
                self.metrics_addr, "--metrics-addr",
                has_tls=False, allowed=self.allow_plaintext_pages,
                allow_flag="--allow-plaintext-pages", remedy="metrics and probes have no TLS",
            )  # fmt: skip
        return self

    def missing(self) -> list[str]:
        """Required options that were not given; a start names all of them at once."""
        return []

    def endpoint(self, service: str = "") -> str | None:
        """The address of a service: its own of `--endpoint-url`, else the one for all of them."""
        by_name = dict[str, str]()
        for part in (self.endpoint_url or "").split(","):
            name, _, url = part.strip().rpartition("=")
            by_name[name] = url
        return by_name.get(service) or by_name.get("") or None

    @property
    def tls(self) -> bool:
        """Whether the server speaks mTLS."""
        return bool(self.tls_cert)


def described(model: type[KitOptions]) -> Iterator[tuple[str, Opt]]:
    """The fields of an options model with their descriptions, in order."""
    for name, field in model.model_fields.items():
        for extra in field.metadata:
            if isinstance(extra, Opt):
                yield name, extra
                break
        else:
            yield name, Opt(field.description or "")
