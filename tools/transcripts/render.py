"""A scenario and its decisions as a page: the input as tables, then each cycle's decisions.

Columns in which every row is the same default are left out, and machines that differ in their id
only share a row.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bigfleet.decision import Action
from bigfleet.decision.policy import SECOND
from bigfleet.model import Machine, Need, RequirementOperator, format_resources
from bigfleet.model.reasons import WHY
from transcripts.fleet import RACK, START, ZONE, Scenario
from transcripts.play import PlayedCycle, play

Row = dict[str, str]
_SHORT_KEYS = {RACK: "rack", ZONE: "zone", "bigfleet.lucy.sh/capacity-type": "capacity type"}


def page(scenario: Scenario) -> str:
    """The whole page of a scenario."""
    return "\n".join(_lines(scenario)).rstrip() + "\n"


def _lines(scenario: Scenario) -> Iterator[str]:
    yield f"# {scenario.title}\n"
    yield f"{scenario.summary}\n"
    yield "## Input\n"
    labels = {id(need): label for label, need in scenario.needs.items()}
    yield from table("Machines", [_machine(m, scenario, labels) for m in scenario.machines])
    needs = [_need(label, need) for label, need in scenario.needs.items()]
    yield from table("Needs, in the order in which they arrived", needs)
    if not needs:
        yield "Needs: none are known at the start.\n"
    if scenario.settings:
        yield from table("Settings", [dict(zip(("setting", "value"), item, strict=True))
                                      for item in scenario.settings.items()])  # fmt: skip
    played = list(play(scenario))
    for number, cycle in enumerate(played, 1):
        heading = "## Decision" if len(played) == 1 else f"## Cycle {number}"
        yield f"{heading}\n" if len(played) == 1 else f"{heading}, after {cycle.given.second:,} s\n"
        yield from (f"- {event.text}" for event in cycle.given.events)
        if cycle.given.events:
            yield ""
        actions = [_action(a, cycle) for a in sorted(cycle.plan, key=_order)]
        if actions:
            yield from table("", merged(actions, "machines"))
        else:
            yield "No action.\n"
        yield from table("", [_verdict(label, cycle) for label in cycle.labels])
        if cycle.given.notice:
            yield f"{cycle.given.notice}\n"


def _order(action: Action) -> tuple[int, str]:
    return int(action.kind), action.machine


# -- rows ------------------------------------------------------------------------------------------


def _machine(each: Machine, scenario: Scenario, labels: Mapping[int, str]) -> Row:
    serves = ""
    if each.stamp is not None:
        stamped = [label for label, n in scenario.needs.items() if n.stamp_key == each.stamp.key]
        serves = f"`{stamped[0]}`" if stamped else "a need not known yet"
    idle = (START - each.idle_since_ns) // SECOND if each.idle_since_ns else 0
    return {
        "machines": f"`{each.id}`",
        "state": each.state.title,
        "cluster": each.cluster,
        "made for": serves,
        "CPUs": format_resources(each.resources)["cpu"],
        "capacity type": each.capacity_type.label,
        "zone": each.zone,
        "rack": each.labels.get(RACK, ""),
        "price per hour": f"${each.price_per_hour:.2f}" if each.price_per_hour else "",
        "interruption probability": f"{each.interruption_probability:g}"
        if each.interruption_probability
        else "",
        "idle for": f"{idle} s" if idle else "",
    }


def _need(label: str, need: Need) -> Row:
    profile = need.profile
    amount, unit = need.aggregate["cpu"] // 1000, need.min_unit["cpu"] // 1000
    wanted = [
        f"one {_SHORT_KEYS[r.key]} for all"
        if r.operator is RequirementOperator.SAME
        else f"{_SHORT_KEYS[r.key]} {' or '.join(r.values)}"
        for r in profile.requirements
    ]
    wanted += [f"spread over {_SHORT_KEYS[s.key]}s, max skew {s.max_skew}" for s in profile.spread]
    return {
        "need": f"`{label}`",
        "cluster": need.cluster,
        "priority": str(profile.priority),
        "asks for": _cpus(amount) + (f" in pods of {unit}" if unit != amount else ""),
        "requires": "; ".join(wanted),
        "interruption penalty": _dollars(profile.interruption.dollars),
        "reclamation penalty": _dollars(profile.reclamation.dollars),
    }


def _cpus(amount: int) -> str:
    return f"{amount} CPU" if amount == 1 else f"{amount} CPUs"


def _dollars(amount: float) -> str:
    return "pinned" if amount == float("inf") else f"${amount:g}" if amount else ""


def _action(action: Action, cycle: PlayedCycle) -> Row:
    label = cycle.labels[action.need] if action.need >= 0 else ""
    grace = f"; {action.grace_seconds} s of grace" if action.grace_seconds else ""
    return {
        "action": action.kind.title,
        "machines": f"`{action.machine}`",
        "cluster": action.cluster,
        "for": f"`{label}`" if label else "",
        "why": action.reason + grace,
    }


def _verdict(label: str, cycle: PlayedCycle) -> Row:
    plan, row = cycle.plan, cycle.row(label)
    met = bool(plan.verdicts.satisfied[row])
    reason = plan.reason(row)
    missing = _cpus(plan.missing(row).get("cpu", 0) // 1000)
    return {
        "need": f"`{label}`",
        "result": "met" if met else f"unmet, {missing} missing",
        "counted machines": ", ".join(f"`{name}`" for name in cycle.machines(label)),
        "domain": plan.domain(row),
        "reason": "" if met else f"{reason.name}: {WHY[reason]}",
    }


# -- tables ----------------------------------------------------------------------------------------


def merged(rows: Iterable[Row], key: str) -> list[Row]:
    """Rows that differ only in `key` as one row."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        rest = tuple(value for name, value in row.items() if name != key)
        known = found.get(rest)
        if known is None:
            found[rest] = dict(row)
        else:
            known[key] += f", {row[key]}"
    return list(found.values())


def table(caption: str, rows: Sequence[Row]) -> Iterator[str]:
    """A table without the columns that are empty in every row."""
    if not rows:
        return
    if caption:
        yield f"{caption}:\n"
    rows = merged(rows, "machines") if "machines" in rows[0] else list(rows)
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    yield f"| {' | '.join(names)} |"
    yield "| " + " | ".join("---" for _ in names) + " |"
    for row in rows:
        yield f"| {' | '.join(row[name] for name in names)} |"
    yield ""
