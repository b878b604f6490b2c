"""Scenarios about which machine serves a need: price, stock, risk, places."""

from bigfleet.model import Machine, Need
from transcripts.fleet import (
    BARE_METAL,
    CAPACITY_TYPE,
    PINNED,
    RACK,
    SPOT,
    ZONE,
    CycleInput,
    S,
    Scenario,
    create_fails,
    has,
    machine,
    need,
    operations_end,
)


def _slots(names: str, price: float, risk: float = 0.0, **more: str) -> tuple[Machine, ...]:
    """Slots that could be created, spot where they can be interrupted."""
    kind = {"kind": SPOT} if risk else {}
    return tuple(
        machine(name, S.SPECULATIVE, price=price, risk=risk, **kind, **more)  # type: ignore[arg-type]
        for name in names.split()
    )


def _stock_out() -> Scenario:
    return Scenario(
        name="stock-out",
        title="A stock-out keeps an offering out of the pool for a while",
        summary="""\
A Create fails because the provider has no capacity of this offering (provider, type, zone and
capacity type together). The engine then leaves the whole offering alone for 30 s, and for twice as
long after every further failure, up to 10 minutes. Until then the need is unmet with a reason that
says so, and the other slot of the same offering is not tried either.""",
        machines=_slots("a b", 0.40),
        needs={"web": need("shop", 4)},
        cycles=(
            CycleInput(0, (), "The first slot is created."),
            CycleInput(
                10,
                (create_fails("a"),),
                "Slot `b` matches and is free, but it belongs to the offering that is cooling.",
            ),
            CycleInput(40, (), "30 s after the failure the offering is tried once more."),
        ),
    )


def _fall_back() -> Scenario:
    return Scenario(
        name="fall-back-from-spot",
        title="Demand falls back from spot to on-demand capacity",
        summary="""\
The need accepts spot and on-demand machines, and spot is cheaper even with the expected loss by
interruptions added. When the provider runs out of spot, the next cycle takes the next cheapest
offering. There is no list of fall-backs to configure: a cooling offering is out of the pool, and
the rest is compared by cost as always.""",
        machines=(*_slots("spot-1", 0.12, 0.05), *_slots("demand-1", 0.40)),
        needs={"web": need("shop", 4, interruption=2)},
        cycles=(
            CycleInput(0, (), "Spot costs $0.12 + 0.05 x $2 = $0.22 an hour, on-demand $0.40."),
            CycleInput(10, (create_fails("spot-1"),), "On-demand is what is left."),
        ),
    )


def _idle_first() -> Scenario:
    return Scenario(
        name="idle-before-speculative",
        title="Idle machines are used before new ones are created",
        summary="""\
An Idle machine costs one bootstrap; a Speculative one must be created first. So Idle machines are
taken even where a slot would be cheaper by the hour. There is one exception: when the expected loss
by interruption of the Idle machine (probability x penalty) alone exceeds the whole cost of the
cheapest slot, the Idle machine goes behind the slot.""",
        machines=(
            machine("idle-spot", S.IDLE, SPOT, price=0.50, risk=0.20),
            *_slots("demand-1 demand-2", 0.40),
        ),
        needs={
            "batch": need("reports", 4, priority=10),
            "database": need("shop", 4, priority=500, interruption=16),
        },
        cycles=(
            CycleInput(
                0,
                (),
                "`database` comes first. For it `idle-spot` means 0.20 x $16 = $3.20 of expected "
                "loss an hour, far more than the $0.40 of a new machine: the exception applies. "
                "`batch` has no interruption penalty and takes the Idle machine, although a slot "
                "would cost $0.10 less.",
            ),
        ),
    )


def _pinned() -> Scenario:
    return Scenario(
        name="pinned",
        title="Pinned demand is never placed on a machine that can be interrupted",
        summary="""\
A pinned interruption penalty means that no price makes up for an interruption. Machines with an
interruption probability above zero are then out of the question, however cheap they are and even if
nothing else is left.""",
        machines=(
            *_slots("spot-1", 0.05, 0.01),
            *_slots("demand-1", 0.40),
        ),
        needs={"ledger": need("bank", 8, unit=4, interruption=PINNED)},
        cycles=(CycleInput(0, (), "One machine is found; the free spot slot is not an option."),),
    )


