"""report.html: one page without anything from elsewhere. Verdict and limits first."""

import json
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment

from bigfleet_conformance.registry import Area
from bigfleet_conformance.report.model import first_line

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ d.provider.name }}: {{ d.verdict }}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem;
  padding: 0 1rem; color: #1c2430; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.verdict { display: inline-block; padding: .3rem .8rem; border-radius: .3rem; color: #fff;
  font-weight: 600; }
.CERTIFIED { background: #1a7f37; } .INCOMPLETE { background: #9a6700; }
.FAILED { background: #b42318; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #e3e8ef;
  vertical-align: top; }
.passed { color: #1a7f37; } .failed, .error { color: #b42318; font-weight: 600; }
.skipped, .not_run, .not_applicable { color: #697586; }
pre { background: #f5f7fa; padding: .6rem; overflow-x: auto; font-size: 12px; }
.limits { border-left: 4px solid #9a6700; padding-left: .8rem; }
</style>
</head>
<body>
<h1>{{ d.provider.name }} {{ d.provider.version }}
  <span class="verdict {{ d.verdict }}">{{ d.verdict }}{% if d.scope == "base" %} (base){% endif %}
  </span></h1>
{% if d.verdicts is defined %}<p><strong>{{ opening }}.</strong>
Additions: {{ d.verdicts.extended.verdict }}, {{ d.verdicts.extended.passed }} of
{{ d.verdicts.extended.behaviors }} passed.</p>
{% endif %}<p>{{ d.summary.passed }} of {{ d.summary.total_behaviors }} behaviours passed,
{{ d.summary.failed }} failed, {{ d.summary.errors }} errors, {{ d.summary.skipped }} skipped.
Profiles: {{ d.profiles | join(", ") }}. Substrate: {{ d.substrate }}.
Suite {{ d.suite.version }}, {{ d.environment.started }}, {{ d.environment.duration_s }} s.</p>
{% if d.limits %}<div class="limits"><h2>Limits</h2><ul>
{% for limit in d.limits %}<li>{{ limit }}</li>{% endfor %}</ul></div>{% endif %}
<h2>Areas</h2>
<table><tr><th>area</th><th>passed</th><th>failed</th><th>errors</th><th>skipped</th>
<th>not run</th></tr>
{% for area in areas %}<tr><td><a href="#{{ area.name }}">{{ area.name }}</a></td>
<td>{{ area.counts.passed }}</td><td>{{ area.counts.failed }}</td>
<td>{{ area.counts.error }}</td><td>{{ area.counts.skipped }}</td>
<td>{{ area.counts.not_run }}</td></tr>{% endfor %}</table>
<h2>Baseline</h2>
<p>{{ d.baseline.passed }} of {{ d.baseline.tests }} checks passed.</p>
{% for check in d.baseline.checks if check.status in ("failed", "error") %}
<p class="failed">{{ check.name }}: {{ check.reason }}</p>{% endfor %}
{% for area in areas %}
<h2 id="{{ area.name }}">{{ area.name }}</h2>
<table><tr><th>id</th><th>behaviour</th><th>status</th><th>seconds</th></tr>
{% for row in area.rows %}<tr id="{{ row.id }}"><td>{{ row.id }}</td>
<td>{{ row.title }}{% if row.required %}{% else %} <small>(not required)</small>{% endif %}
{% if row.reason %}<br><span class="{{ row.status }}">{{ row.reason }}</span>{% endif %}
{% if row.evidence %}<details><summary>evidence ({{ row.evidence | length }} calls)</summary>
<pre>{% for entry in row.evidence %}{{ entry | line }}
{% endfor %}</pre></details>
{% elif row.evidence_calls %}<br><small>evidence of {{ row.evidence_calls }} calls left out of this
copy, SHA-256 {{ row.evidence_digest }}</small>{% endif %}</td>
<td class="{{ row.status }}">{{ row.status }}</td><td>{{ row.duration_s }}</td></tr>
{% endfor %}</table>
{% endfor %}
<h2>Claims</h2>
<ul>{% for claim in d.claims %}<li>{{ claim.capability }}: {{ claim.source }}</li>{% endfor %}</ul>
<h2>Repeat it</h2>
<pre>{% for command in d.reproduce %}{{ command }}
{% endfor %}</pre>
<p>Digest {{ d.digest }}</p>
</body>
</html>
"""


def page(document: Mapping[str, Any]) -> str:
    """The page of a report."""
    environment = Environment(autoescape=True, trim_blocks=True)
    environment.filters["line"] = lambda entry: json.dumps(entry, ensure_ascii=True)
    areas = []
    for area in Area:
        rows = [row for row in document["behaviors"] if row["area"] == area]
        counts = {
            status: sum(row["status"] == status for row in rows)
            for status in ("passed", "failed", "error", "skipped", "not_run")
        }
        areas.append({"name": str(area), "rows": rows, "counts": counts})
    opening = first_line(document) if "verdicts" in document else ""
    return environment.from_string(TEMPLATE).render(d=document, areas=areas, opening=opening)
