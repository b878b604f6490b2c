"""How large the control plane, the repository and single providers may become.

The goals are those of the design. A figure above its goal stands in the backlog with the ceiling
that holds today; who makes it smaller lowers the ceiling.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping

from house.findings import Finding

PRODUCT = "bigfleet/src/"
GOALS = {"lines": 51_000, "modules": 350, "megabytes": 10}
PROVIDERS = {
    "providers/aws/src/": 800, "providers/digitalocean/src/": 550, "providers/hetzner/src/": 500,
}  # fmt: skip
"""Lines of code of a provider: what everything else needs is the kit's."""


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


def code_lines(text: str) -> int:
    """Lines that are neither empty nor comment nor docstring."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if first is not None and ast.get_docstring(node) is not None:
            documented |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return sum(
        number not in documented and not line.lstrip().startswith("#")
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    )


def provider_findings(sources: Mapping[str, str]) -> Iterator[Finding]:
    """Providers that are longer than they may be."""
    for folder, most in PROVIDERS.items():
        texts = (text for path, text in sources.items() if path.startswith(folder))
        size = sum(map(code_lines, texts))
        if size > most:
            text = (
                f"{folder}: {size} lines of code, at most {most}; move generic parts into the kit"
            )
            yield Finding("provider-size", folder, text)
