"""The demo on a terminal: a map of the machines, the demand, the money, and what was decided.

Every sign on the map means something without its colour, so it also works with NO_COLOR; and
everything fits 40 columns.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from bigfleet.cli.output import plain, table
from bigfleet.cli.plan.table import STYLES
from bigfleet.decision import ActionKind, Plan
from bigfleet.model import CapacityType, MachineState
from bigfleet.model.columns import Flag
from bigfleet.model.reasons import WHY
from bigfleet_lab.simulate.demo_fleet import CLUSTERS, PODS_PER_MACHINE, TIERS, DemoFleet

S = MachineState
HONEST: Final = "Machines and clusters are simulated; every decision is made by the real engine."
COLOURS: Final = dict(zip(CLUSTERS, ("cyan", "magenta", "yellow"), strict=True))
_SIGNS: Final = {
    S.SPECULATIVE: (".", "bright_black"),
    S.CREATING: ("+", "blue"),
    S.IDLE: ("o", "green"),
    S.CONFIGURING: (">", "bold"),
    S.DRAINING: ("<", "red"),
    S.DELETING: ("-", "bright_black"),
    S.FAILED: ("!", "bold red"),
}
_KINDS: Final = (
    ("owned", (CapacityType.BARE_METAL, CapacityType.RESERVED)),
    ("on demand", (CapacityType.ON_DEMAND,)),
    ("spot", (CapacityType.SPOT,)),
)
_WIDE: Final = 100
_NARROW: Final = 60


@dataclass(frozen=True, slots=True)
class Decision:
    """Equal actions of one cycle, as one line."""

    seconds: int
    kind: ActionKind
    count: int
    cluster: str
    tier: str
    reason: str

    def __str__(self) -> str:
        machines = "machine" if self.count == 1 else "machines"
        return f"{self.kind.title} {self.count} {machines}{self._whose()}: {self.reason}"

    def brief(self) -> str:
        """The same where there is no room."""
        return f"{self.kind.title} {self.count}{self._whose()}"

    def _whose(self) -> str:
        if self.kind is ActionKind.PREEMPT:
            return f" of {self.cluster} for {self.tier}"
        if self.kind is ActionKind.RECLAIM:
            return f" of {self.cluster}"
        return f" for {self.cluster} {self.tier}" if self.cluster else ""


@dataclass
class View:
    """What is on the screen, cycle after cycle."""

    demo: DemoFleet
    decisions: deque[Decision] = field(default_factory=lambda: deque(maxlen=200))
    plan: Plan | None = None

    def take(self, plan: Plan) -> list[Decision]:
        """Note what a cycle decided; the new lines."""
        self.plan = plan
        seconds = self.demo.seconds
        groups: Counter[tuple[ActionKind, str, str, str]] = Counter()
        for action in plan:
            tier = ""
            if action.need >= 0:
                tier = self.demo.tier_of(self.demo.needs[action.need]).name
            groups[action.kind, action.cluster, tier, action.reason] += 1
        new = [Decision(seconds, k, n, c, t, r) for (k, c, t, r), n in groups.items()]
        self.decisions.extend(new)
        return new

    def render(self, width: int, height: int) -> RenderableType:
        """The whole screen."""
        wide = width >= _WIDE
        inner = (width - 6) // 2 if wide else width - 4
        narrow = width < _NARROW
        left = Panel(self._map(inner), title="machines", border_style="dim")
        right = Panel(
            Group(self._demand(narrow=narrow), *self._unmet()), title="demand", border_style="dim"
        )
        top: RenderableType = (
            Columns([left, right], equal=True, expand=True) if wide else Group(left, right)
        )
        used = 22 if wide else 38 if narrow else 30
        feed = self._feed(max(4, height - used), width - 4, narrow=narrow)
        panel = Panel(feed, title="decisions", border_style="dim")
        return Group(self._header(), top, panel)

    def _header(self) -> Text:
        report = self.demo.loop.reports[-1]
        head = Text("BigFleet demo ", style="bold")
        head.append(clock(self.demo.seconds), style="bold cyan")
        head.append(f"  ${report.dollars_per_hour:.2f}/h", style="bold green")
        head.append(f"  {report.under_way} changing", style="dim")
        return head.append(f"\n{HONEST}", style="dim")

    def _map(self, width: int) -> Text:
        drawn = Text()
        fleet = self.demo.world.inventory.snapshot()
        kinds = fleet.classes.capacity_type[fleet.cls]
        for title, types in _KINDS:
            rows = np.flatnonzero(np.isin(kinds, types)).tolist()
            drawn.append(f"{title}\n", style="dim")
            per_line = max(8, min(len(rows), width // 2))
            for i, row in enumerate(rows):
                drawn.append(*self._cell(int(fleet.state[row]), int(fleet.cluster[row]),
                                         bool(fleet.flags[row] & Flag.LEAVING)))  # fmt: skip
                drawn.append("\n" if (i + 1) % per_line == 0 or i == len(rows) - 1 else " ")
        letters = "  ".join(f"{c[0].upper()} {c}" for c in CLUSTERS)
        drawn.append(f"{letters}  (small: leaving)\n", style="dim")
        drawn.append(
            "o idle  . not there  + creating\n> configuring  < draining  - deleting", "dim"
        )
        return drawn

    def _cell(self, state: int, cluster: int, leaving: bool) -> tuple[str, str]:
        if state != S.CONFIGURED:
            return _SIGNS[MachineState(state)]
        name = self.demo.world.symbols.clusters[cluster]
        letter = name[0]
        return (letter, f"dim {COLOURS[name]}") if leaving else (letter.upper(), COLOURS[name])

    def _demand(self, *, narrow: bool) -> RenderableType:
        made = table("", *(f"{tier.name[:5] if narrow else tier.name}>" for tier in TIERS))
        cells = self._cells()
        for cluster in CLUSTERS:
            row = [cells.get((cluster, tier.name), ("-", "dim")) for tier in TIERS]
            made.add_row(plain(cluster, COLOURS[cluster]), *(plain(t, style) for t, style in row))
        return Group(made, plain("machines serving / asked for", "dim"))

    def _cells(self) -> dict[tuple[str, str], tuple[str, str]]:
        plan, cells = self.plan, {}
        assert plan is not None
        fleet = plan.fleet
        serving = np.bincount(
            plan.claimed[(plan.claimed >= 0) & (fleet.state == S.CONFIGURED)],
            minlength=len(plan.verdicts),
        )
        for row in range(len(plan.verdicts)):
            need = self.demo.needs[plan.need_of(row)]
            asked = -(-need.aggregate["cpu"] // (2_000 * PODS_PER_MACHINE))
            met = bool(plan.verdicts.satisfied[row])
            style = "green" if serving[row] >= asked else "yellow" if met else "bold red"
            cells[need.cluster, self.demo.tier_of(need).name] = (f"{serving[row]}/{asked}", style)
        return cells

    def _unmet(self) -> list[Text]:
        plan = self.plan
        assert plan is not None
        lines = []
        for row in np.flatnonzero(~plan.verdicts.satisfied).tolist():
            need = self.demo.needs[plan.need_of(row)]
            coming = int(plan.verdicts.victims[row])
            why = f"{coming} being drained for it" if coming else WHY[plan.reason(row)]
            lines.append(
                plain(f"{need.cluster} {self.demo.tier_of(need).name} unmet: {why}", "red")
            )
        return lines or [plain("all demand is met or on its way", "green")]

    def _feed(self, lines: int, width: int, *, narrow: bool) -> RenderableType:
        shown = []
        for decision in list(self.decisions)[-lines:]:
            line = Text(f"{clock(decision.seconds)} ", style="dim")
            text = decision.brief() if narrow else str(decision)
            line.append(text, style=STYLES[decision.kind])
            line.truncate(width, overflow="ellipsis")
            shown.append(line)
        while len(shown) < lines:
            shown.append(Text(""))
        return Group(*shown)


def clock(seconds: int) -> str:
    """Virtual time as a clock shows it."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