def _gang() -> Scenario:
    return Scenario(
        name="gang",
        title="A gang gets all of its machines in one rack, or none",
        summary="""\
The need asks for one rack for all its machines (operator `Same`). Rack r1 has two free machines,
which are cheaper, and rack r2 has three. The gang needs three, so only r2 covers it. A second gang
of the same size finds no rack with enough room and takes nothing at all: half a gang would cost
money and run nothing.""",
        machines=(
            *(machine(f"r1-{n}", S.IDLE, price=0.20, rack="r1") for n in (1, 2)),
            *(machine(f"r2-{n}", S.IDLE, price=0.40, rack="r2") for n in (1, 2, 3)),
        ),
        needs={
            "train": need("ml", 12, unit=4, same=RACK, group="train", priority=200),
            "tune": need("ml", 12, unit=4, same=RACK, group="tune"),
        },
        cycles=(CycleInput(0, (), "The two machines in r1 stay free for others."),),
    )


def _fold() -> Scenario:
    return Scenario(
        name="fold-of-a-gang",
        title="Gangs that fit on one machine are served as a plain need",
        summary="""\
Each gang asks for 4 CPUs in one rack, and one machine has 4 CPUs. A gang on a single machine is in
one rack anyway, so the engine folds the two gangs into one row without topology and serves it from
any rack. The reader still sees one result for each gang.""",
        machines=(
            machine("r1-1", S.IDLE, price=0.20, rack="r1"),
            machine("r2-1", S.IDLE, price=0.20, rack="r2"),
        ),
        needs={
            "train-a": need("ml", 4, unit=1, same=RACK, group="a"),
            "train-b": need("ml", 4, unit=1, same=RACK, group="b"),
        },
        cycles=(
            CycleInput(
                0,
                (),
                "Both needs show both machines: a folded row counts its machines together. Each "
                "machine is stamped for one of the gangs.",
            ),
            CycleInput(60, (operations_end(),), "The gangs keep the machines they were given."),
        ),
    )


def _spread() -> Scenario:
    zones: dict[str, Need] = {"web": need("shop", 16, unit=4, spread=ZONE)}
    return Scenario(
        name="spread",
        title="A spread need takes expensive machines rather than exceed the skew",
        summary="""\
The need spreads over zones with a max skew of 1: no zone may hold more than one machine more than
the emptiest zone. Zone a is cheap and has four free machines. The engine alternates all the same,
and takes the cheapest machine among the zones that are not ahead.""",
        machines=(
            *(machine(f"a-{n}", S.IDLE, price=0.20, zone="zone-a") for n in (1, 2, 3, 4)),
            *(machine(f"b-{n}", S.IDLE, price=0.60, zone="zone-b") for n in (1, 2)),
        ),
        needs=zones,
        cycles=(CycleInput(0, (), "Two machines in each zone, although zone a had four."),),
    )


def _reserved() -> Scenario:
    web, batch = need("shop", 4, priority=500), need("reports", 4, priority=100)
    return Scenario(
        name="reserved-idle",
        title="A machine created for a need waits for that need",
        summary="""\
`new` was created for `batch` and has just become Idle. It is reserved: `batch` takes it at once,
ahead of cheaper Idle machines, and only an unmet need of higher priority could take it away.
Without this rule every cycle might hand a new machine to another need, and none would ever be
served.""",
        machines=(
            machine("new", S.IDLE, price=0.90, serves=batch),
            machine("spare", S.IDLE, price=0.20),
        ),
        needs={"web": web, "batch": batch},
        cycles=(
            CycleInput(
                0,
                (),
                "`web` comes first and could take either machine; it takes the cheaper one. "
                "`batch` gets the machine that was created for it.",
            ),
        ),
    )


def _requirement() -> Scenario:
    where = [has(CAPACITY_TYPE, "bare-metal", "reserved")]
    return Scenario(
        name="requirement",
        title="Requirements decide which machines are candidates",
        summary="""\
`search` requires bare-metal or reserved capacity. Its only candidate is `metal-1`. `web` has no
requirements and would prefer `metal-1` by price, but `search` comes first in the order, so `web`
gets a new machine. The order of needs is what resolves competition; prices only choose among what
is left.""",
        machines=(
            machine("metal-1", S.IDLE, BARE_METAL),
            *_slots("demand-1", 0.40),
        ),
        needs={
            "web": need("shop", 4, priority=100),
            "search": need("shop", 4, priority=300, where=where),
        },
        cycles=(CycleInput(0, (), "Both needs are met."),),
    )


SCENARIOS = (
    _requirement(), _idle_first(), _reserved(), _stock_out(), _fall_back(), _pinned(), _gang(),
    _fold(), _spread(),
)  # fmt: skip
