"""Names of modules and public classes.

A public class name occurs once in a distribution. A module or class is named by a noun of the
domain (docs/internals/glossary.md) or a plain technical noun, not by a bare participle and not by a
word that could mean anything.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from house.findings import Finding

# Gerunds that name a thing of the domain or a technique which has no other name.
_GERUNDS = """
decoding draining encoding fencing interning offering paging planning preempting pricing rebalancing
sampling scheduling testing tracing
"""
# Words that end like a participle and are nouns.
_NOUNS = """
bed binding building feed finding listing need ring seed setting shed speed string thing
"""
_VAGUE = """
told taken seen heard known held kept found gone lost left given bound means room part cut course
reign word words wish news world worlds knobs rhythm courtesy stuff misc utils util helpers common
together places turns shelf mishaps market late
"""
PLAIN = frozenset(f"{_GERUNDS} {_NOUNS}".split())
VAGUE = frozenset(_VAGUE.split())


def is_vague(name: str) -> bool:
    """Whether a single word (`told`, `Asked`, `waiting`) says nothing about what it names."""
    word = name.strip("_").lower()
    if "_" in word or word in PLAIN:
        return False
    return word in VAGUE or bool(re.fullmatch(r"\w{3,}(?:ing|ed)", word))


def is_one_word(class_name: str) -> bool:
    """Whether a class name has one capital letter, such as `Told` and unlike `ShardReply`."""
    return sum(letter.isupper() for letter in class_name) == 1


def module_findings(names: Iterable[str]) -> Iterator[Finding]:
    """Modules that are named by a bare participle or a vague noun."""
    for name in names:
        stem = Path(name).stem
        if name.endswith(".py") and is_vague(stem):
            yield Finding("module-name", name, f"{name}: name the module by a noun of the domain")


def public_classes(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of every public class at the top of a module."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.lineno, node.name


def class_findings(sources: Mapping[str, str]) -> Iterator[Finding]:
    """Vague class names, and names that a distribution uses for two classes.

    `sources` has the text of every module below a `src` folder by its path. An error may be called
    what happened (`Gone`, `Throttled`).
    """
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, text in sorted(sources.items()):
        distribution = path.split("/src/")[0]
        for line, name in public_classes(text):
            places[distribution, name].append(f"{path}:{line}")
            if is_one_word(name) and is_vague(name) and not path.endswith("/errors.py"):
                yield Finding(
                    "class-name",
                    f"{path}:{name}",
                    f"{path}:{line}: name class {name} by a noun of the domain",
                )
    for (distribution, name), where in sorted(places.items()):
        if len(where) > 1:
            key = f"{distribution}:{name}"
            yield Finding(
                "class-twice", key, f"{', '.join(where)}: one name for two classes: {name}"
            )
