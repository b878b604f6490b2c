"""The baseline: 24 named checks that a new provider passes first, in under 15 seconds."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bigfleet_conformance.behaviours.metadata import same
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import Binding, Code
from bigfleet_conformance.harness.oracles import (
    CONFIGURED,
    FAILED,
    IDLE,
    ROUND,
    SPECULATIVE,
    price_misfit,
    word,
)
from bigfleet_conformance.harness.probe import Probe, is_clean
from bigfleet_conformance.harness.watch import never, stray
from bigfleet_conformance.registry import Capability

CheckTest = Callable[[Probe], Awaitable[None]]


class SkippedCheck(Exception):  # noqa: N818 - no error: the provider does not offer it
    """The provider does not offer what the check is about."""


@dataclass(frozen=True, slots=True)
class Check:
    """One named check."""

    name: str
    group: str
    test: CheckTest


CHECKS: list[Check] = []


def named(name: str, group: str) -> Callable[[CheckTest], CheckTest]:
    """Register a check under its name."""

    def register(test: CheckTest) -> CheckTest:
        CHECKS.append(Check(name, group, test))
        return test

    return register


@named("FullLifecycle", "lifecycle")
async def full_lifecycle(p: Probe) -> None:
    """Create, Configure, Drain and, where offered, Delete."""
    walker = await p.bound()
    await walker.drain()
    if p.claims(Capability.DELETE):
        await walker.delete()


@named("TransitionalStateObservability", "lifecycle")
async def transitional_states(p: Probe) -> None:
    """What is seen on the way is right."""
    walker = p.slot()
    async with p.watch(walker.id, 0.005) as trace:
        await walker.create()
        await walker.configure(p.binding())
        await walker.drain()
    wrong = stray(trace.path, ROUND)
    check(not wrong, f"{wrong} is not a legal step")


@named("DrainGraceTimeout", "lifecycle")
async def drain_without_grace(p: Probe) -> None:
    """A drain without grace ends, and never at CONFIGURED."""
    walker = await p.bound()
    (await walker.try_drain(grace=0)).must_be_ok()
    ended = await walker.until(IDLE, FAILED, within_s=max(10.0, p.pace.settle_s / 3))
    check(ended.state == IDLE or ended.last_error, "FAILED with an empty last_error")


@named("DrainOnSpeculative", "lifecycle")
async def drain_on_speculative(p: Probe) -> None:
    """Nothing to drain."""
    walker = p.slot()
    before = await walker.see()
    (await walker.try_drain()).must_be_refused()
    await p.untouched(before)


@named("DeleteOnConfigured", "lifecycle")
async def delete_on_configured(p: Probe) -> None:
    """A bound machine is not given back."""
    walker = await p.bound()
    before = await walker.see()
    (await walker.try_delete()).must_be_refused()
    await p.untouched(before)


async def twice(first: str, second: str) -> None:
    """Two answers to one operation have one id."""
    check(first and first == second, f"the first answer had id {first!r}, the repeat {second!r}")


@named("CreateIdempotent", "repeats")
async def create_twice(p: Probe) -> None:
    """The same id twice."""
    walker = p.slot()
    first = await walker.create()
    await twice(first.operation_id, (await walker.try_create()).must_be_ok().operation_id)


@named("ConfigureIdempotent", "repeats")
async def configure_twice(p: Probe) -> None:
    """The same id twice."""
    walker = await p.idle()
    first = await walker.configure(p.binding())
    again = await walker.try_configure(p.binding())
    await twice(first.operation_id, again.must_be_ok().operation_id)


@named("DrainIdempotent", "repeats")
async def drain_twice(p: Probe) -> None:
    """The same id twice."""
    walker = await p.bound()
    first = await walker.drain()
    await twice(first.operation_id, (await walker.try_drain()).must_be_ok().operation_id)


@named("DeleteIdempotent", "repeats")
async def delete_twice(p: Probe) -> None:
    """The same id twice."""
    walker = await p.idle()
    first = await walker.try_delete()
    if first.code is Code.UNIMPLEMENTED and not p.claims(Capability.DELETE):
        raise SkippedCheck("Delete is not offered")
    id = first.must_be_ok().operation_id
    await walker.until(SPECULATIVE)
    await twice(id, (await walker.try_delete()).must_be_ok().operation_id)


@named("GetUnknownMachine", "reads")
async def get_unknown(p: Probe) -> None:
    """NOT_FOUND."""
    check(await p.get(f"unknown-{p.shard()}") is Code.NOT_FOUND, "an unknown machine is found")


@named("DeleteUnknownMachine", "reads")
async def delete_unknown(p: Probe) -> None:
    """NOT_FOUND, or UNIMPLEMENTED."""
    ghost = p.machine(f"unknown-{p.shard()}")
    (await ghost.try_delete()).must_be(Code.NOT_FOUND, Code.UNIMPLEMENTED)


@named("ListFiltersByState", "reads")
async def list_filters(p: Probe) -> None:
    """Only the asked state."""
    await p.idle()
    for state in (SPECULATIVE, IDLE, CONFIGURED):
        strangers = [m for m in (await p.list([state])).machines if m.state != state]
        check(not strangers, f"List({word(state)}) has {len(strangers)} machines in other states")


@named("ListMaxResults", "reads")
async def list_caps(p: Probe) -> None:
    """One when one is asked for."""
    check(len((await p.list(most=1)).machines) == 1, "max_results 1 does not give one machine")


@named("ListRevisionAdvances", "reads")
async def list_revision(p: Probe) -> None:
    """A change moves the revision, where there is one."""
    before = (await p.list()).revision
    if not before:
        raise SkippedCheck("there are no revisions")
    await p.idle()
    check((await p.list()).revision != before, "the revision stands still")


@named("LabelShape", "reads")
async def label_shape(p: Probe) -> None:
    """instance_type and state are set."""
    for machine in await p.sweep():
        check(machine.instance_type and machine.state, f"{machine.id} lacks type or state")


@named("CostFieldBounds", "reads")
async def cost_bounds(p: Probe) -> None:
    """Price and probability are in their bounds."""
    never(await p.sweep(), price_misfit)


@named("FencingUnknownShardAccepted", "fence")
async def unknown_shard(p: Probe) -> None:
    """First contact sets the mark."""
    walker = p.slot()
    (await walker.try_create(walker.at(1, 1))).must_be_ok()


@named("FencingStaleEpochRejected", "fence")
async def stale_epoch(p: Probe) -> None:
    """A lower epoch is stale."""
    walker = p.slot()
    (await walker.try_create(walker.at(5, 1))).must_be_ok()
    (await walker.try_create(walker.at(4, 99))).must_be_fenced()


@named("FencingStaleSequenceRejected", "fence")
async def stale_sequence(p: Probe) -> None:
    """A lower or equal sequence is stale."""
    walker = p.slot()
    (await walker.try_create(walker.at(1, 5))).must_be_ok()
    (await walker.try_create(walker.at(1, 4))).must_be_fenced()
    (await walker.try_create(walker.at(1, 5))).must_be_fenced()


@named("FencingNewEpochResetsSequence", "fence")
async def new_epoch(p: Probe) -> None:
    """A higher epoch makes any sequence acceptable."""
    walker = p.slot()
    (await walker.try_create(walker.at(1, 99))).must_be_ok()
    (await walker.try_create(walker.at(2, 1))).must_be_ok()


@named("FencingReadsUnaffected", "fence")
async def reads_unaffected(p: Probe) -> None:
    """Reads know no fence."""
    walker = p.slot()
    (await walker.try_create(walker.at(9, 9))).must_be_ok()
    (await walker.try_create(walker.at(1, 1))).must_be_fenced()
    await walker.see()
    await p.listed_once(walker.id)


@named("MetadataEchoedOnGetAndList", "metadata")
async def metadata_echo(p: Probe) -> None:
    """Byte for byte."""
    wanted = {"plain": "value", "nul": "a\0b", "empty": ""}
    walker = await p.bound(Binding(metadata=wanted))
    same(await walker.see(), wanted, "Get")
    same(await p.listed_once(walker.id), wanted, "List")


@named("MetadataAndBindingClearOnDrain", "metadata")
async def metadata_clears(p: Probe) -> None:
    """Nothing is left after a drain."""
    walker = await p.bound()
    await walker.drain()
    is_clean(await walker.see())


@named("MetadataUnknownKeysPreservedVerbatim", "metadata")
async def unknown_keys(p: Probe) -> None:
    """Unknown keys are kept."""
    wanted = {"example.com/unknown": "1", "bigfleet.lucy.sh/not-yet": "später"}
    walker = await p.bound(Binding(metadata=wanted))
    await asyncio.sleep(0)
    same(await walker.see(), wanted, "Get")
