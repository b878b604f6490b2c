"""Settings of `bigfleet all-in-one`: those of a shard, and where its coordinator listens."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError, field_validator, model_validator

from bigfleet.coordinator.server.settings import CoordinatorSettings
from bigfleet.observe.settings import Listen, Pages, Texts, refusal
from bigfleet.shard.server.settings import ShardSettings
from bigfleet_base.addresses import Endpoint, can_dial

BOTH: Final = ("tls_cert", "tls_key", "tls_ca", "allow_plaintext", "allow_plaintext_pages")
"""What is set once for both."""


class AllInOneSettings(ShardSettings):
    """What a shard may be told, and a little more. Data lies in two folders of `data_dir`."""

    shard_id: str = Field("s-1", description="Id of the shard.")
    data_dir: Path = Field(Path(".bigfleet"), description="Where everything is kept.")
    coordinator_addr: Texts = Field(
        (), description="Refused: the shard's coordinator is the one beside it."
    )
    coordinator_listen: Listen = Field("127.0.0.1:7790", description="Address of the coordinator.")
    coordinator_metrics_addr: Pages = Field(
        "127.0.0.1:8790",
        description="Address of its /metrics and probes; 0 or empty switches them off.",
    )

    @field_validator("coordinator_addr", mode="before")
    @classmethod
    def _coordinator_is_the_one_beside(cls, value: object) -> object:
        if value:
            text = ", ".join(value) if isinstance(value, list | tuple) else value
            raise ValueError(
                f"{text!r} is another coordinator, and this process has its own: leave it out, or "
                "run `bigfleet shard`, which reports to that one"
            )
        return value

    @model_validator(mode="after")
    def _coordinator_holds_together(self) -> AllInOneSettings:
        try:
            self.coordinator()
        except ValidationError as error:
            text = "; ".join(map(refusal, error.errors()))
            for flag in ("listen", "metrics-addr"):
                text = text.replace(f"--{flag}", f"--coordinator-{flag}")
            raise ValueError(text) from None
        self._listens_where_it_is_dialled()
        return self

    def _listens_where_it_is_dialled(self) -> None:
        if not can_dial(self._near()):
            raise ValueError(
                f"--coordinator-listen {self.coordinator_listen!r}: the shard has to dial it; "
                "write a port that is not 0"
            )
        try:
            self.shard()
        except ValidationError as error:
            raise ValueError("; ".join(map(refusal, error.errors()))) from None

    def coordinator(self) -> CoordinatorSettings:
        """The coordinator's settings."""
        return CoordinatorSettings.model_validate(
            {
                "id": "all-in-one",
                "listen": self.coordinator_listen,
                "metrics_addr": self.coordinator_metrics_addr,
                "data_dir": self.data_dir / "coordinator",
                **{name: getattr(self, name) for name in BOTH},
            }
        )

    def shard(self) -> ShardSettings:
        """The shard's settings: it reports to the coordinator beside it."""
        values = {name: getattr(self, name) for name in ShardSettings.model_fields}
        values |= {"data_dir": self.data_dir / "shard", "coordinator_addr": (self._near(),)}
        return ShardSettings.model_validate(values)

    def _near(self) -> str:
        """Where the shard finds the coordinator beside it."""
        listen = Endpoint.parse(self.coordinator_listen)
        return str(Endpoint("127.0.0.1", listen.port) if listen.is_wildcard else listen)
