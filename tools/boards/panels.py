"""Kinds of panels, and a board made of rows of them, as Grafana reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SCHEMA: Final = 39
WIDTH: Final = 24
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
GREEN, AMBER, RED = "green", "orange", "red"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """One query, and how its series are called."""

    expr: str
    legend: str = "__auto"
    instant: bool = False
    format: str = "time_series"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `steps` are values from which on it changes its colour."""

    title: str
    kind: str
    queries: Sequence[Query]
    unit: str = "short"
    width: int = 8
    height: int = 8
    steps: Mapping[float, str] = field(default_factory=dict)
    stacked: bool = False
    bars: bool = False
    help: str = ""

    def document(self, number: int, x: int, y: int) -> Json:
        """As Grafana reads it."""
        made: Json = {
            "id": number,
            "title": self.title,
            "description": self.help,
            "type": self.kind,
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [_target(n, query) for n, query in enumerate(self.queries)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": self._options(),
        }
        return made

    def _defaults(self) -> Json:
        steps: list[Json] = [{"color": GREEN, "value": None}]
        steps += [{"color": colour, "value": value} for value, colour in self.steps.items()]
        defaults: Json = {
            "unit": self.unit,
            "thresholds": {"mode": "absolute", "steps": steps},
            "color": {"mode": "thresholds" if self.kind == "stat" else "palette-classic"},
        }
        if self.kind == "timeseries":
            defaults["custom"] = {
                "drawStyle": "bars" if self.bars else "line",
                "fillOpacity": 60 if self.stacked or self.bars else 8,
                "lineWidth": 1,
                "showPoints": "never",
                "stacking": {"mode": "normal" if self.stacked else "none"},
                "thresholdsStyle": {"mode": "line" if self.steps else "off"},
            }
        return defaults

    def _options(self) -> Json:
        reduced: Json = {"calcs": ["lastNotNull"], "fields": "", "values": False}
        options: dict[str, Json] = {
            "stat": {"reduceOptions": reduced, "colorMode": "value", "graphMode": "area"},
            "piechart": {"reduceOptions": reduced, "pieType": "donut"},
            "timeseries": {"legend": {"displayMode": "list", "placement": "bottom"}},
            "heatmap": {"calculate": False, "yAxis": {"unit": "s"}},
            "table": {"showHeader": True},
            "alertlist": {"viewMode": "list", "stateFilter": {"firing": True, "pending": True}},
        }
        return options.get(self.kind, {})


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top of the board."""

    name: str
    query: str


@dataclass(frozen=True, slots=True)
class Board:
    """One board."""

    uid: str
    title: str
    rows: Sequence[Row]
    variables: Sequence[Variable] = ()

    def document(self) -> Json:
        """As Grafana reads it."""
        panels: list[Json] = []
        y = 0
        for row in self.rows:
            head: Json = {"x": 0, "y": y, "w": WIDTH, "h": 1}
            panels.append(
                {"id": len(panels) + 1, "type": "row", "title": row.title, "gridPos": head,
                 "collapsed": False, "panels": []}
            )  # fmt: skip
            y += 1
            x = deepest = 0
            for panel in row.panels:
                if x + panel.width > WIDTH:
                    x, y, deepest = 0, y + deepest, 0
                panels.append(panel.document(len(panels) + 1, x, y))
                x, deepest = x + panel.width, max(deepest, panel.height)
            y += deepest
        return {
            "uid": self.uid,
            "title": self.title,
            "tags": ["bigfleet"],
            "schemaVersion": SCHEMA,
            "editable": False,
            "refresh": "30s",
            "time": {"from": "now-3h", "to": "now"},
            "timezone": "",
            "templating": {"list": [_source(), *(_choice(each) for each in self.variables)]},
            "panels": panels,
        }

    def expressions(self) -> list[str]:
        """Every query."""
        return [q.expr for row in self.rows for panel in row.panels for q in panel.queries]


def _target(number: int, query: Query) -> Json:
    return {
        "refId": chr(ord("A") + number),
        "datasource": SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend,
        "instant": query.instant,
        "range": not query.instant,
        "format": query.format,
    }


def _source() -> Json:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"}


def _choice(variable: Variable) -> Json:
    return {
        "name": variable.name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": variable.query, "refId": variable.name},
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }
