"""One text per plan that holds everything it says, in terms that do not depend on row numbers.

Run as a program it prints the digests of generated cases, so that another process, with other
hashes and nothing cached, can be asked for the same.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable

from bigfleet.decision import Plan
from bigfleet.model import Need
from compare import fast_plan, stamps_of
from seen import mixed_case


def digest(plan: Plan, needs: list[Need]) -> str:
    """Equal exactly for plans that say the same about the same machines and needs."""
    return hashlib.sha256("\n".join(lines(plan, needs)).encode()).hexdigest()


def lines(plan: Plan, needs: list[Need]) -> Iterable[str]:
    """Actions in order, stamps, claims and verdicts, by id and identity."""
    for action in plan:
        need = needs[action.need] if action.need >= 0 else None
        of = (need.cluster, need.key) if need is not None else None
        yield f"{action.kind.title} {action.machine} {action.cluster} {action.grace_seconds} {of}"
    for given in stamps_of(plan):
        yield from (f"{mid} {stamp}" for mid, stamp in sorted(given.items()))
    claimed = sorted((plan.fleet.ids[i], int(r)) for i, r in enumerate(plan.claimed) if r >= 0)
    yield from (f"{mid} claimed by row {row}" for mid, row in claimed)
    v = plan.verdicts
    for row in range(len(v)):
        members = [needs[i].key for i in v.members[v.members_at[row] : v.members_at[row + 1]]]
        missing, freed = sorted(plan.missing(row).items()), sorted(plan.freed(row).items())
        yield (
            f"{members} {plan.domain(row)} {plan.reason(row).name} {bool(v.satisfied[row])} "
            f"{missing} {freed} {int(v.claimed[row])} {int(v.from_idle[row])} "
            f"{int(v.from_speculative[row])} {int(v.victims[row])} {v.matching[row].tolist()}"
        )
    yield f"last stamp {plan.carry.last_sequence}"


def digest_of(seed: int, workers: int = 1) -> str:
    """The digest of a generated case's plan."""
    case = mixed_case(seed)
    return digest(fast_plan(case, workers=workers), case.needs)


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        sys.stdout.write(f"{digest_of(number)}\n")
