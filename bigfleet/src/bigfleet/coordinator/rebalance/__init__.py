"""Machines that change their shard, because demand stayed unmet at another.

    rules       the numbers: ages, margins, shares, waits
    catalogue   kinds of machines and what fits them, over all shards
    reading     reports as values
    known       the tables that planning looks at
    supply      what shards could give, as columns; bound: what they use
    donors      who gives, tier by tier
    planning    which moves to begin: a function of reports and tables
    moves       how a move goes on: a function of what both sides hold and say
    orders      what shards are told
    course      what is known of moves under way, under one leadership
    rebalancer  the loop that plans, writes and tells

Planning and moves are functions of values; nothing but the loop waits or writes.
"""

from bigfleet.coordinator.rebalance.planning import Plan, Suppressed, plan
from bigfleet.coordinator.rebalance.rebalancer import FleetRebalancer

__all__ = ["FleetRebalancer", "Plan", "Suppressed", "plan"]
