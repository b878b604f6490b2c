"""What a mutation does to a machine: pure functions from record to record.

    decide    is this a repeat, a refusal, or the start of something?
    accept    the record in its transitional state
    succeed   the record at the target
    fail      the record as FAILED; it keeps host, cluster and metadata
    reborn    the record as a new life: healed, or given back

Nothing else changes the state of a record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bigfleet_providerkit.machines.record import Record, Shape
from bigfleet_providerkit.machines.state import IN_FLIGHT, Kind, State


@dataclass(frozen=True, slots=True)
class Repeat:
    """The machine is on this mutation's way or at its target: the stored operation answers."""

    operation: str


@dataclass(frozen=True, slots=True)
class OutOfPosition:
    """The machine is somewhere else."""

    text: str


@dataclass(frozen=True, slots=True)
class Start:
    """The mutation may begin."""


Decision = Repeat | OutOfPosition | Start


def decide(record: Record, kind: Kind) -> Decision:
    """Whether a mutation repeats the stored one, may start, or is out of position."""
    stored = record.operation(kind)
    if stored and record.state in (kind.transitional, kind.target):
        return Repeat(stored)
    if record.state is not kind.source:
        return OutOfPosition(f"{kind.word} is not possible in state {record.state.word}")
    return Start()


@dataclass(frozen=True, slots=True)
class ClusterBinding:
    """What Configure writes into the record when it is accepted."""

    cluster: str = ""
    metadata: bytes = b""


def accept(
    record: Record, kind: Kind, operation: str, binding: ClusterBinding | None = None
) -> Record:
    """The machine in the transitional state of an accepted mutation."""
    match kind:
        case Kind.CREATE:
            # A new life: only Delete's own id outlived the old one, and it ends here as well.
            return replace(
                record,
                state=kind.transitional,
                create_op=operation,
                configure_op="",
                drain_op="",
                delete_op="",
            )
        case Kind.CONFIGURE:
            bound = binding or ClusterBinding()
            return replace(
                record,
                state=kind.transitional,
                configure_op=operation,
                cluster=bound.cluster,
                metadata=bound.metadata,
            )
        case Kind.DRAIN:
            return replace(record, state=kind.transitional, drain_op=operation)
        case Kind.DELETE:
            return replace(record, state=kind.transitional, delete_op=operation)


def in_progress(record: Record, kind: Kind, operation: str) -> bool:
    """Whether the machine still is where this operation put it."""
    return record.state is kind.transitional and record.operation(kind) == operation


def succeed(record: Record, kind: Kind, *, host: str = "", shape: Shape | None = None) -> Record:
    """The machine at the target of a mutation that ended well."""
    match kind:
        case Kind.CREATE:
            return replace(record, state=State.IDLE, host=host, shape=shape or record.shape)
        case Kind.CONFIGURE:
            return replace(record, state=State.CONFIGURED)
        case Kind.DRAIN:
            return replace(record, state=State.IDLE, cluster="", metadata=b"")
        case Kind.DELETE:
            return replace(reborn(record), delete_op=record.delete_op)


def fail(record: Record, error: str, at: float) -> Record:
    """The machine as FAILED. Nothing is cleared: a person should see what was lost."""
    kind = IN_FLIGHT.get(record.state)
    return replace(
        record,
        state=State.FAILED,
        last_error=error,
        failed_at=at,
        failed_in=kind.word if kind else "",
    )


def reborn(record: Record) -> Record:
    """A new life: SPECULATIVE, with nothing of the old one but the slot itself."""
    return Record(
        id=record.id,
        label=record.label,
        shape=record.shape,
        life=record.life + 1,
        extra=record.extra,
    )


def operations_of(record: Record) -> Mapping[Kind, str]:
    """The stored operations of a machine, by kind."""
    return {kind: operation for kind in Kind if (operation := record.operation(kind))}
