"""Scenarios about needs that compete: preemption, excess, quota, spend limit."""

from dataclasses import replace

from bigfleet.decision import Policy
from transcripts.fleet import (
    PROVIDER,
    REGION,
    CycleInput,
    Event,
    S,
    Scenario,
    Situation,
    asks_for,
    machine,
    need,
    operations_end,
)


def _inversion() -> Scenario:
    batch = need("reports", 8, unit=4, priority=10)
    return Scenario(
        name="priority-inversion",
        title="A more important need takes a machine from a less important one",
        summary="""\
All machines serve `batch`. `checkout` has a higher priority and finds nothing free. One machine is
preempted: its pods get the grace that follows from the gap between the priorities, and the machine
is reserved for `checkout` while it drains. No more machines are taken than the need lacks, and what
is on its way is counted, so the second cycle takes nothing.""",
        machines=tuple(machine(f"m-{n}", S.CONFIGURED, price=0.40, serves=batch) for n in (1, 2)),
        needs={"batch": batch, "checkout": need("shop", 4, priority=1000)},
        cycles=(
            CycleInput(0, (), "`checkout` is still unmet: the machine is not free yet."),
            CycleInput(10, (), "The drain is under way; nothing else is taken."),
            CycleInput(600, (operations_end(),), "The machine goes to the need it was taken for."),
        ),
    )


def _same_cluster() -> Scenario:
    batch = need("shop", 8, unit=4, priority=10)
    return Scenario(
        name="preemption-inside-a-cluster",
        title="Inside one cluster the claim moves and no node is drained",
        summary="""\
Both needs belong to cluster `shop`. Draining a node of a cluster in order to give it back to the
same cluster would only restart pods: inside the cluster, kube-scheduler evicts the less important
pods by itself. So the claim and the stamp of a machine move to the more important need, and no
action is necessary.""",
        machines=tuple(machine(f"m-{n}", S.CONFIGURED, price=0.40, serves=batch) for n in (1, 2)),
        needs={"batch": batch, "checkout": need("shop", 4, priority=1000)},
        cycles=(
            CycleInput(
                0,
                (),
                "`checkout` is met by a machine that served `batch`. The next cycle looks for a "
                "replacement for `batch`.",
            ),
            CycleInput(
                10, (), "`batch` stays unmet: nothing is free and nothing is less important."
            ),
        ),
    )


def _grace() -> Scenario:
    low = need("reports", 4, priority=0)
    return Scenario(
        name="preempt-grace",
        title="The larger the gap between priorities, the shorter the drain",
        summary="""\
Four clusters each serve a need of priority 0 on one machine, in zones of their own, and four needs
with different priorities each require one of the zones. The grace follows from the gap: 600 s up to
100,000, then 120 s, 30 s above 500,000 and 10 s above 900,000. System-critical pods do not wait
ten minutes for a batch job.""",
        machines=tuple(
            machine(f"m-{n}", S.CONFIGURED, cpu=n, serves=replace(low, group=f"g{n}"))
            for n in (1, 2, 3, 4)
        ),
        needs={
            **{f"batch-{n}": need("reports", n, priority=0, group=f"g{n}") for n in (1, 2, 3, 4)},
            **{
                f"urgent-{n}": need("shop", n, priority=priority)
                for n, priority in ((4, 1_000_000), (3, 600_000), (2, 200_000), (1, 50_000))
            },
        },
        cycles=(CycleInput(0, (), "Each `urgent` need stays unmet until its machine is free."),),
    )


def _excess() -> Scenario:
    web, batch = need("shop", 8, unit=4, priority=100), need("reports", 4, priority=10)
    return Scenario(
        name="excess",
        title="What a cluster no longer needs is handed over before anything is preempted",
        summary="""\
Cluster `shop` asked for less, so one of its machines is excess. `search` lacks a machine and has a
higher priority than `batch`. The engine takes the excess machine first: no running need loses
anything. Pods that are left on it get the full grace of 600 s.""",
        machines=(
            *(machine(f"shop-{n}", S.CONFIGURED, price=0.40, serves=web) for n in (1, 2)),
            machine("reports-1", S.CONFIGURED, price=0.10, serves=batch),
        ),
        needs={
            "web": web,
            "batch": batch,
            "search": need("search", 4, priority=50),
        },
        cycles=(
            CycleInput(
                0,
                (asks_for("web", None, 4),),
                "`batch` keeps its machine although its priority is lower. The action is called "
                "Preempt because the machine leaves one cluster for a need of another.",
            ),
        ),
    )


def _quota() -> Scenario:
    return Scenario(
        name="quota",
        title="A share of quota limits how many slots a shard may use",
        summary="""\
The coordinator has given this shard two slots of the provider's quota in the region. One machine
exists already, so one more may be created. The need is unmet with the reason QUOTA although a slot
would be there: another shard may be using the rest.""",
        machines=(
            machine("used", S.CONFIGURED, price=0.40, serves=need("shop", 12, unit=4)),
            *(machine(f"slot-{n}", S.SPECULATIVE, price=0.40) for n in (1, 2)),
        ),
        needs={"web": need("shop", 12, unit=4)},
        policy=Policy(reclaim_hold=0, quotas={(PROVIDER, REGION): 2}),
        settings={"quota of this shard in the region": "2 slots outside of Speculative"},
        cycles=(CycleInput(0, (), "One Create, then the quota is used up."),),
    )


def _more_money(situation: Situation) -> None:
    situation.policy = replace(situation.policy, spend_limit_micro=1_200_000)


def _spend_limit() -> Scenario:
    return Scenario(
        name="spend-limit",
        title="A spend limit stops new elastic capacity, and nothing else",
        summary="""\
On-demand machines may cost $0.90 an hour together. The two that exist cost $0.80, so no third one
is created. The machines that run are not touched: a spend limit never takes capacity away.""",
        machines=(
            *(
                machine(f"used-{n}", S.CONFIGURED, price=0.40, serves=need("shop", 12, unit=4))
                for n in (1, 2)
            ),
            machine("slot", S.SPECULATIVE, price=0.40),
        ),
        needs={"web": need("shop", 12, unit=4)},
        policy=Policy(reclaim_hold=0, spend_limit_micro=900_000),
        settings={"spend limit for elastic capacity": "$0.90 per hour"},
        cycles=(
            CycleInput(0, (), "The need is unmet, and the reason names the limit."),
            CycleInput(
                10,
                (Event("An administrator raises the limit to $1.20.", _more_money),),
                "Exactly $1.20 is within the limit.",
            ),
        ),
    )


SCENARIOS = (
    _inversion(), _excess(), _same_cluster(), _grace(), _quota(), _spend_limit(),
)  # fmt: skip
