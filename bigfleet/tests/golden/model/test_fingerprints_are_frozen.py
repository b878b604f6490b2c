"""Fingerprints that were once given out must never change: machines remember them for years.

A failing row means that stamps in running fleets would no longer be for their needs. Do not update
the table; give the encoding a new version and read the old one as well.
"""

import pytest

from bigfleet.model import (
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
)

ZONE = "topology.kubernetes.io/zone"
RACK = "topology.bigfleet/rack"
TYPE = "node.kubernetes.io/instance-type"

PROFILES = {
    "empty": Profile.of(),
    "one pinned type": Profile.of([Requirement.of(TYPE, RequirementOperator.IN, ["gp.4xlarge"])]),
    "the same at priority 100": Profile.of(
        [Requirement.of(TYPE, RequirementOperator.IN, ["gp.4xlarge"])], priority=100
    ),
    "negative priority": Profile.of(priority=-1),
    "both penalties": Profile.of(
        interruption=PenaltyBucket.DOLLARS_16, reclamation=PenaltyBucket.PINNED
    ),
    "every operator": Profile.of(
        [
            Requirement.of(TYPE, RequirementOperator.IN, ["b", "a"]),
            Requirement.of(ZONE, RequirementOperator.NOT_IN, ["z-c"]),
            Requirement.of("gpu", RequirementOperator.EXISTS),
            Requirement.of("cordoned", RequirementOperator.DOES_NOT_EXIST),
            Requirement.of(RACK, RequirementOperator.SAME),
            Requirement.of("cores", RequirementOperator.GT, ["4"]),
            Requirement.of("cores", RequirementOperator.LT, ["65"]),
            Requirement.of("odd", RequirementOperator.UNSPECIFIED),
        ]
    ),
    "a gang in one of two racks": Profile.of(
        [Requirement.of(RACK, RequirementOperator.SAME, ["r-00001", "r-00002"])]
    ),
    "spread": Profile.of(
        spread=[
            Spread(ZONE, 1, SpreadMode.DO_NOT_SCHEDULE),
            Spread(RACK, 2, SpreadMode.SCHEDULE_ANYWAY),
            Spread("host", 3, SpreadMode.UNSPECIFIED),
        ]
    ),
    "text beyond ASCII": Profile.of(
        [Requirement.of("größe", RequirementOperator.IN, ["大", "🚀"])]
    ),
}

FROZEN = {
    "empty": (
        "b3455fec2c0f296d063fd3ef70f776f2",
        "76ed30898ed7a9d0f945ce157e064e98",
    ),
    "one pinned type": (
        "2b6f6c0e3a3b53beec7a5b043c529e1a",
        "ea7bcee0a0063f5ca366debd0544fc43",
    ),
    "the same at priority 100": (
        "d0d4e7ee7f048adb88a01f5456f39252",
        "ea7bcee0a0063f5ca366debd0544fc43",
    ),
    "negative priority": (
        "879ee729732fff81cffe6484f8abfadd",
        "76ed30898ed7a9d0f945ce157e064e98",
    ),
    "both penalties": (
        "b15fa2e2d392822f6e90fadb211c4c3f",
        "76ed30898ed7a9d0f945ce157e064e98",
    ),
    "every operator": (
        "31c3eaaa4247cc756459e1b1a4cbb7b5",
        "d16f8ab90f9c3e3798ec0e911a72c697",
    ),
    "a gang in one of two racks": (
        "37dd1ccb40a7ce3284a76c921e194dac",
        "07ed587883bc3a1221553021a0ae2af4",
    ),
    "spread": (
        "69fe44a329f940066ed23c3aa77c6bd0",
        "0f9b6fb6b5f9428aa96316039ff97ca2",
    ),
    "text beyond ASCII": (
        "ed3792b6bf83ef603fc9c636e715cf5e",
        "0cb2f034ff3c784dffe1330abd6e7cc7",
    ),
}


@pytest.mark.parametrize("name", PROFILES)
def test_a_fingerprint_is_the_one_given_out_before(name: str) -> None:
    profile = PROFILES[name]
    assert (profile.fingerprint, profile.shape_fingerprint) == FROZEN[name]


def test_no_two_of_them_are_equal() -> None:
    assert len({profile.fingerprint for profile in PROFILES.values()}) == len(PROFILES)
