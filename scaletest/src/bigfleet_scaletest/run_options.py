"""What a run was asked for, shared by all of its processes: they plan the same fleet from it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from bigfleet_lab.profiles.catalogue import load_profile, load_substrate
from bigfleet_lab.profiles.ci_form import ci_form, scaled
from bigfleet_lab.profiles.errors import ProfileError
from bigfleet_lab.profiles.fleet_plan import FleetPlan, cluster_count, plan_fleet
from bigfleet_lab.profiles.model import ScaleProfile
from bigfleet_lab.profiles.read_profile import OVERRIDES, check_override
from bigfleet_lab.profiles.substrate import SubstrateSpec


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A profile, where, and in which form."""

    profile: str
    substrate: str = "local-process"
    ci: bool = False
    scale_factor: float = 1.0
    seed: int = 1
    settings: Mapping[str, float] = field(default_factory=dict)
    """Overrides of the command line."""
    duration_seconds: float | None = None

    def words(self) -> list[str]:
        """The same as flags, for the processes of the run."""
        words = ["--profile", self.profile, "--substrate", self.substrate]
        words += ["--scale-factor", f"{self.scale_factor:g}", "--seed", str(self.seed)]
        words += ["--ci"] if self.ci else []
        if self.duration_seconds is not None:
            words += ["--duration", f"{self.duration_seconds:g}"]
        return words + [
            w for name, value in self.settings.items() for w in ("--set", f"{name}={value:g}")
        ]


@dataclass(frozen=True)
class PlannedRun:
    """Everything that follows from the options. The fleet is planned when it is first looked at:
    whether a run fits is decided before, from nominal sizes."""

    options: RunOptions
    profile: ScaleProfile
    substrate: SubstrateSpec

    @cached_property
    def fleet(self) -> FleetPlan:
        """The objects and machines of the run."""
        return plan_fleet(self.profile, self.clusters, self.options.seed)

    @property
    def clusters(self) -> int:
        """Clusters of the run."""
        return cluster_count(self.profile, self.substrate)

    @property
    def records(self) -> int:
        """Machines that all providers have, nominally."""
        seed, machines = self.profile.seed, self.profile.machines
        share = 1 + seed.idle_headroom_fraction + seed.speculative_multiplier
        absolute = (seed.speculative_count + seed.spot_count) * self.profile.shards
        return round(machines * share) + absolute

    def setting(self, name: str) -> float:
        """A fixed setting, as the profile or the command line overrides it."""
        given: Any = self.options.settings.get(name, self.profile.overrides.get(name))
        return float(OVERRIDES[name] if given is None else given)


def plan_run(options: RunOptions) -> PlannedRun:
    """Read the files and plan the fleet; raises ProfileError for anything that cannot be run."""
    if not 0 < options.scale_factor <= 1:
        raise ProfileError(
            "--scale-factor", f"{options.scale_factor:g}: use more than 0, at most 1"
        )
    for name, value in options.settings.items():
        check_override(name, value, lambda text: ProfileError("--set", text))
    profile, substrate = load_profile(options.profile), load_substrate(options.substrate)
    profile = scaled(profile, options.scale_factor)
    profile = ci_form(profile) if options.ci else profile
    if options.duration_seconds is not None:
        profile = _shortened(profile, options.duration_seconds)
    return PlannedRun(options, profile, substrate)


def _shortened(profile: ScaleProfile, seconds: float) -> ScaleProfile:
    late = [each.action for each in profile.actions if each.at_seconds >= seconds]
    if seconds <= profile.load.settle_seconds or late:
        needed = late[0] if late else "the settle time"
        raise ProfileError("--duration", f"{seconds:g} s end before {needed}: give more")
    load = replace(profile.load, soak_seconds=seconds)
    return replace(profile, name=f"{profile.name}@{seconds:g}s", load=load)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that `words` writes."""
    parser.add_argument("--profile", required=True, metavar="NAME", help="a profile, or its file")
    parser.add_argument("--substrate", default="local-process", metavar="NAME")
    parser.add_argument("--ci", action="store_true", help="a quarter of the time")
    parser.add_argument("--scale-factor", type=float, default=1.0, metavar="SHARE")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn")
    parser.add_argument("--duration", default="", metavar="TIME", help="another length of the soak")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")


def options_of(given: argparse.Namespace) -> RunOptions:
    """The options of parsed flags."""
    return RunOptions(
        profile=given.profile,
        substrate=given.substrate,
        ci=given.ci,
        scale_factor=given.scale_factor,
        seed=given.seed,
        settings=_settings(given.settings),
        duration_seconds=_seconds(given.duration),
    )


def _settings(given: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise ProfileError("--set", f"{text!r}: write KEY=NUMBER") from None
    return found


def _seconds(text: str) -> float | None:
    from bigfleet.observe.settings import parse_duration

    if not text:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ProfileError("--duration", str(error)) from None
