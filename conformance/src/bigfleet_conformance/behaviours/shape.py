"""Field shape and cost: what every record has to look like (B8xx)."""

from decimal import Decimal

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import CannotRunError, check
from bigfleet_conformance.harness.oracles import (
    CONFIGURED,
    IDLE,
    SPECULATIVE,
    TRANSITIONAL,
    misfit,
    price_misfit,
    quantity,
    word,
)
from bigfleet_conformance.harness.probe import Probe, is_clean
from bigfleet_conformance.harness.watch import never
from bigfleet_conformance.registry import Area, Capability, Chapter, Profile

row = Chapter(Area.SHAPE, section="3.7").row
FORBIDDEN_LABELS = (
    *("instance-type", "instance_type", "instanceType"),
    *("zone", "availability-zone", "availability_zone"),
    *("capacity-type", "capacity_type", "capacityType"),
)


@row("B801", slots=0)
async def every_record_is_named(p: Probe) -> None:
    """Every record has id, state and type, and labels repeat no field.

    Why: a label that repeats a field can contradict it.
    Does: sweep over all machines.
    Passes: id, state and instance_type set; labels hold none of the names of type, zone and
    capacity type.
    """
    for machine in await p.sweep():
        check(machine.id, "a machine has no id")
        check(machine.state, f"{machine.id} has no state")
        check(machine.instance_type, f"{machine.id} has no instance_type")
        for label in FORBIDDEN_LABELS:
            check(label not in machine.labels, f"{machine.id} has the label {label!r}")


@row("B802", slots=0, also=(Profile.SPOT,))
async def prices_are_in_bounds(p: Probe) -> None:
    """Prices and probabilities are in their bounds.

    Why: all capacity is one pool ordered by cost; one NaN spoils the order.
    Does: sweep.
    Passes: price finite and not negative; probability in [0,1]; SPOT above 0 (no SPOT machine is
    fine outside profile spot).
    """
    machines = await p.sweep()
    never(machines, price_misfit)
    if p.setting.spot_demanded:
        check(
            any(m.capacity_type == pb.CAPACITY_TYPE_SPOT for m in machines),
            "profile spot is asked for and no SPOT machine is listed",
        )


@row("B803")
async def host_and_cluster_fit_the_state(p: Probe) -> None:
    """Host and cluster fit the state.

    Why: a shard refuses a record that contradicts itself, and loses sight of the machine.
    Does: sweep and one full walk, with a Create out of position on the way.
    Passes: host and cluster fit the state table of wire.md 3.7, in records and acks.
    """
    never(await p.sweep(), misfit)
    walker = p.slot()
    async with p.watch(walker.id) as trace:
        await walker.create()
        await walker.configure(p.binding())
        out_of_place = await walker.try_create()
        if out_of_place.ok:
            never([out_of_place.must_be_ok().machine], misfit)
            await walker.until(CONFIGURED, IDLE)
        never([await walker.see()], misfit)
        if (await walker.see()).state == CONFIGURED:
            await walker.drain()
        if p.claims(Capability.DELETE):
            await walker.delete()
    never(trace.samples, misfit)
    never(await p.sweep(), misfit)


@row("B804")
async def quantities_parse(p: Probe) -> None:
    """Resources and allocatable are quantities.

    Why: what does not parse cannot be compared with a need.
    Does: reads machines with resources and allocatable; unset allocatable counts as equal.
    Passes: shared keys parse, every Kubernetes quantity allowed; resources above 0.
    """
    await p.idle()
    machines = [m for m in await p.sweep() if m.resources.resources]
    if not machines:
        raise CannotRunError("no machine has resources; there is nothing to judge")
    for machine in machines:
        resources = machine.resources.resources
        allocatable = machine.allocatable.resources or resources
        for key in resources.keys() & allocatable.keys():
            for text in (resources[key], allocatable[key]):
                parsed(machine, key, text)
            value = parsed(machine, key, resources[key])
            check(value > 0, f"{machine.id}: {key} is {resources[key]!r}")


def parsed(machine: pb.Machine, key: str, text: str) -> Decimal:
    """A quantity, or a finding."""
    try:
        return quantity(text)
    except ValueError as error:
        check(False, f"{machine.id}: {key}: {error}")
        raise


@row("B805")
async def host_provider_is_constant(p: Probe) -> None:
    """host.provider is set and never changes.

    Why: it says whose host this is.
    Does: Get and List over IDLE, CONFIGURED, IDLE.
    Passes: host.provider non-empty and constant.
    """
    walker = await p.idle()
    seen: set[str] = set()

    async def look() -> None:
        seen.add((await walker.see()).host.provider)
        seen.add((await p.listed_once(walker.id)).host.provider)

    await look()
    await walker.configure(p.binding())
    await look()
    await walker.drain()
    await look()
    check(seen and "" not in seen, "host.provider is empty")
    check(len(seen) == 1, f"host.provider changed: {sorted(seen)}")


@row("B806")
async def settled_machines_have_a_place(p: Probe) -> None:
    """A machine with a host says where and what kind it is.

    Why: zones and kinds are what needs are matched on.
    Does: reads settled machines with a host.
    Passes: capacity_type set, zone non-empty.
    """
    walker = await p.idle()
    await p.stays(walker.id, 0.05)
    machines = [m for m in await p.sweep() if m.host.ref and m.state not in TRANSITIONAL]
    for machine in (*machines, await walker.see()):
        check(machine.capacity_type, f"{machine.id} has no capacity_type")
        check(machine.zone, f"{machine.id} is {word(machine.state)} and has no zone")


@row("B807", also=(Profile.CLOUD,), needs=(Capability.DELETE,))
async def an_empty_slot_is_empty(p: Probe) -> None:
    """After Delete nothing of the machine is left.

    Why: the slot's next life must not start with the last one's host.
    Does: Configure, Drain, Delete.
    Passes: host, cluster and metadata all cleared.
    """
    walker = await p.bound(p.binding("", key="value"))
    await walker.drain()
    await walker.delete()
    now = await p.stays(walker.id)
    check(now.state == SPECULATIVE, f"settled {word(now.state)}")
    check(not now.host.ref and not now.host.provider, f"host {now.host.ref!r} is left")
    is_clean(now)
