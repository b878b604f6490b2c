"""The decision engine: which machines serve which cluster. Pure: no I/O, no clock, no randomness.

A decision goes in and out as values:

    policy       the settings of one cycle: holds, quotas, spend limit, weights
    carry        what one cycle leaves for the next: ages, offerings out of stock, back-offs
    plan         the result: actions, claims, stamps, a verdict for each need; `kinds` names them

The pipeline that makes it, in order:

    engine       the entry; marks phantoms and machines near their end, then runs the steps below
    work_budget  which clusters are left out, so that one cannot cost the others
    cancel_word  how a decision is ended early, as a whole
    tables       columns in one scale, classes with their costs
    matcher      requirements against classes; `domains`: topology of gangs and spreads
    normalise    gangs that fit on one machine fold; rows in the total order
    row_columns  rows as the kernels read them; `row_identity`: what they are apart from amounts
    cycle_arrays all arrays of a cycle under the kernels' names
    cycle_tables facts and lists as the kernels read them; `buffers`: what they write in
    kernels      credit, gangs, assign, acquire, preempt (with the grace of a drain), reclaim:
                 compiled, over columns; `victims`: what can be preempted, and its scores
    concurrency  workers that propose ahead, one broker that commits in order
    finish       plan: actions, stamps, verdicts, next carry; `unmet_reasons`: why not
    interning    results that are kept while their inputs stay the same

docs/internals/decision-engine.md explains the rules, docs/internals/transcripts shows them.
"""

from bigfleet.decision.cancel_word import CancelWord, DecisionCancelledError
from bigfleet.decision.carry import BackOff, Carry, ClockSet
from bigfleet.decision.engine import Engine
from bigfleet.decision.kinds import ActionKind, Reason
from bigfleet.decision.plan import Action, Counters, Plan
from bigfleet.decision.policy import Policy, VictimWeights

__all__ = [
    "Action",
    "ActionKind",
    "BackOff",
    "CancelWord",
    "Carry",
    "ClockSet",
    "Counters",
    "DecisionCancelledError",
    "Engine",
    "Plan",
    "Policy",
    "Reason",
    "VictimWeights",
]
