"""What shards are told about a move, on the wire.

Ids of instructions say which move they belong to: what stands before the last slash. What a shard
is to do once always has the same id, whichever leader says it and however often, because a shard
that has done it takes the same names under another id as the word to forget the transfer. That word
has an id of its own each time: a shard that was interrupted needs to hear it twice.

Machines are named with both ends of the transfer, also Speculative ones: a shard that is told only
names would have to guess which end it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bigfleet.coordinator.rebalance.moves.advance import MoveInstruction, MoveTask
from bigfleet.coordinator.reports.instructions import Payload
from bigfleet.coordinator.state import Move, Tier
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2 as provider

_ONCE: Final = frozenset(
    {MoveTask.PICK, MoveTask.DRAIN, MoveTask.GIVE, MoveTask.ADOPT, MoveTask.BACK}
)
_UNSTATED: Final = 1
"""Demand that states no penalty yields to all that states one."""


def instruction_id(move: Move, order: MoveInstruction, mint: Callable[[], str]) -> str:
    """The id of an instruction; `mint` gives text that no leader has used before."""
    return f"{move.id}/{order.task}" if order.task in _ONCE else f"{move.id}/{order.task}-{mint()}"


def payload_of(move: Move, order: MoveInstruction) -> Payload:
    """What the shard is told."""
    match order.task:
        case MoveTask.PICK if move.tier is Tier.QUOTA:
            slots = pb.ReassignSpeculative()
            _select(move, slots)
            return slots
        case MoveTask.PICK:
            picked = pb.TransferOwnership(from_shard_id=move.donor, to_shard_id=move.recipient)
            _select(move, picked)
            return picked
        case MoveTask.DRAIN:
            bucket = max(_UNSTATED, move.wish.interruption_penalty_bucket)
            drained = pb.CrossShardDrain(
                preemptor_priority=move.wish.priority,
                interruption_penalty_bucket=capacity.PenaltyBucket.ValueType(bucket),
            )
            _select(move, drained)
            return drained
        case MoveTask.BACK | MoveTask.FORGET:
            return pb.TransferOwnership(
                machine_ids=order.machine_ids,
                from_shard_id=move.recipient,
                to_shard_id=move.donor,
            )
        case MoveTask.GIVE | MoveTask.ADOPT | MoveTask.SETTLE:
            return pb.TransferOwnership(
                machine_ids=order.machine_ids,
                from_shard_id=move.donor,
                to_shard_id=move.recipient,
            )


def _select(
    move: Move, into: pb.ReassignSpeculative | pb.TransferOwnership | pb.CrossShardDrain
) -> None:
    """How many, and what they must be like."""
    wish = move.wish
    into.count = move.count
    into.instance_type, into.zone = wish.instance_type, wish.zone
    into.provider, into.region = wish.provider, wish.region
    into.requirements.extend(
        capacity.NodeSelectorRequirement(
            key=key,
            operator=capacity.NodeSelectorRequirement.Operator.ValueType(operator),
            values=values,
        )
        for key, operator, values in wish.requirements
    )
    into.min_unit.CopyFrom(provider.Resources(resources=dict(wish.min_unit)))
    into.tolerations.extend(
        capacity.Toleration(key=key, operator=operator, value=value, effect=effect)
        for key, operator, value, effect in wish.tolerations
    )
    into.tolerations_stated = wish.is_tolerations_stated
