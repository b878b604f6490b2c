"""Settings of `bigfleet all-in-one`: those of a shard, and where its coordinator listens."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError, field_validator, model_validator

from bigfleet.coordinator.settings import CoordinatorSettings
from bigfleet.observe.addresses import Listen, Pages
from bigfleet.observe.refusing import refusal
from bigfleet.observe.settings import Texts
from bigfleet.shard.server.settings import ShardSettings
from bigfleet_base.addresses import can_dial


class AllInOneSettings(ShardSettings):
    """What a shard may be told, and a little more. Data lies in two folders of `data_dir`."""

    shard_id: str = Field("s-1", description="Id of the shard.")
    data_dir: Path = Field(Path(".bigfleet"), description="Where everything is kept.")
    coordinator_addr: Texts = Field(
        (), description="Refused: the shard's coordinator is the one beside it."
    )
    coordinator_listen: Listen = Field(":7790", description="Address of the coordinator.")
    coordinator_metrics_addr: Pages = Field(
        ":8790", description="Address of its /metrics and probes; 0 or empty switches them off."
    )

    @field_validator("coordinator_addr", mode="before")
    @classmethod
    def _coordinator_is_the_one_beside(cls, value: object) -> object:
        if value:
            told = ", ".join(value) if isinstance(value, list | tuple) else value
            raise ValueError(
                f"{told!r} is another coordinator, and this process has its own: leave it out, or "
                "run `bigfleet shard`, which reports to that one"
            )
        return value

    @model_validator(mode="after")
    def _coordinator_holds_together(self) -> AllInOneSettings:
        try:
            self.coordinator()
        except ValidationError as error:
            told = "; ".join(map(refusal, error.errors()))
            for flag in ("listen", "metrics-addr"):
                told = told.replace(f"--{flag}", f"--coordinator-{flag}")
            raise ValueError(told) from None
        if not can_dial(self._near()):
            raise ValueError(
                f"--coordinator-listen {self.coordinator_listen!r}: the shard has to dial it; "
                "write a port that is not 0"
            )
        return self

    def coordinator(self) -> CoordinatorSettings:
        """The coordinator's settings."""
        return CoordinatorSettings.model_validate(
            {
                "id": "all-in-one",
                "listen": self.coordinator_listen,
                "metrics_addr": self.coordinator_metrics_addr,
                "data_dir": self.data_dir / "coordinator",
                **{name: getattr(self, name) for name in ("tls_cert", "tls_key", "tls_ca")},
            }
        )

    def shard(self) -> ShardSettings:
        """The shard's settings: it reports to the coordinator beside it."""
        said = {name: getattr(self, name) for name in ShardSettings.model_fields}
        said |= {"data_dir": self.data_dir / "shard", "coordinator_addr": (self._near(),)}
        return ShardSettings.model_validate(said)

    def _near(self) -> str:
        """Where the shard finds the coordinator beside it."""
        host, _, port = self.coordinator_listen.rpartition(":")
        return f"{host or '127.0.0.1'}:{port}"
