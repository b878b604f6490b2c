"""A slow and obvious implementation of the decision rules, to hold the fast engine against.

It works on lists of Machine and Need values, recomputes everything at every step, and compares
cost and coverage as exact fractions. Nothing here is shared with ``bigfleet.decision`` but the
settings and the words (Policy, ActionKind, Reason): a mistake would have to be made twice.

    World      one cycle's machines, rows and what is claimed (world.py)
    normalise  demand -> rows in the total order (normalise.py)
    credit     what clusters already have (credit.py), gangs' domains (gangs.py)
    acquire    Idle and Speculative machines for what is missing (acquire.py)
    preempt    excess and victims (preempt.py)
    reclaim    reclaim, release, verdicts (reclaim.py)
"""

from oracle.engine import Carry, OraclePlan, decide

__all__ = ["Carry", "OraclePlan", "decide"]
