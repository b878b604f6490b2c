"""What a start does with the work that was in flight when the process stopped.

Create launches again with the same token, Drain and Delete run again; each gets its whole time from
now. Configure cannot start again, because its bootstrap data is not kept: it waits for a sign of
success until the deadline that was stored with it.
"""

from dataclasses import replace

from bigfleet_providerkit.backend.heal import Healer
from bigfleet_providerkit.backend.runner import Runner
from bigfleet_providerkit.backend.state.ledger import Ledger, Work
from bigfleet_providerkit.hostexec.hostkey import new_seed
from bigfleet_providerkit.machines.state import IN_FLIGHT, Kind, State
from bigfleet_providerkit.options.settings import Settings


def resume_all(
    ledger: Ledger, runner: Runner, healer: Healer, settings: Settings, now: float
) -> int:
    """Take up everything that was under way; the number of transitions."""
    resumed = 0
    for record in list(ledger.inventory):
        if record.state is State.FAILED:
            healer.failed(record)
            continue
        kind = IN_FLIGHT.get(record.state)
        if kind is None:
            continue
        work = ledger.work.get(record.id)
        if work is None or work.operation != record.operation(kind):
            pinned = kind is Kind.CREATE and settings.pinned_host_keys
            work = Work(
                kind, record.operation(kind), now, now + settings.limit(kind),
                seed=new_seed() if pinned else b"",
            )  # fmt: skip
        if kind is not Kind.CONFIGURE:
            limit = settings.limit(kind, work.grace, record.shape.instance_type)
            work = replace(work, started=now, deadline=now + limit)
        ledger.work[record.id] = work
        runner.resume(record, work)
        resumed += 1
    return resumed
