"""Scenarios about machines over time: holds, drains, nodes that fail, clusters that are silent."""

from bigfleet.decision import Policy
from bigfleet.decision.policy import SECOND
from transcripts.fleet import (
    BARE_METAL,
    ON_DEMAND,
    RESERVED,
    SPOT,
    CycleInput,
    S,
    Scenario,
    announced,
    asks_for,
    machine,
    need,
    not_ready,
    operations_end,
    reports,
)


def _hold() -> Scenario:
    web = need("shop", 8, unit=4)
    return Scenario(
        name="hold-before-reclaim",
        title="A machine is reclaimed only after its need has stayed smaller for a while",
        summary="""\
The demand of `web` drops from 8 CPUs to 4. The machine that is left over is not reclaimed at once:
a rolling restart or a late roll-up looks just the same. The hold is 30 s. The drop at 60 s lasts
20 s only, and has no effect.""",
        machines=tuple(machine(f"m-{n}", S.CONFIGURED, price=n / 10, serves=web) for n in (1, 2)),
        needs={"web": web},
        policy=Policy(reclaim_hold=30 * SECOND),
        settings={"hold before a reclaim": "30 s"},
        cycles=(
            CycleInput(60, (asks_for("web", None, 4),), "One machine is unclaimed from now on."),
            CycleInput(80, (asks_for("web", None, 8),), "The demand is back, the clock stops."),
            CycleInput(100, (asks_for("web", None, 4),), "It starts again from zero."),
            CycleInput(120, (), "Not yet."),
            CycleInput(130, (), "30 s have passed: the more expensive machine is reclaimed."),
        ),
    )


def _keep() -> Scenario:
    web = need("shop", 8, unit=4)
    return Scenario(
        name="keep",
        title="A drain is called off when the need comes back",
        summary="""\
A reclaimed machine first waits out its grace, so that its pods can leave by themselves. When the
demand returns in this time, the plan says Keep: the machine is serving already, and nothing is
cheaper than that. An Idle machine that would cost the same is left alone.""",
        machines=(*(machine(f"m-{n}", S.CONFIGURED, price=0.40, serves=web) for n in (1, 2)),),
        needs={"web": web},
        cycles=(
            CycleInput(0, (asks_for("web", None, 4),), "`m-2` starts to leave."),
            CycleInput(60, (asks_for("web", None, 8),), "`m-2` stays where it is."),
            CycleInput(70, (), "Nothing is left to do."),
        ),
    )


def _release() -> Scenario:
    kinds = (("spot", SPOT), ("demand", ON_DEMAND), ("reserved", RESERVED), ("metal", BARE_METAL))
    return Scenario(
        name="release",
        title="Elastic machines are given back when idle, fixed capacity never is",
        summary="""\
Four Idle machines that no need wants. A spot machine is deleted after one idle minute and an
on-demand machine after ten, because each hour costs money. Reserved and bare-metal machines are
paid for whether they run or not, so they wait for the next need. No setting can change the last
rule.""",
        machines=tuple(machine(name, S.IDLE, kind, price=0.40) for name, kind in kinds),
        needs={},
        cycles=(
            CycleInput(59, (), "Every hold is still running."),
            CycleInput(60, (), "One minute for spot."),
            CycleInput(600, (operations_end(),), "Ten minutes for on-demand."),
            CycleInput(86_400, (operations_end(),), "A day later, fixed capacity is still there."),
        ),
    )


def _silent() -> Scenario:
    web = need("shop", 4)
    return Scenario(
        name="cluster-that-has-not-reported",
        title="A cluster that has not reported loses nothing",
        summary="""\
The shard has just restarted. It finds two machines bound to cluster `shop`, whose operator has not
sent a roll-up yet. No need claims the machines, but silence is not zero demand, so nothing is
reclaimed. After the first roll-up the demand is known, and what is too much is excess like any
other.""",
        machines=tuple(machine(f"m-{n}", S.CONFIGURED, price=0.40, serves=web) for n in (1, 2)),
        needs={},
        unreported=("shop",),
        cycles=(
            CycleInput(0, (), "No demand is known, and no machine is touched."),
            CycleInput(
                20,
                (reports("shop"), asks_for("web", web, 4)),
                "The cluster needs one machine; the other one is reclaimed.",
            ),
        ),
    )


def _phantom() -> Scenario:
    web = need("shop", 16, unit=4)
    return Scenario(
        name="phantom-node",
        title="A node that is not Ready for too long is replaced, then reclaimed",
        summary="""\
The provider says that `m-4` runs, but the cluster has not seen a Ready node for longer than the
readiness deadline of 900 s. The machine is then a phantom: it no longer counts for its need, which
gets a replacement. The phantom is drained only after the replacement serves. If more than 30 % of a
cluster's machines (and at least three) looked like this at once, none would be replaced: that is an
outage of the cluster, and new machines would not help.""",
        machines=(
            *(machine(f"m-{n}", S.CONFIGURED, price=0.40, serves=web) for n in (1, 2, 3, 4)),
            machine("spare", S.IDLE, price=0.40),
        ),
        needs={"web": web},
        cycles=(
            CycleInput(0, (not_ready("m-4", 900),), "Exactly at the deadline: it still counts."),
            CycleInput(1, (not_ready("m-4", 901),), "The replacement is bound first."),
            CycleInput(60, (operations_end(),), "Now the phantom is drained."),
        ),
    )


def _announced() -> Scenario:
    web = need("shop", 4)
    return Scenario(
        name="announced-interruption",
        title="A machine whose end is announced is replaced before it is drained",
        summary="""\
The provider announces that a spot machine will be taken away. From then on the machine counts for
nothing, so its need gets another one. The old machine is drained when the replacement serves, or
60 s before its end if the replacement is late.""",
        machines=(
            machine("spot-1", S.CONFIGURED, SPOT, price=0.12, serves=web),
            machine("demand-1", S.SPECULATIVE, price=0.40),
        ),
        needs={"web": web},
        cycles=(
            CycleInput(0, (announced("spot-1", 300),), "The replacement is created."),
            CycleInput(60, (operations_end(),), "It exists, and is bound to the cluster."),
            CycleInput(120, (operations_end(),), "It serves, so the old machine is drained."),
        ),
    )


SCENARIOS = (
    _silent(), _hold(), _keep(), _release(), _announced(), _phantom(),
)  # fmt: skip
