"""What /readyz of a shard says, and when it says nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from bigfleet.shard.server.readiness import ShardReadiness
from bigfleet.shard.state.disk import DiskFullError
from bigfleet.shard.state.disk_health import DiskHealth
from clocks import HandClock


@dataclass
class Provider:
    name: str
    age_seconds: float | None = 0.0


@dataclass
class Parts:
    """The executor and the lister, as far as readiness looks at them."""

    not_ready: str = ""
    providers: list[Provider] = field(default_factory=list)

    def status(self) -> list[Provider]:
        return self.providers


class Disk:
    """One that can be full."""

    def __init__(self) -> None:
        self.is_full = False

    def read(self, name: str) -> bytes | None:
        return None

    def replace(self, name: str, content: bytes) -> None:
        if self.is_full:
            raise DiskFullError(f"{name}: no room left")

    append = replace


class Shard:
    def __init__(self, interval: float = 10.0) -> None:
        self.clock, self.parts, self.disk = HandClock(), Parts(), Disk()
        self.health = DiskHealth(self.disk)
        parts = cast("Any", self.parts)
        self.readiness = ShardReadiness(self.clock, parts, parts, self.health, interval)

    def says(self, *awaited: str) -> str:
        return self.readiness.problem(awaited)


def test_it_is_ready_while_it_decides_hears_and_writes() -> None:
    shard = Shard()
    shard.parts.providers = [Provider("a"), Provider("b", 500.0)]
    shard.clock.advance(59.0)
    assert shard.says() == ""
    assert shard.says("a") == "waiting for the first List of provider a"


def test_no_decision_for_a_minute_is_said_with_what_to_do() -> None:
    shard = Shard()
    shard.clock.advance(61.0)
    assert "no decision has ended for 61 s" in shard.says()
    assert "--max-decision-time" in shard.says()
    shard.readiness.decided()
    assert shard.says() == ""


def test_an_owner_that_wants_slow_cycles_is_not_told_that_they_are() -> None:
    shard = Shard(interval=60.0)
    shard.clock.advance(170.0)
    assert shard.says() == ""


def test_silence_of_all_providers_for_a_minute_is_said_with_their_names() -> None:
    shard = Shard()
    shard.parts.providers = [Provider("b", 61.0), Provider("a", None)]
    assert shard.says() == ""
    shard.clock.advance(61.0)
    shard.readiness.decided()
    assert "no provider has answered for more than 60 s: a, b" in shard.says()
    shard.parts.providers[0].age_seconds = 3.0
    assert shard.says() == ""


def test_a_full_disk_is_said_until_something_can_be_written() -> None:
    shard = Shard()
    shard.disk.is_full = True
    with pytest.raises(DiskFullError):
        shard.health.append("journal", b"x")
    assert shard.says() == "the data directory cannot be written: journal: no room left"
    shard.health._try()
    assert "no room left" in shard.says()
    shard.disk.is_full = False
    shard.health._try()
    assert shard.says() == ""


def test_a_provider_that_has_seen_a_newer_process_comes_first() -> None:
    shard = Shard()
    shard.parts.not_ready = "provider a has seen a newer process"
    assert shard.says("a").startswith("provider a has seen")
