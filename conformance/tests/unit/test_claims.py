"""Which capabilities are claimed, by whom, and what `all` means."""

from dataclasses import replace

import pytest

from bigfleet_conformance import Options
from bigfleet_conformance.errors import UsageError
from bigfleet_conformance.registry import Capability, LaneName, Profile
from bigfleet_conformance.results import Claim
from bigfleet_conformance.runner.claims import ProbeResult, chosen_profiles, gather_claims
from bigfleet_conformance.runner.source import BootPlan

NOTHING = ProbeResult(False, False, False, False, False, 10, 0.01, 0.0)
ALL = Options(profiles=("all",))


def claims(seen: ProbeResult = NOTHING, **more: object) -> dict[Capability, Claim]:
    facts: dict[str, object] = {"help_text": "", "fault_help": "", "slow_instance": False}
    options = more.pop("options", Options())
    profiles = more.pop("profiles", (Profile.CORE,))
    found = gather_claims(options, profiles, seen, **(facts | more))  # type: ignore[arg-type]
    return {claim.capability: claim for claim in found}


def test_nothing_seen_and_nothing_said_is_no_claim() -> None:
    assert claims() == {}


def test_a_revision_is_a_claim() -> None:
    found = claims(replace(NOTHING, revisions=True))
    assert found == {Capability.SINCE_REVISION: Claim(Capability.SINCE_REVISION, "probe", True)}


def test_a_profile_claims_what_it_demands() -> None:
    found = claims(profiles=(Profile.CLOUD, Profile.DURABLE))
    assert found[Capability.DELETE] == Claim(Capability.DELETE, "profile cloud", False)
    assert Capability.DURABLE in found


def test_naming_a_flag_is_the_claim_to_have_it() -> None:
    assert Capability.SLOW in claims(help_text="  --slow-ms  length")
    assert Capability.HEAL in claims(fault_help="  --heal-after")
    assert Capability.SLOW not in claims(fault_help="  --slow-ms")


def test_half_a_second_between_two_states_is_slow() -> None:
    assert Capability.SLOW in claims(replace(NOTHING, transitional_s=0.2))


def test_claims_by_hand_and_by_file() -> None:
    assert claims(options=Options(claims=("heal",)))[Capability.HEAL].source == "--claim"
    found = claims(configured=("Delete",))
    assert found[Capability.DELETE].source == "conformance.yaml"
    with pytest.raises(UsageError, match="is not a capability"):
        claims(configured=("flight",))


def test_all_is_what_applies() -> None:
    assert chosen_profiles(ALL, NOTHING, bootable=False) == (Profile.CORE, Profile.BARE_METAL)
    everything = replace(NOTHING, delete=True, spot=True, fault_slots=True)
    assert chosen_profiles(ALL, everything, bootable=False) == (
        *(Profile.CORE, Profile.CLOUD, Profile.SPOT, Profile.FAULT),
    )
    assert chosen_profiles(ALL, everything, bootable=True) == (
        *(Profile.CORE, Profile.CLOUD, Profile.SPOT),
        *(Profile.FAULT, Profile.DURABLE, Profile.SCALE, Profile.SECURE),
    )


def test_the_probe_says_what_it_saw() -> None:
    seen = replace(NOTHING, delete=True, complaint="the first walk failed: x")
    assert seen.sentence() == (
        "probe: 10 machines; offers Delete; longest transition 10 ms; the first walk failed: x"
    )


def test_restarts_share_a_world_and_stories_do_not() -> None:
    first = BootPlan(LaneName.DURABLE, 1, 8, name="lock-first")
    assert first.world == BootPlan(LaneName.DURABLE, 2, 8, name="lock-third").world
    assert first.world != BootPlan(LaneName.DURABLE, 2, 8, name="damage").world
    assert first.world != replace(first, slow_ms=500).world
