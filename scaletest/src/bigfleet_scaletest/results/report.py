"""report.html: the verdict, every gate and action, and plots of the whole run, in one file.

Plots are drawn as SVG, so that the page needs nothing else. Faults are vertical lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from bigfleet_scaletest.record.measure import configured
from bigfleet_scaletest.record.samples import FleetSample, total

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 760, 180, 56, 22
_COLOURS: Final = ("#1b6ca8", "#c2571a", "#3a7d44", "#7a3b8f")
Points = Sequence[tuple[float, float]]


def page(
    summary: Mapping[str, Any],
    samples: Sequence[FleetSample],
    cycles: Sequence[Mapping[str, Any]],
    shards: Sequence[str],
    faults: Sequence[tuple[str, float]],
) -> str:
    """The page."""
    start = samples[0].unix_s if samples else 0.0
    plots = [
        plot(title, series, [(name, at - start) for name, at in faults])
        for title, series in _plots(samples, cycles, shards, start)
    ]
    verdict = "passed" if summary["passed"] else "failed"
    failures = "".join(f"<li>{escape(text)}</li>" for text in summary["failures"])
    return "\n".join(
        (
            "<!doctype html><html lang=en><meta charset=utf-8>",
            f"<title>{escape(str(summary['profile']))}: {verdict}</title>",
            f"<style>{_STYLE}</style>",
            f"<h1>{escape(str(summary['profile']))}: <span class={verdict}>{verdict}</span></h1>",
            f"<p>Seed {summary['seed']}, one run. Revision {escape(str(summary['revision']))}, "
            f"{escape(str(summary['startedAt']))} to {escape(str(summary['endedAt']))}, "
            f"{escape(str(summary['host']))}. "
            f"{'Complete' if summary['complete'] else 'Not complete: reduced, or gates skipped'}."
            "</p>",
            f"<ul>{failures}</ul>" if failures else "",
            _gates(summary["metrics"]),
            _skipped(summary["skippedSLOs"]),
            _actions(summary["runnerActions"]),
            *plots,
            "</html>",
        )
    )


_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #bbb;padding:.2rem .6rem;"
    "text-align:left}.passed{color:#26702f}.failed{color:#a3231f}svg{display:block;margin:1rem 0}"
)


def _plots(
    samples: Sequence[FleetSample],
    cycles: Sequence[Mapping[str, Any]],
    shards: Sequence[str],
    start: float,
) -> list[tuple[str, Mapping[str, Points]]]:
    def over_time(value: Any) -> Points:
        found = ((s.unix_s - start, value(s)) for s in samples)
        return [(at, number) for at, number in found if number is not None]

    durations = {
        shard: [
            (c["start_unix_nanos"] / 1e9 - start, c["wall_ns"] / 1e6)
            for c in cycles
            if c["shard"] == shard
        ]
        for shard in shards
    }
    short = {
        shard: over_time(
            lambda s, n=shard: total(s.processes.get(n, {}), "bigfleet_shard_shortfalls")
        )
        for shard in shards
    }
    sessions = {
        shard: over_time(lambda s, n=shard: s.load.get("sessions", {}).get(n)) for shard in shards
    }
    states = ("Configured", "Idle", "Configuring", "Creating")
    machines = {
        state: over_time(lambda s, n=state: configured(s, shards, n) or None) for state in states
    }
    pods = {name: over_time(lambda s, n=name: s.load.get(n)) for name in ("bound", "waiting")}
    return [
        ("Cycle, ms", durations),
        ("Unmet rows", short),
        ("Machines", machines),
        ("Pods", pods),
        ("Sessions", sessions),
    ]


def plot(title: str, series: Mapping[str, Points], faults: Sequence[tuple[str, float]] = ()) -> str:
    """Lines over seconds, as SVG."""
    points = [point for line in series.values() for point in line]
    if not points:
        return f"<p>{escape(title)}: nothing was measured.</p>"
    most_x = max(at for at, _ in points) or 1.0
    most_y = max(value for _, value in points) or 1.0
    scale_x = (_WIDTH - _LEFT - 10) / most_x
    scale_y = (_HEIGHT - _BOTTOM - 24) / most_y

    def place(at: float, value: float) -> str:
        return f"{_LEFT + at * scale_x:.1f},{_HEIGHT - _BOTTOM - value * scale_y:.1f}"

    lines, names = [], []
    for number, (name, line) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        where = " ".join(place(at, value) for at, value in line)
        lines.append(f'<polyline fill="none" stroke="{colour}" points="{where}"/>')
        names.append(f'<tspan fill="{colour}" dx="10">{escape(name)}</tspan>')
    marks = [
        f'<line x1="{_LEFT + at * scale_x:.1f}" x2="{_LEFT + at * scale_x:.1f}" y1="20" '
        f'y2="{_HEIGHT - _BOTTOM}" stroke="#a3231f" stroke-dasharray="3"><title>{escape(name)}'
        "</title></line>"
        for name, at in faults
    ]
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{escape(title)}" '
        'font-size="12">'
        f'<text x="0" y="14">{escape(title)}{"".join(names)}</text>'
        f'<text x="0" y="32">{most_y:,.4g}</text><text x="0" y="{_HEIGHT - _BOTTOM}">0</text>'
        f'<text x="{_WIDTH - 60}" y="{_HEIGHT - 4}">{most_x:,.0f} s</text>'
        f"{''.join(lines)}{''.join(marks)}</svg>"
    )


def _gates(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for name, each in metrics.items():
        state = "passed" if each["passed"] else "failed"
        cells = (
            name,
            _shown(each["value"]),
            each["unit"],
            _shown(each["slo"]),
            _shown(each["goal"]),
        )
        row = "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        rows.append(f"<tr>{row}<td>{each['samples']}</td><td class={state}>{state}</td></tr>")
    head = "<tr><th>gate<th>value<th>unit<th>SLO<th>goal<th>samples<th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _skipped(skipped: Sequence[Mapping[str, str]]) -> str:
    if not skipped:
        return ""
    rows = "".join(f"<li>{escape(s['gate'])}: {escape(s['reason'])}</li>" for s in skipped)
    return f"<p>Not measured here:</p><ul>{rows}</ul>"


def _actions(actions: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for action in actions:
        rows = "".join(
            f"<tr><td>{escape(w['check'])}</td><td>{_shown(w['measuredSeconds'])}</td>"
            f"<td>{_shown(w['limitSeconds'])}</td><td>{escape(w['detail'])}</td>"
            f"<td class={'passed' if w['passed'] else 'failed'}>"
            f"{'passed' if w['passed'] else 'failed'}</td></tr>"
            for w in action.get("windows", ())
        )
        head = "<tr><th>check<th>seconds<th>at most<th>detail<th></tr>"
        parts.append(f"<h2>{escape(str(action['action']))}</h2><table>{head}{rows}</table>")
    return "".join(parts)
