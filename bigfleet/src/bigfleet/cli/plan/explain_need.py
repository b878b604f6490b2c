"""One need in words: what it asks, what it got, what could have served it, what would help."""

from __future__ import annotations

from dataclasses import dataclass

from rich.padding import Padding

from bigfleet.cli.output import out, plain
from bigfleet.cli.plan.table import amounts, names, plural, wishes
from bigfleet.decision import ActionKind, Reason
from bigfleet.model import Need
from bigfleet.model.reasons import NEXT, WHY
from bigfleet.scenario.outcome import NeedOutcome, ScenarioOutcome
from bigfleet.scenario.supply import ALIVE, Sieve, by_state, sieves


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain a gang could live in, and how much of it fits there."""

    name: str
    percent: float
    covers: bool


def drawer(outcome: ScenarioOutcome, index: int) -> None:
    """Print everything about one need."""
    verdict, need = outcome.need(index), outcome.world.scenario.needs[index]
    style = "green" if verdict.satisfied else "red"
    state = "met" if verdict.satisfied else f"unmet: {verdict.reason.name}"
    out.print(plain(f"Need {index} of {need.cluster}: ", "bold"), plain(state, style), sep="")
    _section("Asks for", _demand_lines(need))
    _section("Got", _got(outcome, verdict))
    _section("Machines that could serve it, by state", _supply(outcome, need))
    domains = domains_of(outcome, verdict)
    if domains:
        _section("Best domains", [_domain_line(domain, verdict.domain) for domain in domains])
    victims = victims_of(outcome, index)
    if victims:
        _section("Preempts", [f"{plural(len(victims), 'machine')}: {names(victims)}"])
    if not verdict.satisfied:
        _section("Why not", _why_not(outcome, need, verdict, len(victims)))
        if not victims:
            _section("What would help", [_advice(outcome, need, verdict, domains)])


def drawer_document(outcome: ScenarioOutcome, index: int) -> dict[str, object]:
    """The same for programs."""
    verdict, need = outcome.need(index), outcome.world.scenario.needs[index]
    last = last_sieve(outcome, need)
    return {
        **verdict.to_json(),
        "asks": _demand_lines(need),
        "matching": {s.title: n for s, n in by_state(outcome.plan.fleet, need).items()},
        "removes_last_candidate": None if last is None else last.wish,
        "domains": [
            {"domain": d.name, "coverage_percent": d.percent, "covers": d.covers}
            for d in domains_of(outcome, verdict)
        ],
        "victims": victims_of(outcome, index),
    }


def domains_of(outcome: ScenarioOutcome, verdict: NeedOutcome) -> list[Domain]:
    """The best domains of a gang, best first; none for other needs."""
    verdicts, row = outcome.plan.verdicts, verdict.row
    key = int(verdicts.domain_key[row])
    if key < 0:
        return []
    known = outcome.plan.domain_names[key]
    return [
        Domain(
            known[int(domain)].replace("\x00", ","),
            int(verdicts.best_mille[row, i]) / 10,
            bool(verdicts.best_ok[row, i]),
        )
        for i, domain in enumerate(verdicts.best[row])
        if domain >= 0
    ]


def victims_of(outcome: ScenarioOutcome, index: int) -> list[str]:
    """Machines that are preempted for a need."""
    return [
        action.machine
        for action in outcome.actions()
        if action.kind is ActionKind.PREEMPT and action.need == index
    ]


def last_sieve(outcome: ScenarioOutcome, need: Need) -> Sieve | None:
    """The wish that removes the last candidate, if one does."""
    return next((s for s in sieves(outcome.plan.fleet, need) if s.left == 0), None)


def _demand_lines(need: Need) -> list[str]:
    profile = need.profile
    lines = [f"{amounts(need.aggregate)} in all, at least {amounts(need.min_unit)} on a machine"]
    lines += wishes(need)
    penalties = (
        f"an interruption costs {_dollars(profile.interruption.label)}, "
        f"losing a machine {_dollars(profile.reclamation.label)}"
    )
    lines.append(f"priority {profile.priority}; {penalties}")
    if need.group:
        lines.append(f"as the gang {need.group!r}" if profile.same else f"group {need.group!r}")
    return lines


def _dollars(label: str) -> str:
    return "more than any money" if label == "pinned" else f"${label}"


def _got(outcome: ScenarioOutcome, verdict: NeedOutcome) -> list[str]:
    plan, row = outcome.plan, verdict.row
    machines = outcome.machines_of(verdict)
    lines = [f"{plural(len(machines), 'machine')} claimed"]
    if len(machines):
        idle, new = int(plan.verdicts.from_idle[row]), int(plan.verdicts.from_speculative[row])
        held = len(machines) - idle - new
        lines[0] += f": {held} held before, {idle} taken from Idle, {new} to be created"
        lines.append(names([plan.fleet.ids[int(m)] for m in machines]))
    if int(plan.verdicts.need[row]) < 0:
        members = int(plan.verdicts.members_at[row + 1] - plan.verdicts.members_at[row])
        lines.append(
            f"served together with {plural(members - 1, 'equal gang')} of its cluster; "
            "the machines above are those of all of them"
        )
    if verdict.domain and verdict.claimed:
        lines.append(f"in {verdict.domain}")
    if not verdict.satisfied:
        lines.append(f"still missing: {amounts(verdict.deficit)}")
    return lines


def _supply(outcome: ScenarioOutcome, need: Need) -> list[str]:
    counts = by_state(outcome.plan.fleet, need)
    if not counts:
        return ["none"]
    return [f"{count:,} {state.title}" for state, count in counts.items()]


def _domain_line(domain: Domain, chosen: str) -> str:
    mark = " (chosen)" if domain.name == chosen else ""
    enough = "has room for all of it" if domain.covers else "is too small"
    return f"{domain.name}: covers {domain.percent:g} %, {enough}{mark}"


def _why_not(outcome: ScenarioOutcome, need: Need, verdict: NeedOutcome, victims: int) -> list[str]:
    if victims and verdict.reason is Reason.PRIORITY_STARVED:
        return [f"not yet: {plural(victims, 'machine')} being drained for it"]
    lines = [WHY[verdict.reason]]
    last = last_sieve(outcome, need)
    if last is not None:
        for sieve in sieves(outcome.plan.fleet, need):
            gone = "  <- removes the last candidate" if sieve.left == 0 else ""
            lines.append(f"{sieve.left:,} left after: {sieve.wish}{gone}")
            if gone:
                break
    return lines


def _advice(
    outcome: ScenarioOutcome, need: Need, verdict: NeedOutcome, domains: list[Domain]
) -> str:
    last = last_sieve(outcome, need)
    if last is not None and last.wish == ALIVE:
        return "add machines: there is none"
    if last is not None:
        return f"relax `{last.wish}`, or add machines that hold it and all before it"
    return NEXT.get(verdict.reason, "add machines that match")


def _section(title: str, lines: list[str]) -> None:
    out.print(plain(title, "bold"))
    for line in lines:
        out.print(Padding(plain(line), (0, 0, 0, 2), expand=False))
