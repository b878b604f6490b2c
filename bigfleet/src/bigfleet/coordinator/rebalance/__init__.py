"""Moves machines between shards, because demand stayed unmet at one of them.

    rules       the numbers: ages, margins, shares, waits
    planning    which moves to begin: a function of reports and tables
    moves       how a move advances: a function of what both shards hold and reply
    rebalancer  the loop that plans, writes commands and sends instructions

Planning and moves are functions of values; only the loop waits or writes.
"""

from bigfleet.coordinator.rebalance.planning.planner import RebalancePlan, SuppressedShortfall, plan
from bigfleet.coordinator.rebalance.rebalancer import FleetRebalancer

__all__ = ["FleetRebalancer", "RebalancePlan", "SuppressedShortfall", "plan"]
