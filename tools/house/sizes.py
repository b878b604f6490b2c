"""How large the control plane and the repository may become.

The goals are those of the design. A figure above its goal stands in the backlog with the ceiling
that holds today; who makes it smaller lowers the ceiling.
"""

from collections.abc import Iterable, Iterator, Mapping

from house.findings import Finding

PRODUCT = "bigfleet/src/"
GOALS = {"lines": 51_000, "modules": 350, "megabytes": 10}


def measured(sources: Mapping[str, str], repository_bytes: int) -> dict[str, int]:
    """Lines and modules of the control plane without generated code, and the repository's size."""
    product = [text for path, text in sources.items() if path.startswith(PRODUCT)]
    return {
        "lines": sum(text.count("\n") for text in product),
        "modules": len(product),
        "megabytes": -(-repository_bytes // 1_000_000),
    }


def size_findings(figures: Mapping[str, int], backlog: Iterable[str]) -> Iterator[Finding]:
    """Figures above their goal, each under the entry of the backlog whose ceiling it keeps."""
    ceilings = {}
    for entry in backlog:
        rule, _, key = entry.partition(" ")
        if rule == "size":
            name, _, figure = key.partition("=")
            ceilings[name] = int(figure)
    for what, goal in GOALS.items():
        size = figures[what]
        if size > goal:
            ceiling = ceilings.get(what, goal)
            key = f"{what}={ceiling if size <= ceiling else size}"
            yield Finding("size", key, f"{what}: {size}, the goal is {goal}, the ceiling {ceiling}")
