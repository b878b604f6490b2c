"""Plain values of the fleet: machines and their states, quantities, penalty buckets, requirements,
taints and tolerations, profiles, needs.

    amounts     quantities, sets of resources, penalty buckets
    demand      needs, profiles, requirements, taints and tolerations
    columns     fleet and demand as columns, as the engine reads them
    machine     machines; lifecycle: their states; validation: which records a shard accepts
    facts       what a shard knows about a cluster besides its demand
    match_set   what needs ask of the labels and taints of machines
    reasons     why a need stays unmet; blockers: what stands in its way

Everything else of BigFleet is written in these words, so this package imports nothing of ours.
Values are frozen and know no clock, no store and no wire; what is exported here is its public
face.
"""

from bigfleet.model.amounts.penalty import PenaltyBucket, bucket_from_int, bucket_of
from bigfleet.model.amounts.quantity import (
    Quantity,
    QuantityFormat,
    parse_milli,
    parse_quantity,
    quantity_from_milli,
)
from bigfleet.model.amounts.resources import (
    Resources,
    add,
    format_resources,
    is_uniform_multiple,
    maximum,
    parse_resources,
)
from bigfleet.model.demand.need import (
    Need,
    NeedKey,
    StampKey,
    aggregate_rows,
    size_class,
)
from bigfleet.model.demand.profile import Profile, Spread, SpreadMode
from bigfleet.model.demand.requirements import Requirement, RequirementOperator, matches_all
from bigfleet.model.demand.taints import (
    Taint,
    TaintEffect,
    Toleration,
    TolerationOperator,
    admits,
    canonical_taints,
    untolerated,
)
from bigfleet.model.errors import (
    REJECT_REASONS,
    IllegalMoveError,
    MachineError,
    ModelError,
    NeedError,
    PenaltyError,
    QuantityError,
    RejectReason,
    RequirementError,
    SpreadError,
    TaintError,
)
from bigfleet.model.lifecycle import (
    ALLOCATABLE,
    BOUND,
    LEGAL_MOVES,
    STABLE,
    TRANSITIONAL,
    check_move,
    is_legal_move,
)
from bigfleet.model.machine import (
    LABEL_ARCH,
    LABEL_CAPACITY_TYPE,
    LABEL_HOSTNAME,
    LABEL_INSTANCE_TYPE,
    LABEL_OS,
    LABEL_ZONE,
    CapacityType,
    Departure,
    HostRef,
    Machine,
    MachineState,
    Stamp,
)
from bigfleet.model.match_set import ASSUMED, defaults_of, has_defaults
from bigfleet.model.validation import validate_machine

__all__ = [
    "ALLOCATABLE",
    "ASSUMED",
    "BOUND",
    "LABEL_ARCH",
    "LABEL_CAPACITY_TYPE",
    "LABEL_HOSTNAME",
    "LABEL_INSTANCE_TYPE",
    "LABEL_OS",
    "LABEL_ZONE",
    "LEGAL_MOVES",
    "REJECT_REASONS",
    "STABLE",
    "TRANSITIONAL",
    "CapacityType",
    "Departure",
    "HostRef",
    "IllegalMoveError",
    "Machine",
    "MachineError",
    "MachineState",
    "ModelError",
    "Need",
    "NeedError",
    "NeedKey",
    "PenaltyBucket",
    "PenaltyError",
    "Profile",
    "Quantity",
    "QuantityError",
    "QuantityFormat",
    "RejectReason",
    "Requirement",
    "RequirementError",
    "RequirementOperator",
    "Resources",
    "Spread",
    "SpreadError",
    "SpreadMode",
    "Stamp",
    "StampKey",
    "Taint",
    "TaintEffect",
    "TaintError",
    "Toleration",
    "TolerationOperator",
    "add",
    "admits",
    "aggregate_rows",
    "bucket_from_int",
    "bucket_of",
    "canonical_taints",
    "check_move",
    "defaults_of",
    "format_resources",
    "has_defaults",
    "is_legal_move",
    "is_uniform_multiple",
    "matches_all",
    "maximum",
    "parse_milli",
    "parse_quantity",
    "parse_resources",
    "quantity_from_milli",
    "size_class",
    "untolerated",
    "validate_machine",
]
