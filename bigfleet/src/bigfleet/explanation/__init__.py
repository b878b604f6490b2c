"""Why a need is unmet and what would help: found by deciding again, never guessed.

A pure package: values in, values out. It calls the engine's public `decide` on copies of what the
last decision was made on; the shard brings an engine of its own for that, runs it away from the
event loop and its cycle, and says when to stop. Nothing here is computed inside a cycle.

    situation   what one decision is made on, and what it made of one need
    changes     single changes to a situation: to the need, to limits, to the fleet
    supply      what matches a need: counts that rule trials out, and who holds the machines
    blockers    the one or two things whose removal makes the need met
    remedies    what a person could do; each is tried before it is shown
    trials      the order of trials, within a budget
    phrases     blockers, remedies and effects in words
"""

from bigfleet.explanation.situation import Effect, Situation
from bigfleet.explanation.trials import Explanation, TriedRemedy, explain

__all__ = ["Effect", "Explanation", "Situation", "TriedRemedy", "explain"]
