"""A plan at a glance: a summary, the actions grouped, and the needs that stay unmet."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from bigfleet.cli.output import out, plain, table
from bigfleet.decision import ActionKind
from bigfleet.model import Need, Resources, format_resources
from bigfleet.model.amounts.resources import readable
from bigfleet.model.reasons import WHY
from bigfleet.scenario.outcome import ActionOutcome, NeedOutcome, ScenarioOutcome
from bigfleet.scenario.supply import words as requirement_words

# Amounts and requirements of a need in words; the words of reasons are in `model.reasons`.


def amounts(resources: Resources) -> str:
    """`cpu 4, memory 16Gi`; nothing when there is nothing."""
    texts = format_resources({name: amount for name, amount in resources.items() if amount})
    return ", ".join(f"{name} {readable(name, t)}" for name, t in texts.items()) or "nothing"


def plural(count: int, what: str) -> str:
    """`1 machine`, `2 machines`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def wishes(need: Need) -> list[str]:
    """What a need asks of its machines, line by line."""
    profile = need.profile
    lines = [requirement_words(requirement) for requirement in profile.requirements]
    lines += [
        f"spread over {spread.key}, at most {spread.max_skew} apart ({spread.when.value})"
        for spread in profile.spread
    ]
    return lines


def names(ids: list[str], most: int = 3) -> str:
    """The first few ids, and how many more there are."""
    shown = ", ".join(ids[:most])
    return shown if len(ids) <= most else f"{shown} and {len(ids) - most:,} more"


MOST_ROWS: Final = 30
NARROW: Final = 70
"""Below this many columns a table would be a column of syllables: lines are printed instead."""

STYLES: Final = {
    ActionKind.BOOTSTRAP: "green",
    ActionKind.PROVISION: "cyan",
    ActionKind.RECLAIM: "yellow",
    ActionKind.PREEMPT: "red",
    ActionKind.KEEP: "blue",
    ActionKind.DELETE: "magenta",
}
MEANING: Final = {
    ActionKind.BOOTSTRAP: "bind an idle machine",
    ActionKind.PROVISION: "create a machine",
    ActionKind.RECLAIM: "drain a machine that no need uses",
    ActionKind.PREEMPT: "drain a machine for a more important need",
    ActionKind.KEEP: "call a drain off",
    ActionKind.DELETE: "give an idle machine back",
}


def print_plan(outcome: ScenarioOutcome, seconds: float) -> None:
    """Everything a person wants to know first."""
    actions, needs = list(outcome.actions()), list(outcome.needs())
    _print_summary(outcome, actions, needs, seconds)
    if actions:
        out.print()
        _print_actions(actions)
    unmet = [need for need in needs if not need.satisfied]
    if unmet:
        out.print()
        _print_unmet(unmet, actions)


def _print_summary(
    outcome: ScenarioOutcome, actions: list[ActionOutcome], needs: list[NeedOutcome], seconds: float
) -> None:
    scenario = outcome.world.scenario
    clusters = len({need.cluster for need in needs})
    out.print(
        plain(scenario.name or "scenario", "bold"),
        f"{plural(scenario.machine_count, 'machine')}, {plural(len(needs), 'need')} of "
        f"{plural(clusters, 'cluster')}, decided in {seconds * 1e3:,.1f} ms",
        sep=": ",
    )
    met = sum(need.satisfied for need in needs)
    style = "green" if met == len(needs) else "red"
    out.print(plain(f"Needs met: {met:,} of {len(needs):,}", style))
    if not actions:
        out.print("Nothing to do: every need has what it asks for, or nothing can be done for it.")
        return
    for kind in sorted(ActionKind):
        count = sum(action.kind is kind for action in actions)
        if count:
            out.print(plain(f"{count:>8,} {kind.title:<9} ", STYLES[kind]), MEANING[kind], sep="")


def _print_actions(actions: list[ActionOutcome]) -> None:
    groups: dict[tuple[ActionKind, str, int | None, str, int], list[str]] = defaultdict(list)
    for action in actions:
        key = (action.kind, action.cluster, action.need, action.reason, action.grace_seconds)
        groups[key].append(action.machine)
    made = table("", "cluster", "need>", "count>", "machines", "why", title="Actions")
    for (kind, cluster, need, reason, grace), ids in list(groups.items())[:MOST_ROWS]:
        why = f"{reason}; {grace} s grace" if grace else reason
        if out.width < NARROW:
            whose = cluster if need is None else f"{cluster} need {need}"
            line = f" {whose}: {names(ids, 2)}; {why}"
            out.print(plain(f"{kind.title} {len(ids):,}", STYLES[kind]) + plain(line))
            continue
        made.add_row(
            plain(kind.title, STYLES[kind]),
            plain(cluster),
            "" if need is None else str(need),
            f"{len(ids):,}",
            plain(names(ids, 2)),
            plain(why),
        )
    if made.rows:
        out.print(made)
    _print_rest(len(groups) - MOST_ROWS)


def _print_unmet(unmet: list[NeedOutcome], actions: list[ActionOutcome]) -> None:
    coming = Counter(action.need for action in actions if action.kind is ActionKind.PREEMPT)
    made = table("need>", "cluster", "missing", "why", title="Unmet needs")
    for need in unmet[:MOST_ROWS]:
        freed = coming[need.index]
        if freed:
            why = f"on its way: {plural(freed, 'machine')} being drained for it"
        else:
            why = WHY[need.reason]
        if out.width < NARROW:
            head = f"Need {need.index} of {need.cluster} lacks {amounts(need.deficit)}: "
            out.print(plain(head) + plain(need.reason.name, "red") + plain(f", {why}"))
            continue
        made.add_row(
            str(need.index),
            plain(need.cluster),
            plain(amounts(need.deficit)),
            plain(f"{need.reason.name}: ", "red") + plain(why),
        )
    if made.rows:
        out.print(made)
    _print_rest(len(unmet) - MOST_ROWS)
    out.print(plain(f"More about one of them: --explain {unmet[0].index}", "dim"))


def _print_rest(hidden: int) -> None:
    if hidden > 0:
        out.print(plain(f"... and {hidden:,} more rows; --output json lists everything", "dim"))
