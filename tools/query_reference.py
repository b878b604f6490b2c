"""Writes docs/reference/queries.md from the queries that users are promised; `--check` compares."""

import sys
from pathlib import Path

from boards.promised_queries import IDENTITIES, PROMISED

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "queries.md"
HEAD = """# Promised queries

<!-- Written by tools/query_reference.py (`make boards`) from tools/boards/promised_queries.py. -->

These queries keep working: names, labels and values of labels in them do not change without a line
in the changelog that says so. Tests evaluate every one with a real Prometheus that watches a whole
system. Alerts and the [runbook](../guides/runbook.md) speak of them by their numbers.

A query with a comparison is empty while all is well; the second line is the same question without
it, or over a time that a young system has lived through.

Prometheus adds `job`, `instance` and `pod` to every series, and `cluster` to those of operators and
pod controllers; the jobs are `bigfleet-shard`, `bigfleet-coordinator`, `bigfleet-operator`,
`bigfleet-pod-controller` and `bigfleet-provider`. The charts' ServiceMonitors do that.
"""
TAIL = """
## Numbers that agree

On a system at rest these pairs are equal whenever they are looked at.

| this | is that |
| --- | --- |
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for one in PROMISED:
        lines = [one.expr, *([one.base] if one.base else [])]
        parts.append(f"\n## {one.number}: {one.question}\n\nFor: {one.role}.\n\n")
        parts += [f"    {line}\n" for line in lines]
    parts.append(TAIL)
    parts += [f"| `{left}` | `{right}` |\n" for left, right in IDENTITIES]
    return "".join(parts)


def main(words: list[str]) -> int:
    """Write, or check."""
    made = page()
    if words == ["--check"]:
        fresh = PAGE.is_file() and PAGE.read_text("utf-8") == made
        print("the promised queries are written down" if fresh else "run `make boards`")
        return 0 if fresh else 1
    PAGE.write_text(made, "utf-8")
    print(f"wrote {PAGE.name}: {len(PROMISED)} queries")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
