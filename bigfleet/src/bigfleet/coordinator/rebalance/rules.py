"""The numbers by which machines change their shard. Times are seconds."""

from __future__ import annotations

from typing import Final

ESCALATION_AGE: Final = 5
"""A shortfall older than so many cycles may be met by other shards."""
PREEMPTION_AGE: Final = 12
"""Older than this, also by machines that serve lower priority there."""
MARGIN: Final = 0.10
"""What a donor keeps of its Idle machines of the kinds in question, at least one."""
ROUND_SHARE: Final = 0.10
"""What one round may take of a donor's Idle machines, though always one."""

REPORT_SECONDS: Final = 10.0
ROUND_SECONDS: Final = 30.0
LEAST_GAP_SECONDS: Final = 1.0
"""Between two rounds, however urgent."""
STALE_SECONDS: Final = 30.0
"""A report older than this says nothing about the present."""
COOLDOWN_SECONDS: Final = 8 * REPORT_SECONDS
"""No move back between the same two shards, and no second question to a donor that had nothing."""
ARRIVAL_SECONDS: Final = 4 * REPORT_SECONDS
"""How long after adoption the recipient's reports may still not count what it got."""

MOST_MOVES: Final = 500
"""Begun by one round, and under way together."""
MOST_PREEMPTED: Final = 100
"""Machines drained for others by one round."""

PICK_SECONDS: Final = 300.0
"""A donor that has not answered by then is not asked any more."""
DRAIN_SECONDS: Final = 1_500.0
"""The same for drained machines; a shard keeps them for 1,800 seconds."""
DRAINED_FIRST_SECONDS: Final = 15.0
"""After a drain began, before its machines are first asked for."""
RETRY_SECONDS: Final = 10.0
DRAIN_RETRY_SECONDS: Final = 30.0
MOST_OFFERS: Final = 5
"""A recipient that failed so often does not get the machines."""
GONE_SECONDS: Final = 60.0
"""Not registered for so long, a shard is taken to be gone; a live one registers again sooner."""
SILENT_SECONDS: Final = 120.0
"""A new leader waits so long for a donor's word before it goes on without."""
KEPT_SECONDS: Final = 3_600.0
"""Moves that are over can be looked at for so long."""
KEPT_FOR_THE_GONE_SECONDS: Final = 30 * 24 * 3_600.0
"""The same for moves whose machines were taken back from a shard that was removed."""
LOOK_SECONDS: Final = 5.0
"""While moves are under way, they are looked at so often even without a report."""
