"""What BigFleet did about a scenario, in a handful of lines.

The demo's own dashboard has followed every decision and knows why a need is unmet; here it is asked
once, some seconds after the scenario began. Equal decisions are one line, and of every kind the
most frequent comes before a second of another kind.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

Document = Mapping[str, Any]
Get = Callable[[str], Awaitable[Document]]
SECONDS: Final = 16.0
"""Long enough for a roll-up, a cycle, and what a scenario does a little later."""
MOST_LINES: Final = 6
MOST_REASONS: Final = 3
_MOST_READ: Final = 1000
_PATIENCE: Final = 5.0
_ORDER: Final = ("Preempt", "Reclaim", "Provision", "Bootstrap", "Keep", "Delete", "Drain")
_FROM: Final = frozenset({"Preempt", "Reclaim", "Drain"})
"""Kinds that take a machine from its cluster."""


@dataclass(frozen=True, slots=True)
class DecisionGroup:
    """Equal decisions."""

    kind: str
    cluster: str
    reason: str

    @property
    def place(self) -> int:
        """What takes something away is told first."""
        return _ORDER.index(self.kind) if self.kind in _ORDER else len(_ORDER)

    def told(self, count: int) -> str:
        """As a line."""
        machines = "machine" if count == 1 else "machines"
        whose = f" {'of' if self.kind in _FROM else 'for'} {self.cluster}" if self.cluster else ""
        return f"{self.kind} {count} {machines}{whose}: {self.reason}"


def at_dashboard(address: str) -> Get:
    """Asks the dashboard at this address, past any proxy; its silence is an OSError."""
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(path: str) -> Document:
        with opener.open(f"http://{address}/api/v1{path}", timeout=_PATIENCE) as answer:
            return dict(json.loads(answer.read()))

    async def asked(path: str) -> Document:
        return await asyncio.to_thread(get, path)

    return asked


async def what_was_done(get: Get, since_seconds: float) -> list[str]:
    """What was decided since a moment and why, and what is unmet now and why."""
    try:
        answer = await get(f"/decisions?limit={_MOST_READ}")
        since = [d for d in answer["decisions"] if d["unix_nanos"] >= since_seconds * 1e9]
        unmet = (await get(f"/needs?verdict=unmet&limit={_MOST_READ}"))["needs"]
        return [*decided(since), *[await _why(get, needs) for needs in _by_reason(unmet)]]
    except (OSError, ValueError, KeyError) as error:
        return [f"The dashboard cannot be asked what was decided: {error}"]


def decided(decisions: Iterable[Document]) -> list[str]:
    """Decisions as lines, few of them."""
    groups = Counter(DecisionGroup(d["kind"], d["cluster"] or "", d["reason"]) for d in decisions)
    # A drain carries out what a Preempt or Reclaim has decided: the same thing, told once.
    taken = {(g.cluster, g.reason) for g in groups if g.kind in _FROM - {"Drain"}}
    for group in list(groups):
        if group.kind == "Drain" and (group.cluster, group.reason) in taken:
            del groups[group]
    if not groups:
        return ["Nothing had to be decided so far."]
    shown = _chosen(groups)
    lines = [group.told(groups[group]) for group in sorted(shown, key=lambda g: g.place)]
    rest = groups.total() - sum(groups[group] for group in shown)
    return [*lines, f"and {rest} more"] if rest else lines


def _chosen(groups: Counter[DecisionGroup]) -> list[DecisionGroup]:
    """The most frequent of every kind, then the most frequent of the rest."""
    ranks: Counter[str] = Counter()
    ranked: list[tuple[int, int, DecisionGroup]] = []
    for group, _ in groups.most_common():
        ranked.append((ranks[group.kind], len(ranked), group))
        ranks[group.kind] += 1
    return [group for _, _, group in sorted(ranked, key=lambda r: r[:2])[:MOST_LINES]]


def _by_reason(needs: Iterable[Document]) -> list[list[Document]]:
    found: dict[str, list[Document]] = {}
    for need in needs:
        found.setdefault(need["reason"] or "", []).append(need)
    return sorted(found.values(), key=len, reverse=True)[:MOST_REASONS]


async def _why(get: Get, needs: Sequence[Document]) -> str:
    """Needs that are unmet for one reason; one of them is asked for the words."""
    words = str(needs[0]["reason"] or "")
    try:
        words = (await get(f"/needs/{quote(str(needs[0]['key']), safe='')}"))["why"][0]
    except (OSError, LookupError):
        """Gone in the meantime: the name of the reason will do."""
    clusters = ", ".join(sorted({need["cluster"] for need in needs}))
    classes = ", ".join(sorted({need["priority_class"] for need in needs}))
    many = "1 need" if len(needs) == 1 else f"{len(needs)} needs"
    return f"Unmet: {many} of {clusters} ({classes}): {words}"
