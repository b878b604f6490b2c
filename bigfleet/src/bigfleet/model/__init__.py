"""Plain values of the fleet: machines and their states, quantities, penalty buckets, requirements,
profiles, needs.

Everything else of BigFleet is written in these words, so this package imports nothing of ours.
Values are frozen and know no clock, no store and no wire; what is exported here is its public
face.
"""

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
    LABEL_CAPACITY_TYPE,
    LABEL_HOSTNAME,
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    CapacityType,
    HostRef,
    Leaving,
    Machine,
    MachineState,
    Stamp,
)
from bigfleet.model.need import (
    Need,
    NeedKey,
    OrderKey,
    StampKey,
    aggregate_rows,
    size_class,
    total_order_key,
)
from bigfleet.model.penalty import PenaltyBucket, bucket_from_int, bucket_of
from bigfleet.model.profile import Profile, Spread, SpreadMode
from bigfleet.model.quantity import (
    Quantity,
    QuantityFormat,
    parse_milli,
    parse_quantity,
    quantity_from_milli,
)
from bigfleet.model.requirements import Operator, Requirement, matches_all
from bigfleet.model.resources import (
    Resources,
    add,
    format_resources,
    is_uniform_multiple,
    maximum,
    parse_resources,
)
from bigfleet.model.validation import validate_machine

__all__ = [
    "ALLOCATABLE",
    "BOUND",
    "LABEL_CAPACITY_TYPE",
    "LABEL_HOSTNAME",
    "LABEL_INSTANCE_TYPE",
    "LABEL_ZONE",
    "LEGAL_MOVES",
    "REJECT_REASONS",
    "STABLE",
    "TRANSITIONAL",
    "CapacityType",
    "HostRef",
    "IllegalMoveError",
    "Leaving",
    "Machine",
    "MachineError",
    "MachineState",
    "ModelError",
    "Need",
    "NeedError",
    "NeedKey",
    "Operator",
    "OrderKey",
    "PenaltyBucket",
    "PenaltyError",
    "Profile",
    "Quantity",
    "QuantityError",
    "QuantityFormat",
    "RejectReason",
    "Requirement",
    "RequirementError",
    "Resources",
    "Spread",
    "SpreadError",
    "SpreadMode",
    "Stamp",
    "StampKey",
    "add",
    "aggregate_rows",
    "bucket_from_int",
    "bucket_of",
    "check_move",
    "format_resources",
    "is_legal_move",
    "is_uniform_multiple",
    "matches_all",
    "maximum",
    "parse_milli",
    "parse_quantity",
    "parse_resources",
    "quantity_from_milli",
    "size_class",
    "total_order_key",
    "validate_machine",
]
