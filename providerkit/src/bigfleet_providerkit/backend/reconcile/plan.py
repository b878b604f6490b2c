"""The plan of one reconcile pass: a pure function from a listing to steps.

`ReconcileInput` is everything one pass looks at, `Looks` what earlier passes saw and are waiting
for, `Plan` what is to be done. Nothing here awaits or changes anything, so a pass over 20,000
hosts runs on another thread, and every row of the table is a test of values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bigfleet_providerkit.backend.reconcile.rails import RailLimits, too_many_vanished
from bigfleet_providerkit.machines.record import Record
from bigfleet_providerkit.machines.state import State
from bigfleet_providerkit.substrate import Host, Power

ABSENT = frozenset({Power.GONE, Power.PREEMPTED, Power.ENDING})
HALTED = frozenset({Power.STOPPED, Power.BROKEN})
BOUND_TO_HOST = frozenset({State.IDLE, State.CONFIGURED, State.CONFIGURING, State.DRAINING})
RESTS = frozenset({State.IDLE, State.CONFIGURED})
START_TRIES = 3


@dataclass(slots=True)
class Looks:
    """What is remembered between passes."""

    missing: dict[str, float] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    unwanted: dict[str, float] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    vanished: int = 0


@dataclass(frozen=True, slots=True)
class ReconcileInput:
    """Everything one pass looks at. `looked` holds the answers of second looks by ref."""

    records: Mapping[str, Record]
    hosts: Sequence[Host]
    looked: Mapping[str, Host | None]
    created: Callable[[str], float]
    late: frozenset[str]
    ours: Callable[[str], bool]
    now: float
    window: float
    limits: RailLimits


@dataclass(frozen=True, slots=True)
class Adoption:
    """A host that becomes the host of a slot; `new` slots are made for it."""

    machine: str
    host: Host
    new: bool


@dataclass(slots=True)
class Plan:
    """What a pass wants done."""

    present: list[tuple[str, Host]] = field(default_factory=list)
    retag: list[str] = field(default_factory=list)
    start: list[tuple[str, Host]] = field(default_factory=list)
    stuck: list[tuple[str, Host]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    leftovers: list[Host] = field(default_factory=list)
    adopt: list[Adoption] = field(default_factory=list)
    remove: list[Host] = field(default_factory=list)
    held: list[Host] = field(default_factory=list)
    orphans: int = 0


def due_for_second_look(given: ReconcileInput, looks: Looks) -> list[str]:
    """Refs to be asked for by id: missing since an earlier pass, and long enough."""
    refs = []
    for machine, since in looks.missing.items():
        record = given.records.get(machine)
        if record is None or not record.host:
            continue
        youngest = max(since, given.created(machine))
        if given.now - youngest >= given.window:
            refs.append(record.host)
    return refs


def make_plan(given: ReconcileInput, looks: Looks) -> Plan:
    """The steps of one pass; `looks` is brought up to date."""
    plan = Plan()
    unwanted: dict[str, Host] = {}
    by_machine: dict[str, list[Host]] = {}
    for host in given.hosts:
        if not host.machine_id:
            if host.power not in ABSENT:
                unwanted[host.ref] = host
                plan.orphans += 1
        else:
            by_machine.setdefault(host.machine_id, []).append(host)
    shown = {host.ref: host for host in given.hosts}
    _judge_records(given, looks, plan, shown)
    for machine, hosts in by_machine.items():
        _judge_others(given, machine, hosts, plan, unwanted)
    _judge_unwanted(given, looks, plan, unwanted)
    return plan


def _judge_records(
    given: ReconcileInput, looks: Looks, plan: Plan, shown: Mapping[str, Host]
) -> None:
    """Every record that has or had a host."""
    missing: list[Record] = []
    with_host = 0
    for record in given.records.values():
        if not record.host:
            continue
        with_host += 1
        host = shown.get(record.host)
        absent = host is None or host.power in ABSENT
        if record.state in BOUND_TO_HOST and absent:
            missing.append(record)
            continue
        looks.missing.pop(record.id, None)
        if host is None or host.power in ABSENT:
            if record.state is State.DELETING:
                plan.deleted.append(record.id)
            continue
        _judge_present(record, host, looks, plan)
    _judge_missing(given, looks, plan, missing, with_host)


def _judge_present(record: Record, host: Host, looks: Looks, plan: Plan) -> None:
    if host.power in HALTED and record.state in RESTS:
        tries = looks.starts.get(record.id, 0)
        if tries >= START_TRIES:
            plan.stuck.append((record.id, host))
            looks.starts.pop(record.id, None)
        else:
            looks.starts[record.id] = tries + 1
            plan.start.append((record.id, host))
        return
    if host.power is Power.RUNNING:
        looks.starts.pop(record.id, None)
    plan.present.append((record.id, host))
    if record.state in RESTS:
        wanted = record.cluster or None
        if host.cluster != wanted or host.machine_id != record.id:
            plan.retag.append(record.id)


def _judge_missing(
    given: ReconcileInput, looks: Looks, plan: Plan, missing: Sequence[Record], with_host: int
) -> None:
    if too_many_vanished(len(missing), with_host):
        looks.vanished += 1
    else:
        looks.vanished = 0
    believed = looks.vanished == 0 or looks.vanished >= given.limits.listings_to_believe
    for record in missing:
        if record.host not in given.looked:
            looks.missing.setdefault(record.id, given.now)
            continue
        found = given.looked[record.host]
        if found is not None and found.power not in ABSENT:
            # Alive, only its tags are gone: the listing by label could not show it.
            looks.missing.pop(record.id, None)
            plan.retag.append(record.id)
        elif believed:
            looks.missing.pop(record.id, None)
            plan.lost.append(record.id)


def _judge_others(
    given: ReconcileInput,
    machine: str,
    hosts: Sequence[Host],
    plan: Plan,
    unwanted: dict[str, Host],
) -> None:
    """Hosts with our label that are not the host of their machine's record."""
    record = given.records.get(machine)
    strangers: list[Host] = []
    for host in hosts:
        if host.power in ABSENT or (record is not None and record.host == host.ref):
            continue
        operation = host.operation_id
        present = record is not None and operation and record.create_op == operation
        if operation in given.late:
            plan.leftovers.append(host)
        elif present and record is not None and record.state is State.CREATING:
            continue
        elif given.ours(operation) and not present:
            plan.leftovers.append(host)
        else:
            strangers.append(host)
    strangers.sort(key=lambda host: (host.created, host.ref))
    if strangers and (record is None or record.state is State.SPECULATIVE):
        plan.adopt.append(Adoption(machine, strangers[0], new=record is None))
        strangers = strangers[1:]
    if record is not None and record.state in (State.CREATING, State.FAILED):
        # A Create may still claim one of them; a failed slot's are cleaned when it is healed.
        return
    for host in strangers:
        unwanted[host.ref] = host


def _judge_unwanted(
    given: ReconcileInput, looks: Looks, plan: Plan, unwanted: Mapping[str, Host]
) -> None:
    """Orphans and duplicates go after their grace, a few at a time."""
    for ref in [ref for ref in looks.unwanted if ref not in unwanted]:
        del looks.unwanted[ref]
        looks.held.discard(ref)
    due = []
    for ref, host in unwanted.items():
        since = looks.unwanted.setdefault(ref, given.now)
        if given.now - since >= given.limits.orphan_grace:
            due.append(host)
    if not given.limits.remove_orphans:
        return
    known = sum(1 for record in given.records.values() if record.host)
    fresh = [host for host in due if host.ref not in looks.held]
    allowed = given.limits.removals(known)
    plan.remove = fresh[:allowed]
    plan.held = [host for host in due if host not in plan.remove]
    looks.held.update(host.ref for host in plan.held)
